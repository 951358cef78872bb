import { eventTime } from 'rivulet/log'
import type { Entry, EventLog, ProcessOptions } from 'rivulet/log'
import { until } from './recording-log.ts'

/** Ids of as many monitors as make one of them of little weight. */
export const HUNDRED = Array.from({ length: 100 }, (_, n) => `m${n}`)

/** The length of a window, in ms. */
export const WINDOW = 10_000

/** A window of a monitor: the number of its events, and of those that came after its end. */
interface Window {
  readonly count: number
  readonly late: number
}

/** What {@link counting} appends at the end of a window. */
export interface WindowEnd {
  readonly key: string
  readonly count: number
  readonly complete: boolean
}

/** Counts the completions of each monitor by windows of event time, and those that are late. */
export const counting: ProcessOptions<Window> = {
  version: 1,
  where: ({ type }) => type === 'monitor.completion',
  key: (entry) => `${entry.source} ${Math.floor(eventTime(entry) / WINDOW)}`,
  init: () => ({ count: 0, late: 0 }),
  event({ count, late }, entry, context) {
    if (eventTime(entry) < context.now('event')) return context.set({ count, late: late + 1 })
    context.set({ count: count + 1, late })
    context.timer('end', (Math.floor(eventTime(entry) / WINDOW) + 1) * WINDOW, { clock: 'event' })
  },
  timer({ count }, _due, context) {
    const data: WindowEnd = { key: context.key, count, complete: context.complete }
    context.append({ type: 'unknown', data })
  },
}

/** What the process of {@link counting} has appended. */
export function windowsOf(entries: readonly Entry[]): readonly WindowEnd[] {
  return entries.flatMap(({ type, data }) => (type === 'unknown' ? [data as WindowEnd] : []))
}

/** The number of events that came to the process of {@link counting} after the end of their window. */
export async function lateOf(log: EventLog): Promise<number> {
  const { state } = await log.state<Window>('windows').snapshot()
  return Array.from(state.values()).reduce((sum, { late }) => sum + late, 0)
}

/** Resolves once every reader has read all entries. */
export function readAll(log: EventLog): Promise<void> {
  return until(async () => (await log.stats()).readers.every(({ lag }) => lag.entries === 0))
}
