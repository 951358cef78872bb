import { createElement, useEffect, useState } from 'react'
import type { ReactElement, SyntheticEvent } from 'react'
import type { InspectedView, LiveInspection, LiveStatus, LiveStore } from '../live/live.ts'
import { useStatus } from './use-status.ts'

type ToggleEvent = SyntheticEvent<HTMLDetailsElement>

/** Props of `LiveInspector`. */
export interface LiveInspectorProps {
  /** The connection, of `connect`. */
  readonly live: { readonly status: LiveStore<LiveStatus>; readonly inspect: LiveStore<LiveInspection> }
  /** Whether it is open at first. Default false. */
  readonly defaultOpen?: boolean
}

/** The data that the panel shows, collected since it was opened. */
interface Seen {
  readonly inspection: LiveInspection
  /** Newest first. */
  readonly events: readonly InspectedEvent[]
}

/**
 * A panel for developers in the corner of the page: which tab has the connection, how far the gateway is behind, each view with its rows,
 * position and subscribers, and the changes of each view. A bundler leaves it out if nothing imports it.
 *
 * ```ts
 * import { createElement } from 'react'
 * import type { Live } from 'rivulet/live'
 * import { LiveInspector } from 'rivulet/react'
 *
 * declare const live: Live<{}>
 *
 * const panel = process.env.NODE_ENV === 'production' ? null : createElement(LiveInspector, { live })
 * ```
 */
export function LiveInspector({ live, defaultOpen = false }: LiveInspectorProps): ReactElement {
  const { state } = useStatus(live)
  const [isOpen, setOpen] = useState(defaultOpen)
  const [seen, setSeen] = useState<Seen>()
  useEffect(addInspectorStyles, [])
  useEffect(() => {
    if (!isOpen) return
    const see = (inspection: LiveInspection) =>
      setSeen((last) => ({
        inspection,
        events: last === undefined ? [] : withEvents(last.events, last.inspection, inspection),
      }))
    see(live.inspect.getSnapshot())
    return live.inspect.subscribe(see)
  }, [live, isOpen])

  return createElement(
    'section',
    { className: 'rivulet-inspector', 'aria-label': 'Live connection' },
    createElement(
      'details',
      { open: isOpen, onToggle: ({ currentTarget }: ToggleEvent) => setOpen(currentTarget.open) },
      createElement('summary', null, `Rivulet: ${state}`),
      isOpen && seen !== undefined && createElement(Content, seen),
    ),
  )
}

const VIEW_COLUMNS = ['View', 'State', 'Position', 'Rows', 'Listeners', 'Gaps', 'Last event']
const EVENT_COLUMNS = ['Time', 'View', 'Event']

function Content({ inspection, events }: Seen): ReactElement {
  const { views } = inspection
  const viewRows = views.map((view) => createElement(Row, { key: view.address, cells: viewCells(view) }))
  const eventRows = events.map(({ time, view, text }, index) =>
    createElement(Row, { key: events.length - index, cells: [clock(time), view, text] }),
  )
  return createElement(
    'div',
    // It scrolls, also by the keyboard.
    { className: 'rivulet-inspector-content', role: 'group', 'aria-label': 'Details', tabIndex: 0 },
    createElement('p', null, summaryOf(inspection)),
    createElement(Table, { caption: `Views (${views.length})`, head: VIEW_COLUMNS }, viewRows),
    createElement(Table, { caption: 'Events since this was opened', head: EVENT_COLUMNS }, eventRows),
  )
}

interface TableProps {
  readonly caption: string
  readonly head: readonly string[]
  readonly children?: readonly ReactElement[]
}

function Table({ caption, head, children }: TableProps): ReactElement {
  const columns = head.map((name) => createElement('th', { key: name, scope: 'col' }, name))
  return createElement(
    'table',
    null,
    createElement('caption', null, caption),
    createElement('thead', null, createElement('tr', null, columns)),
    createElement('tbody', null, children),
  )
}

function Row({ cells: [first, ...others] }: { readonly cells: readonly string[] }): ReactElement {
  const cells = others.map((cell, index) => createElement('td', { key: index, title: cell }, cell))
  return createElement('tr', null, createElement('th', { scope: 'row' }, first), cells)
}

function summaryOf({ role, followers, connection }: LiveInspection): string {
  const tabs = `${role}${followers === 0 ? '' : `, ${followers} tabs follow`}`
  if (connection === undefined) return tabs
  const { state, since, lastBytes, behind, failures } = connection
  return `${tabs}; ${state} since ${clock(since)}, last bytes ${clock(lastBytes)}, ${behind} ms behind, ${failures} failures`
}

function viewCells(view: InspectedView): string[] {
  const { address, status, position = '', rows, listeners, gaps, lastEvent } = view
  return [address, status.state, position, `${rows}`, `${listeners}`, `${gaps}`, clock(lastEvent)]
}

/** The time of day, in UTC. */
function clock(time: number): string {
  return time === 0 ? '' : new Date(time).toISOString().slice(11, 23)
}

/** A change of a view. */
interface InspectedEvent {
  /** Time of the change, Unix ms. */
  readonly time: number
  readonly view: string
  readonly text: string
}

/** How many of them a developer sees. */
const EVENTS = 50

/** The last events, newest first, with those by which one inspection became the next one. */
function withEvents(
  events: readonly InspectedEvent[],
  before: LiveInspection,
  after: LiveInspection,
): readonly InspectedEvent[] {
  const earlier = new Map(before.views.map((view) => [view.address, view]))
  const added = after.views.flatMap((view) => eventsOf(earlier.get(view.address), view))
  const now = new Set(after.views.map(({ address }) => address))
  const dropped = before.views
    .filter(({ address }) => !now.has(address))
    .map(({ address, lastEvent }) => ({ time: lastEvent, view: address, text: 'no longer followed' }))
  const all = [...added, ...dropped].toReversed()
  return all.length === 0 ? events : [...all, ...events].slice(0, EVENTS)
}

function eventsOf(
  before: InspectedView | undefined,
  { address: view, status, position, rows, gaps, lastEvent }: InspectedView,
): InspectedEvent[] {
  const events: InspectedEvent[] = []
  if (before?.status.state !== status.state) {
    const reason = status.error === undefined ? '' : `: ${status.error.message}`
    events.push({
      time: status.since,
      view,
      text: `${before?.status.state ?? 'followed'} → ${status.state}${reason}`,
    })
  }
  if (before !== undefined && before.position !== position) {
    const more = rows - before.rows
    events.push({
      time: lastEvent,
      view,
      text: `changes${more === 0 ? '' : `, ${more > 0 ? '+' : ''}${more} rows`}`,
    })
  }
  if (before !== undefined && gaps > before.gaps) events.push({ time: lastEvent, view, text: 'gap' })
  return events
}

const CSS = `
.rivulet-inspector{position:fixed;inset:auto 1rem 1rem auto;z-index:2147483000;max-width:calc(100vw - 2rem);border:1px solid #6b7280;
border-radius:.5rem;background:#111827;color:#f3f4f6;font:12px/1.5 ui-monospace,monospace}
.rivulet-inspector summary{padding:.25rem .75rem;cursor:pointer}
.rivulet-inspector :focus-visible{outline:2px solid #93c5fd;outline-offset:2px}
.rivulet-inspector-content{max-height:50vh;overflow:auto;padding:0 .75rem .5rem}
.rivulet-inspector table{border-collapse:collapse}
.rivulet-inspector caption{text-align:left;font-weight:700;padding-top:.5rem}
.rivulet-inspector :is(th,td){padding:0 1rem 0 0;text-align:left;font-weight:400;white-space:nowrap}
.rivulet-inspector thead th{color:#d1d5db}
.rivulet-inspector td:nth-child(3){max-width:16rem;overflow:hidden;text-overflow:ellipsis}
`

/**
 * Adds the inspector's styles to the document. A constructed style sheet is allowed by a strict Content Security Policy, unlike a
 * style element. Returns a function that removes them.
 */
function addInspectorStyles(): () => void {
  // Not in jsdom, for instance.
  if (!('adoptedStyleSheets' in document)) return () => {}
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(CSS)
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
  }
}
