import type { InspectedView, LiveInspection } from '../live/live.ts'

/** A change of a view. */
export interface InspectedEvent {
  /** Time of the change, Unix ms. */
  readonly time: number
  readonly view: string
  readonly text: string
}

/** How many of them a developer sees. */
const EVENTS = 50

/** The last events, newest first, with those by which one inspection became the next one. */
export function withEvents(
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
