import type { EventOf } from '../../protocol/event.ts'
import { processSource } from '../../protocol/log-event.ts'
import { isObject } from '../../protocol/json.ts'
import { advanced, parsedTime } from '../../streams/clocks.ts'
import type { Clocks } from '../../streams/clocks.ts'
import { holdsPast, leaving } from '../../streams/holds.ts'
import type { Entry } from '../store/entry.ts'
import { partName } from '../consume/part-name.ts'
import { PROCESS_PARTS } from './process-parts.ts'

/** The last progress that a process, or the recorder, has reported. */
export interface ReportedProgress {
  /** Its watermark, in Unix ms; `Infinity` if it was removed. */
  readonly through: number
  readonly complete: boolean
}

/** The inputs of the time of a process that comes after others: the last tick, and the progress of each process by its name in the store. */
export interface Inputs {
  readonly ticks: ReportedProgress
  readonly processes: ReadonlyMap<string, ReportedProgress>
}

/** The time of a process: its clocks, and what moves them if it comes after others. */
export interface ProcessTime {
  readonly clocks: Clocks
  readonly inputs?: Inputs | undefined
}

/** The time before the first entry, or the first one since it comes after these processes. */
export function timeAfter(after: readonly string[], { clocks, inputs }: ProcessTime): ProcessTime {
  if (after.length === 0) return { clocks: { ...clocks, holds: holdsPast(clocks.holds, Infinity) } }
  const known = after.flatMap((name) =>
    namesInStore(name).flatMap((each) => {
      const reported = inputs?.processes.get(each)
      return reported === undefined ? [] : [[each, reported] as const]
    }),
  )
  const ticks = inputs?.ticks ?? { through: clocks.event, complete: clocks.complete }
  return { clocks, inputs: { ticks, processes: new Map(known) } }
}

/**
 * The time after an entry. The event time of a process that comes after others is the least of theirs and of the ticks. It stands until each of
 * them has reported its progress, and never goes back.
 */
export function movedTime(
  after: readonly string[],
  { clocks, inputs }: ProcessTime,
  entry: Entry,
): ProcessTime {
  if (inputs === undefined) return { clocks: advanced(clocks, entry, entry.recorded) }
  const { ticks } = inputs
  const ticked = advanced(
    { ...clocks, event: ticks.through, complete: ticks.complete },
    entry,
    entry.recorded,
  )
  const { recorded } = ticked
  // What the others make of its events is still to come.
  const holds =
    entry.type === 'source.caught_up' ? leaving(clocks.holds, entry.source, ticks.through) : ticked.holds
  const processes =
    entry.type === 'log.progress' ? withProgress(after, inputs.processes, entry) : inputs.processes
  if (ticked.event === ticks.through && ticked.complete === ticks.complete && processes === inputs.processes)
    return { clocks: { ...clocks, recorded, holds }, inputs }
  const others = after.reduce((time, name) => Math.min(time, throughOf(name, processes)), Infinity)
  const event = Math.max(clocks.event, Math.min(ticked.event, others, recorded))
  const complete = ticked.complete && Array.from(processes.values()).every((each) => each.complete)
  return {
    clocks: { event, recorded, complete, holds: holdsPast(holds, others) },
    inputs: { ticks: { through: ticked.event, complete: ticked.complete }, processes },
  }
}

function withProgress(
  after: readonly string[],
  before: ReadonlyMap<string, ReportedProgress>,
  { source, data }: Pick<EventOf<'log.progress'>, 'source' | 'data'>,
): ReadonlyMap<string, ReportedProgress> {
  const name = after.find((each) => processSource(each) === source)
  // Stored by another version perhaps.
  const given: unknown = data
  if (name === undefined || !isObject(given)) return before
  const { part, through, complete } = given
  const [whole = '', ...parts] = namesInStore(name)
  const now = new Map(before)
  if (through === null) {
    for (const each of parts) now.delete(each)
    return now.set(whole, { through: Infinity, complete: true })
  }
  const at = parsedTime(through)
  if (at === undefined) return before
  // It was removed, and runs again.
  if (now.get(whole)?.through === Infinity) now.delete(whole)
  const reader = typeof part === 'number' ? parts[part] : whole
  // An earlier version of it may have been further.
  if (reader === undefined) return before
  const furthest = Math.max(now.get(reader)?.through ?? -Infinity, at)
  const undivided = now.get(whole)
  // It was divided since: its parts know what is missing.
  if (reader !== whole && undivided !== undefined) now.set(whole, { ...undivided, complete: true })
  return now.set(reader, { through: furthest, complete: complete !== false })
}

/** How far a process is. A divided one has come as far as all of its parts, and each of them as far as the whole one before. */
function throughOf(name: string, processes: ReadonlyMap<string, ReportedProgress>): number {
  const [whole = -Infinity, ...parts] = namesInStore(name).map(
    (each) => processes.get(each)?.through ?? -Infinity,
  )
  return Math.max(whole, Math.min(...parts))
}

/** The names that a process has in the store: of the whole one, and of its parts. */
function namesInStore(name: string): readonly string[] {
  const whole = `process:${name}`
  return [whole, ...Array.from({ length: PROCESS_PARTS }, (_, part) => partName(whole, part))]
}
