import { createElement, useEffect, useState } from 'react'
import type { ReactElement, SyntheticEvent } from 'react'
import type { InspectedView, LiveInspection, LiveStatus, LiveStore } from '../live/live.ts'
import { withEvents } from './inspected-events.ts'
import type { InspectedEvent } from './inspected-events.ts'
import { addInspectorStyles } from './inspector-styles.ts'
import { useStatus } from './use-status.ts'

type ToggleEvent = SyntheticEvent<HTMLDetailsElement>

/** Props of `LiveInspector`. */
export interface LiveInspectorProps {
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
