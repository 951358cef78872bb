import { isObject } from '../../protocol/json.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { bounded } from './bounded.ts'
import { idOfSource, pathPart } from './resource.ts'

/** The types of the events that a single run sends while it is running. */
export const PROGRESS_TYPES = ['task_run.progress_stats', 'task_run.progress_msg'] as const

/** The entry of one of them. */
export type ProgressEntry = EntryOf<(typeof PROGRESS_TYPES)[number]>

/** A message of a run's trace. */
export interface TraceMessage {
  /** Type of the message, such as `task_run.progress_msg.search`. */
  readonly type: string
  /** The text, shortened to about 1,000 bytes. */
  readonly message: string
  /** Time of the message, in RFC 3339, as the service gave it; null if it gave none. */
  readonly time: string | null
}

/** How far a run is. */
export interface RunMeter {
  /** 0 to 100; null before the first one. */
  readonly meter: number | null
  /** Null if the service did not send it. */
  readonly sourcesRead: number | null
  /** Null if the service did not send it. */
  readonly sourcesConsidered: number | null
}

/** The progress of a run without progress events. */
export const NO_METER: RunMeter = { meter: null, sourcesRead: null, sourcesConsidered: null }

/** Whether the entry is of a run's progress. */
export function isProgress(entry: EntryOf<'task_run.state'> | ProgressEntry): entry is ProgressEntry {
  return entry.type !== 'task_run.state'
}

/** The path of the run whose progress this is. */
export function pathOfProgress({ source }: ProgressEntry): readonly string[] | undefined {
  const run = idOfSource(source, '/v1/tasks/runs/')
  return run === undefined ? undefined : [pathPart(run)]
}

/** The meter after an entry. */
export function meterAfter(before: RunMeter, { type, data }: ProgressEntry): RunMeter {
  if (type !== 'task_run.progress_stats' || !isObject(data)) return before
  const stats: unknown = data.source_stats
  const meter = numberOf(data.progress_meter)
  return {
    meter: meter === null ? before.meter : Math.min(100, meter),
    sourcesRead: numberOf(isObject(stats) ? stats['num_sources_read'] : null),
    sourcesConsidered: numberOf(isObject(stats) ? stats['num_sources_considered'] : null),
  }
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null
}

/** The most that is kept of a message, in bytes. */
const MAX_MESSAGE = 1_536

/** The most that is kept of a type and of a time, in characters. */
const MAX_NAME = 64

/** The message of an entry; undefined for none. */
export function messageOf({ type, data, time }: ProgressEntry): TraceMessage | undefined {
  if (type !== 'task_run.progress_msg' || !isObject(data)) return undefined
  const { message, type: kind }: { readonly message: unknown; readonly type: unknown } = data
  if (typeof message !== 'string') return undefined
  return {
    type: typeof kind === 'string' && kind.length <= MAX_NAME ? kind : type,
    message: bounded(message, MAX_MESSAGE, '').value,
    time: time === null || time.length > MAX_NAME ? null : time,
  }
}
