import { setImmediate as turn } from 'node:timers/promises'
import type { ResearchEvent } from 'rivulet'
import { eventTime } from 'rivulet/log'
import type { EventLog, ProcessOptions } from 'rivulet/log'
import { entriesOf } from '../entries.ts'
import { tickAt } from '../../support/ticks.ts'

/** The time of the first event, in Unix ms. */
const BEGIN = Date.UTC(2025, 0, 1)

/** The length of a window, in ms. */
export const WINDOW = 10_000

/** An event of a source, some seconds after the beginning. */
export function eventAt(seconds: number, source = '/s'): ResearchEvent {
  const time = new Date(BEGIN + seconds * 1_000).toISOString()
  return { id: `at ${seconds}`, source, type: 'unknown', time, data: {}, received: time, via: 'log' }
}

/** A tick: everything has come up to so many seconds after the beginning, unless it is not `complete`. */
export function tickThrough(seconds: number, complete = true): ResearchEvent {
  return tickAt(Date.now(), BEGIN + seconds * 1_000, complete)
}

/** A process that appends an event for each one of a source, with the same time. */
export function copying(source: string, options: Partial<ProcessOptions<null>> = {}): ProcessOptions<null> {
  return {
    version: 1,
    where: (entry) => entry.type === 'unknown' && entry.source === source,
    key: (entry) => entry.id,
    init: () => null,
    event: (_state, _entry, context) => context.append({ type: 'unknown', data: {} }),
    ...options,
  }
}

/** A window: the number of events in it, and of those that came after its end. */
export interface Window {
  readonly count: number
  readonly late: number
}

/** A process that counts the events of a source by windows of event time, and appends each count at the end of its window. */
export function counting(
  source: string,
  options: Partial<ProcessOptions<Window>> = {},
): ProcessOptions<Window> {
  return {
    version: 1,
    where: (entry) => entry.type === 'unknown' && entry.source === source,
    key: (entry) => String(Math.floor(eventTime(entry) / WINDOW) * WINDOW),
    init: () => ({ count: 0, late: 0 }),
    event({ count, late }, _entry, context) {
      const end = Number(context.key) + WINDOW
      if (end <= context.now('event')) return context.set({ count, late: late + 1 })
      context.set({ count: count + 1, late })
      context.timer('end', end, { clock: 'event' })
    },
    timer: ({ count }, due, context) =>
      context.append({ type: 'unknown', data: { from: (due - WINDOW - BEGIN) / 1_000, count } }),
    ...options,
  }
}

/** The `data` of what a process has appended, without its progress. */
export async function outputsOf(log: EventLog, process: string): Promise<readonly unknown[]> {
  const entries = await entriesOf(log)
  return entries
    .filter(({ type, source }) => type === 'unknown' && source === `/processes/${process}`)
    .map(({ data }) => data)
}

/** The number of events that came to a process of {@link counting} too late. */
export async function lateIn(log: EventLog, process: string): Promise<number> {
  const { state } = await log.state<Window>(process).snapshot()
  return Array.from(state.values()).reduce((sum, { late }) => sum + late, 0)
}

/** Resolves once a process has read all entries. */
export async function caughtUp(log: EventLog, ...processes: readonly string[]): Promise<void> {
  for (;;) {
    const { readers } = await log.stats()
    const behind = processes.filter(
      (name) => readers.find((reader) => reader.name === name)?.lag.entries !== 0,
    )
    if (behind.length === 0) return
    await turn()
  }
}
