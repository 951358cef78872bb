import type { EventOf } from '../../protocol/event.ts'
import { processSource } from '../../protocol/log-event.ts'
import { isObject } from '../../protocol/json.ts'
import { advanced, parsedTime } from '../../streams/clocks.ts'
import type { Clocks } from '../../streams/clocks.ts'
import type { Entry } from '../store/entry.ts'
import { partName } from '../consume/part-name.ts'
import { PROCESS_PARTS } from './process-parts.ts'

/** What a process that comes after others has heard from them. */
export interface Inputs {
  /** The event time by the ticks, in Unix ms. */
  readonly ticks: number
  /** The watermarks of the other processes, in Unix ms, by their names in the store. `Infinity` for one that was removed. */
  readonly processes: ReadonlyMap<string, number>
}

/** The time of a process: its clocks, and what moves them if it comes after others. */
export interface ProcessTime {
  readonly clocks: Clocks
  readonly inputs?: Inputs | undefined
}

/** The time before the first entry, or the first one since it comes after these processes. */
export function timeAfter(after: readonly string[], { clocks, inputs }: ProcessTime): ProcessTime {
  if (after.length === 0) return { clocks }
  const known = after.flatMap((name) =>
    namesInStore(name).flatMap((each) => {
      const through = inputs?.processes.get(each)
      return through === undefined ? [] : [[each, through] as const]
    }),
  )
  return { clocks, inputs: { ticks: inputs?.ticks ?? clocks.event, processes: new Map(known) } }
}

/**
 * The time after an entry. The event time of a process that comes after others is the least of theirs and of the ticks. It stands until each of
 * them has said something, and never goes back.
 */
export function movedTime(
  after: readonly string[],
  { clocks, inputs }: ProcessTime,
  entry: Entry,
): ProcessTime {
  if (inputs === undefined) return { clocks: advanced(clocks, entry, entry.recorded) }
  const ticked = advanced({ ...clocks, event: inputs.ticks }, entry, entry.recorded)
  const processes = entry.type === 'log.progress' ? heard(after, inputs.processes, entry) : inputs.processes
  if (ticked.event === inputs.ticks && processes === inputs.processes) {
    return { clocks: { ...ticked, event: clocks.event }, inputs }
  }
  const least = after.reduce((time, name) => Math.min(time, throughOf(name, processes)), ticked.event)
  return {
    clocks: { ...ticked, event: Math.max(clocks.event, Math.min(least, ticked.recorded)) },
    inputs: { ticks: ticked.event, processes },
  }
}

function heard(
  after: readonly string[],
  before: ReadonlyMap<string, number>,
  { source, data }: Pick<EventOf<'log.progress'>, 'source' | 'data'>,
): ReadonlyMap<string, number> {
  const name = after.find((each) => processSource(each) === source)
  // Stored by another version perhaps.
  const given: unknown = data
  if (name === undefined || !isObject(given)) return before
  const { part, through } = given
  const [whole = '', ...parts] = namesInStore(name)
  const now = new Map(before)
  if (through === null) {
    for (const each of parts) now.delete(each)
    return now.set(whole, Infinity)
  }
  const at = parsedTime(through)
  if (at === undefined) return before
  // It was removed, and runs again.
  if (now.get(whole) === Infinity) now.delete(whole)
  const reader = typeof part === 'number' ? parts[part] : whole
  // An earlier version of it may have been further.
  return reader === undefined ? before : now.set(reader, Math.max(now.get(reader) ?? -Infinity, at))
}

/** How far a process is. A divided one has come as far as all of its parts, and each of them as far as the whole one before. */
function throughOf(name: string, processes: ReadonlyMap<string, number>): number {
  const [whole = -Infinity, ...parts] = namesInStore(name).map((each) => processes.get(each) ?? -Infinity)
  return Math.max(whole, Math.min(...parts))
}

/** The names that a process has in the store: of the whole one, and of its parts. */
function namesInStore(name: string): readonly string[] {
  const whole = `process:${name}`
  return [whole, ...Array.from({ length: PROCESS_PARTS }, (_, part) => partName(whole, part))]
}
