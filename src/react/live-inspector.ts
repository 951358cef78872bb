import { createElement, useEffect, useState } from 'react'
import type { ReactElement, SyntheticEvent } from 'react'
import type { InspectedEvent, InspectedView, Live, LiveInspection } from '../live/live.ts'
import type { ViewShapes } from '../protocol/live.ts'
import { addInspectorStyles } from './inspector-styles.ts'
import { useStatus } from './use-status.ts'

/** How often the panel is brought up to date while it is open, in ms. */
const INTERVAL = 500

type ToggleEvent = SyntheticEvent<HTMLDetailsElement>

/** Props of `LiveInspector`. */
export interface LiveInspectorProps {
  readonly live: Pick<Live<ViewShapes>, 'status'> & { inspect(): LiveInspection }
  /** Whether it is open at first. Default false. */
  readonly defaultOpen?: boolean
}

/**
 * A panel for developers in the corner of the page: which tab has the connection, how far the gateway is behind, each view with its
 * rows, position and subscribers, and the last frames. A bundler leaves it out where nothing imports it.
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
  const [inspection, setInspection] = useState<LiveInspection>()
  useEffect(addInspectorStyles, [])
  useEffect(() => {
    if (!isOpen) return
    const update = () => setInspection(live.inspect())
    update()
    const timer = setInterval(update, INTERVAL)
    return () => clearInterval(timer)
  }, [live, isOpen])

  return createElement(
    'section',
    { className: 'rivulet-inspector', 'aria-label': 'Live connection' },
    createElement(
      'details',
      { open: isOpen, onToggle: ({ currentTarget }: ToggleEvent) => setOpen(currentTarget.open) },
      createElement('summary', null, `Rivulet: ${state}`),
      isOpen && inspection !== undefined && createElement(Content, { inspection }),
    ),
  )
}

function Content({ inspection }: { readonly inspection: LiveInspection }): ReactElement {
  const { url, role, status, connections, behind, views, events } = inspection
  const error = status.error === undefined ? '' : `, ${status.error.message}`
  return createElement(
    'div',
    // It scrolls, also by the keyboard.
    { className: 'rivulet-inspector-content', role: 'group', 'aria-label': 'Details', tabIndex: 0 },
    createElement(
      'p',
      null,
      `${url}: ${role} of its tabs, ${status.state} since ${clock(status.since)}${error}, ${connections} connections, ${behind} ms behind`,
    ),
    createElement(
      Table,
      {
        caption: `Views (${views.length})`,
        head: ['View', 'State', 'Position', 'Rows', 'Subscribers', 'Gaps', 'Last frame'],
      },
      views.map((view) => createElement(Row, { key: view.address, cells: viewCells(view) })),
    ),
    createElement(
      Table,
      { caption: `Last frames (${events.length})`, head: ['Time', 'Frame', 'View', 'Rows'] },
      events.toReversed().map((event, index) => createElement(Row, { key: index, cells: eventCells(event) })),
    ),
  )
}

function Table({
  caption,
  head,
  children,
}: {
  readonly caption: string
  readonly head: readonly string[]
  readonly children?: readonly ReactElement[]
}): ReactElement {
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

function viewCells({
  address,
  status,
  position = '',
  rows,
  subscribers,
  gaps,
  lastFrame,
}: InspectedView): string[] {
  return [address, status.state, position, `${rows}`, `${subscribers}`, `${gaps}`, clock(lastFrame)]
}

function eventCells({ time, kind, view = '', rows }: InspectedEvent): string[] {
  return [clock(time), kind, view, rows === undefined ? '' : `${rows}`]
}

/** The time of day, in UTC. */
function clock(time: number): string {
  return time === 0 ? '' : new Date(time).toISOString().slice(11, 23)
}
