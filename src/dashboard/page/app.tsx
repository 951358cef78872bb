import { Component, memo, useCallback, useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { AlertsSection } from './alerts/alerts-section.tsx'
import { FiringAnnouncement } from './alerts/firing.tsx'
import { useDashboard } from './dashboard.ts'
import { DocumentDialog } from './evidence/document-dialog.tsx'
import { OpenQuotation } from './evidence/quote.tsx'
import type { Quotation } from './evidence/quote.tsx'
import { Header } from './header.tsx'
import { LogSection } from './log/log-section.tsx'
import { Overview } from './overview.tsx'
import { Notice } from './parts/notice.tsx'
import { useRoute } from './route.ts'
import type { Route } from './route.ts'
import { SearchSection } from './search/search-section.tsx'
import { ConnectionBanner } from './status.tsx'
import { visible } from './parts/foreign.tsx'
import { MonitorDetail } from './monitors/monitor-detail.tsx'
import { MonitorList } from './monitors/monitor-list.tsx'
import { GroupDetail } from './groups/group-detail.tsx'
import { GroupList } from './groups/group-list.tsx'
import { RunDetail } from './runs/run-detail.tsx'
import { RunList } from './runs/run-list.tsx'
import { FindAllDetail } from './find-alls/find-all-detail.tsx'
import { FindAllList } from './find-alls/find-all-list.tsx'

/** The whole page. */
export function App(): ReactNode {
  const { fetchDocument } = useDashboard()
  const route = useRoute()
  const [quotation, setQuotation] = useState<Quotation>()
  const close = useCallback(() => setQuotation(undefined), [])
  const main = useRef<HTMLElement>(null)
  useTitleAndFocus(route, main)

  return (
    <OpenQuotation value={setQuotation}>
      <a className="skip" href="#main" onClick={(event) => focusMain(event, main.current)}>
        Skip to the content
      </a>
      <Header section={route.section} />
      <ConnectionBanner />
      <FiringAnnouncement />
      <main id="main" ref={main} tabIndex={-1}>
        <Failures key={placeOf(route)}>
          <Section route={route} />
        </Failures>
      </main>
      <DocumentDialog quotation={quotation} fetchDocument={fetchDocument} onClose={close} />
    </OpenQuotation>
  )
}

const Section = memo(function Section({ route }: { readonly route: Route }): ReactNode {
  switch (route.section) {
    case 'overview':
      return <Overview />
    case 'monitors':
      return <MonitorsSection monitor={route.monitor} />
    case 'groups':
      return <GroupsSection group={route.group} run={route.run} />
    case 'runs':
      return <RunsSection run={route.run} />
    case 'find-alls':
      return <FindAllsSection findAll={route.findAll} />
    case 'alerts':
      return <AlertsSection />
    case 'search':
      return <SearchSection query={route.query} />
    case 'log':
      return <LogSection />
    default:
      return (
        <div className="column">
          <h1 tabIndex={-1}>Not found</h1>
          <Notice icon="question" title="This address leads nowhere">
            <p>
              <a href="#/">To the overview</a>
            </p>
          </Notice>
        </div>
      )
  }
})

/** All monitors, and one of them. */
function MonitorsSection({ monitor }: { readonly monitor: string | undefined }): ReactNode {
  return (
    <ListAndDetail
      title="Monitors"
      back="#/monitors"
      list={<MonitorList selected={monitor} />}
      detail={monitor === undefined ? undefined : <MonitorDetail key={monitor} monitor={monitor} />}
      hint="Choose a monitor to see what it has found, when, and where it says so."
    />
  )
}

/** All task groups, and one of them. */
function GroupsSection({
  group,
  run,
}: {
  readonly group: string | undefined
  readonly run: string | undefined
}): ReactNode {
  return (
    <ListAndDetail
      title="Task groups"
      back="#/groups"
      list={<GroupList selected={group} />}
      detail={group === undefined ? undefined : <GroupDetail key={group} group={group} run={run} />}
      hint="Choose a group to see its runs, their outputs and the evidence for each field."
    />
  )
}

/** All runs without a group, and one of them. */
function RunsSection({ run }: { readonly run: string | undefined }): ReactNode {
  return (
    <ListAndDetail
      title="Runs without a group"
      back="#/runs"
      list={<RunList selected={run} />}
      detail={run === undefined ? undefined : <RunDetail key={run} run={run} />}
      hint="Choose a run to see its output and the evidence for each field."
    />
  )
}

/** All FindAll runs, and the candidates of one of them. */
function FindAllsSection({ findAll }: { readonly findAll: string | undefined }): ReactNode {
  return (
    <ListAndDetail
      title="FindAll runs"
      back="#/find-alls"
      list={<FindAllList selected={findAll} />}
      detail={findAll === undefined ? undefined : <FindAllDetail key={findAll} findAll={findAll} />}
      hint="Choose a run to see its candidates and the evidence for each condition."
    />
  )
}

/** A list beside the detail of the chosen item; a narrow screen shows one of them. */
function ListAndDetail({
  title,
  back,
  list,
  detail,
  hint,
}: {
  readonly title: string
  /** The address of the list alone. */
  readonly back: string
  readonly list: ReactNode
  readonly detail: ReactNode | undefined
  /** Shown instead of the detail while nothing is chosen. */
  readonly hint: string
}): ReactNode {
  // The chosen item is the subject of the page then, and its name the first heading.
  const Title = detail === undefined ? 'h1' : 'h2'
  return (
    <div className={detail === undefined ? 'split' : 'split chosen'}>
      <section className="split-list" aria-labelledby="list-title">
        <Title id="list-title" tabIndex={-1}>
          {title}
        </Title>
        {list}
      </section>
      <div className="split-detail">
        {detail === undefined ? (
          <p className="hint">{hint}</p>
        ) : (
          <>
            <a className="back" href={back}>
              ‹ {title}
            </a>
            {detail}
          </>
        )}
      </div>
    </div>
  )
}

/** The link would change the address, which is the route. */
function focusMain(event: { preventDefault(): void }, main: HTMLElement | null): void {
  event.preventDefault()
  main?.focus()
}

/** The part of a route that decides what is shown, without the text of a search. */
function placeOf(route: Route): string {
  if (route.section === 'monitors') return `monitors/${route.monitor ?? ''}`
  if (route.section === 'groups') return `groups/${route.group ?? ''}`
  if (route.section === 'runs') return `runs/${route.run ?? ''}`
  if (route.section === 'find-alls') return `find-alls/${route.findAll ?? ''}`
  return route.section
}

/** The id of the item that is shown; undefined for a section as a whole. */
function idOf(route: Route): string | undefined {
  if (route.section === 'monitors') return route.monitor
  if (route.section === 'groups') return route.group
  if (route.section === 'find-alls') return route.findAll
  return route.section === 'runs' ? route.run : undefined
}

const TITLES: Readonly<Record<Route['section'], string>> = {
  overview: 'Overview',
  monitors: 'Monitors',
  groups: 'Task groups',
  runs: 'Runs',
  'find-alls': 'FindAll',
  alerts: 'Alerts',
  search: 'Search',
  log: 'Log',
  unknown: 'Not found',
}

/** The title names the current section, and the focus moves to its subject: the heading, or the field of the search. */
function useTitleAndFocus(route: Route, main: { readonly current: HTMLElement | null }): void {
  const place = placeOf(route)
  const id = idOf(route)
  const title = `${id === undefined ? '' : `${visible(id)} · `}${TITLES[route.section]} · Rivulet`
  useEffect(() => {
    document.title = title
  }, [title])
  const shown = useRef(place)
  useEffect(() => {
    if (shown.current === place) return
    shown.current = place
    const subject = ['.split-detail h1', 'input[type=search]', 'h1']
      .map((selector) => main.current?.querySelector<HTMLElement>(selector))
      .find((element) => element != null)
    scrollTo(0, 0)
    subject?.focus({ preventScroll: true })
  }, [place, main])
}

/** Replaces a section that failed with an error, so that the others continue. */
class Failures extends Component<{ readonly children: ReactNode }, { readonly error: Error | undefined }> {
  override state: { readonly error: Error | undefined } = { error: undefined }

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children
    return (
      <div className="column">
        <Notice icon="cross" title="This section cannot be shown">
          <p>{this.state.error.message}</p>
          <button type="button" className="button" onClick={() => this.setState({ error: undefined })}>
            Try again
          </button>
        </Notice>
      </div>
    )
  }
}
