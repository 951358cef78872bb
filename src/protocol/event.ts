import type {
  AlertFiring,
  AlertInactive,
  AlertKnown,
  AlertLate,
  AlertPending,
  AlertResolved,
  AlertUnknown,
} from './alert.ts'
import type { GatewayRevoked, GatewaySearch, GatewaySession } from './gateway.ts'
import { detached } from './detached.ts'
import type {
  CANDIDATE_CHANGES,
  FindAllCandidateEvent,
  FindAllSchemaEvent,
  FindAllStatusEvent,
} from './find-all.ts'
import { isId, segment } from './id.ts'
import { isObject, isText } from './json.ts'
import { contentHash, instant } from './identity.ts'
import type {
  Monitor,
  MonitorCompletionEvent,
  MonitorErrorEvent,
  MonitorEventStreamEvent,
  MonitorSnapshotEvent,
} from './monitor.ts'
import { RUNS, tagRun } from './run-identity.ts'
import type { RunProgressMessage, RunProgressStats } from './run-trace.ts'
import type { TaskOutput } from './output.ts'
import { rfc3339 } from './timestamp.ts'
import type { JoinResult, StageDropped, WindowResult } from './stage.ts'
import type { ErrorEvent, TaskGroupStatusEvent } from './task-group.ts'
import type { RunInput, TaskRun } from './task.ts'

/**
 * How an event arrived: from the service, from a process over a log (`process`), from the log itself (`log`), or from the application, by
 * `log.append` (`app`).
 */
export type Via = 'poll' | 'stream' | 'webhook' | 'process' | 'log' | 'app'

/** The entry that made a process append an event. */
export interface Cause {
  /** The name of the process. */
  readonly process: string
  /** The source of the entry that it was processing, or that set the timer. */
  readonly source: string
  readonly id: string
  readonly revision: number
  /** The name of the timer, if a timer made it. */
  readonly timer?: string
  /** When that timer was due, in Unix ms. */
  readonly due?: number
  /** The source of the event outside the log, if the processed event was itself appended by another process. */
  readonly origin?: string
  /** Number of processes between this event and an event from outside of the log: 1 for the first. */
  readonly hops: number
}

/** One event. `id`, `source`, `type`, `time` and `data` are CloudEvents 1.0 attributes. */
export interface Envelope<Type extends string, Data> {
  /** Duplicates of an event have the same id, however they arrived. */
  readonly id: string
  /** The resource of the event: `/v1/monitors/{id}`, `/v1/tasks/groups/{id}`, `/v1/tasks/runs/{id}` or `/v1beta/findall/runs/{id}`; `/log` for events of a log itself, `/log/clock` of its clock, `/processes/{name}` of a process; any other for events of the application. */
  readonly source: string
  /** Discriminates `data`. */
  readonly type: Type
  /** Time of the event, in RFC 3339, as the service or the application gave it; null if it gave none. */
  readonly time: string | null
  /** The wire object, in the interface's own names. */
  readonly data: Data
  /** When this process received it, in RFC 3339. */
  readonly received: string
  readonly via: Via
  /** The position to resume from after this event: a `last_event_id` of a group's stream, an `after` of a monitor's. */
  readonly cursor?: string
  /** The entry that caused the event. Only for events that a process has appended. */
  readonly cause?: Cause
}

/** A run that ended: a stream's event unchanged, or a webhook's run in the same shape. */
export interface TaskRunState {
  readonly run: TaskRun
  readonly input?: RunInput | null
  readonly output?: TaskOutput | null
}

/** Events are missing because the service no longer has them. */
export interface StreamGap {
  /** The time or `event_date` of the last event before the gap; null if unknown. */
  readonly from: string | null
  /** The time or `event_date` of the first event after the gap; null if unknown. */
  readonly to: string | null
  readonly reason: string
}

/** An event of a stream exceeded the limit. It was skipped, and the stream continues after it. */
export interface OversizedEvent {
  /** The limit that it exceeded, in characters: `maxEventLength` of the client. */
  readonly limit: number
}

/** A source failed permanently and emits nothing more. The other sources continue. */
export interface SourceFailure {
  /** The library's own errors have `status`, `ref_id`, `method` and `path`. */
  readonly error: Error
}

/** A source of a recorder was reached: for the first time, or again after {@link SourceLost}. */
interface SourceLive {
  /** When it was lost, in RFC 3339; null for the first time. */
  readonly lost: string | null
}

/** A source of a recorder cannot be reached at the moment. The recorder keeps trying. */
interface SourceLost {
  /** Why. */
  readonly message: string
}

/**
 * A source is behind most others of its recording, and the ticks after this entry no longer wait for it: events before their `through` may be
 * still to come. Processes hold the timers and the events of this source until {@link SourceCaughtUp}.
 */
interface SourceBehind {
  /** The time up to which its events have come, in RFC 3339; null if that is not known. */
  readonly through: string | null
  /** When processes stop waiting for it, in RFC 3339: after the recording's `maxHold`. Null for never. */
  readonly until: string | null
}

/** A source that was behind has caught up, after its last such event, or is no longer recorded. The ticks wait for it again. */
interface SourceCaughtUp {
  /** The time up to which its events have come, in RFC 3339; null if it is no longer recorded. */
  readonly through: string | null
}

/** Time passed. The recordings of a log append it each second while events come, and now and then while none come, so that timers of its readers fire. */
interface LogTick {
  /** When, in RFC 3339. */
  readonly at: string
  /**
   * The time up to which all events have come, in RFC 3339: no event that is recorded later is expected to have happened before. It moves the watermark of
   * processes. Null until every stream was read for the first time.
   */
  readonly through: string | null
  /** Whether nothing is missing up to {@link through}. False after a stream was waited for in vain, for the recording's `maxHold`. */
  readonly complete: boolean
}

/** A process is complete up to a time. It appends this for the processes that come `after` it; `source` is `/processes/{name}`. */
interface LogProgress {
  /**
   * The watermark of the process, in RFC 3339: no event that it appends later is expected to have happened before. Null once the process was
   * removed: nothing waits for it from then on.
   */
  readonly through: string | null
  /** Whether nothing is missing up to {@link through}, as in `log.tick`. */
  readonly complete: boolean
  /** The part of a process that runs with `share`; null for a whole one. */
  readonly part: number | null
}

/** The wall clock of a process that writes to a log has jumped, or follows the time of the log again. */
export interface LogClock {
  /**
   * `ahead`: it has jumped forward, and is not believed until this has lasted for ten minutes. `accepted`: these ten minutes are over, and
   * the log follows the clock. `behind`: it was set back, and the time of the log continues by a clock that is never set. `returned`: it
   * has the time of the log again.
   */
  readonly state: 'ahead' | 'accepted' | 'behind' | 'returned'
  /** Difference of the wall clock to the time that the log has expected, in ms. Negative if it is behind. */
  readonly by: number
  /** Time of the log, in Unix ms. */
  readonly at: number
}

/** The retention of a log has deleted entries that a reader had not read. */
export interface LogGap {
  /** The reader's position in the log. */
  readonly from: string
  /** The position at which it continues. */
  readonly to: string
}

/**
 * The type of `data` for each type of event of this package. A new type begins here: the compiler names what else it needs, from
 * `event-types.ts` on.
 */
export interface OwnEventData {
  'monitor.event_stream': MonitorEventStreamEvent
  'monitor.snapshot': MonitorSnapshotEvent
  'monitor.completion': MonitorCompletionEvent
  'monitor.error': MonitorErrorEvent
  'task_group.status': TaskGroupStatusEvent
  'task_run.state': TaskRunState
  /** A single run sends this event and the next one. */
  'task_run.progress_stats': RunProgressStats
  /** `data.type` is the kind of message. */
  'task_run.progress_msg': RunProgressMessage
  /** A FindAll run sends this event and the next six. */
  'findall.status': FindAllStatusEvent
  'findall.candidate.generated': FindAllCandidateEvent
  'findall.candidate.matched': FindAllCandidateEvent
  'findall.candidate.unmatched': FindAllCandidateEvent
  'findall.candidate.discarded': FindAllCandidateEvent
  'findall.candidate.enriched': FindAllCandidateEvent
  'findall.schema.updated': FindAllSchemaEvent
  error: ErrorEvent
  'stream.gap': StreamGap
  /** `cursor` is the position before the event that was skipped. */
  'stream.oversized': OversizedEvent
  /** `source` is the resource that failed. */
  'source.failed': SourceFailure
  /** The monitor was cancelled. It reports nothing more and is no longer polled. */
  'monitor.cancelled': Monitor
  /** `source` is the resource. Only in a log, as the next seven. */
  'source.live': SourceLive
  'source.lost': SourceLost
  'source.behind': SourceBehind
  'source.caught_up': SourceCaughtUp
  'log.tick': LogTick
  'log.progress': LogProgress
  'log.clock': LogClock
  'log.gap': LogGap
  /** Alert rules append this event and the next six: `source` is `/rules/{name}`. */
  'alert.pending': AlertPending
  'alert.inactive': AlertInactive
  'alert.firing': AlertFiring
  'alert.resolved': AlertResolved
  'alert.unknown': AlertUnknown
  'alert.known': AlertKnown
  'alert.late': AlertLate
  /** A gateway appends this event and the next two: `source` is `/subjects/{sub}`. */
  'gateway.search': GatewaySearch
  'gateway.session': GatewaySession
  /** `source` is `/gateway`. */
  'gateway.revoked': GatewayRevoked
  /** A definition of `rivulet/streams` appends this event and the next two: `source` is `/processes/{name}`. */
  'window.result': WindowResult
  'join.result': JoinResult
  'stage.dropped': StageDropped
  /** Something that this version does not know, passed on unchanged. */
  unknown: unknown
}

/** The type of `data` for each type of event. An application may declare types of its own here. */
export interface ResearchEventData extends OwnEventData {}

/** The name of an event's type. */
export type ResearchEventType = keyof ResearchEventData

/** Every event, as one union discriminated by `type`. */
export type ResearchEvent = {
  [Type in ResearchEventType]: Envelope<Type, ResearchEventData[Type]>
}[ResearchEventType]

/** The member of the union with this type. */
export type EventOf<Type extends ResearchEventType> = Envelope<Type, ResearchEventData[Type]>

/** An event that `monitors.events` emits: the events in a monitor's list (§2.2), discriminated by `type`. */
export type ListedMonitorEvent =
  | EventOf<'monitor.event_stream'>
  | EventOf<'monitor.snapshot'>
  | EventOf<'monitor.completion'>
  | EventOf<'monitor.error'>
  | EventOf<'unknown'>

/** An event that `monitors.follow` emits, discriminated by `type`. */
export type FollowedMonitorEvent = ListedMonitorEvent | EventOf<'monitor.cancelled'> | EventOf<'stream.gap'>

/** The event of a message of a group's streams (§4.4, §4.5). */
type GroupMessageEvent =
  | EventOf<'task_group.status'>
  | EventOf<'task_run.state'>
  | EventOf<'error'>
  | EventOf<'unknown'>

/** An event that `taskGroups.events` emits, discriminated by `type`. */
export type GroupEvent = GroupMessageEvent | EventOf<'stream.gap'> | EventOf<'stream.oversized'>

/** An event that `tasks.events` emits, discriminated by `type`. */
export type RunEvent =
  | EventOf<'task_run.state'>
  | EventOf<'task_run.progress_stats'>
  | EventOf<'task_run.progress_msg'>
  | EventOf<'error'>
  | EventOf<'stream.oversized'>
  | EventOf<'unknown'>

/** An event that `findAll.events` emits, discriminated by `type`. */
export type FindAllEvent =
  | EventOf<'findall.status'>
  | { [Change in (typeof CANDIDATE_CHANGES)[number]]: EventOf<Change> }[(typeof CANDIDATE_CHANGES)[number]]
  | EventOf<'findall.schema.updated'>
  | EventOf<'error'>
  | EventOf<'stream.gap'>
  | EventOf<'stream.oversized'>
  | EventOf<'unknown'>

/** An event that `taskGroups.runs` emits, discriminated by `type`. */
export type GroupRunEvent = Exclude<GroupEvent, EventOf<'task_group.status'>>

/** `/v1/monitors/{id}`: the source of a monitor's events. */
export function monitorSource(monitorId: string): string {
  // Cached, since it is called for each event of a page.
  if (monitorId !== lastMonitor.id)
    lastMonitor = { id: monitorId, source: `/v1/monitors/${segment(monitorId)}` }
  return lastMonitor.source
}

let lastMonitor = { id: '', source: '/v1/monitors/' }

/** `/v1/tasks/groups/{id}`: the source of a group's events. */
export function groupSource(groupId: string): string {
  return `/v1/tasks/groups/${segment(groupId)}`
}

/** `/v1/tasks/runs/{id}`: the source of a run's events. */
export function runSource(runId: string): string {
  return RUNS + segment(runId)
}

/** Creates an envelope. Two literals, since a spread costs as much as the rest; only here, so that events have two shapes. */
export function envelope<Type extends ResearchEventType>(
  type: Type,
  id: string,
  source: string,
  time: string | null,
  data: ResearchEventData[Type],
  receivedAt: number,
  via: Via,
  cursor: string | undefined,
): EventOf<Type> {
  const received = rfc3339(receivedAt)
  if (cursor === undefined) return { id, source, type, time, data, received, via }
  return { id, source, type, time, data, received, via, cursor }
}

/** The event of a listed or fetched monitor event (§2.2). `receivedAt` is Unix time in ms. */
export function monitorEvent(
  monitorId: string,
  wire: unknown,
  via: Via,
  receivedAt: number = Date.now(),
): ListedMonitorEvent {
  const source = monitorSource(monitorId)
  if (!isObject(wire)) return unknownEvent(source, wire, via, undefined, receivedAt)
  // A webhook may be ahead of the list. Resuming after it would miss the events before it in the list.
  const cursorOf = (id: string) => (via === 'webhook' ? undefined : id)
  // Only the kind is checked. The interface guarantees the other fields.
  switch (wire['event_type'] ?? impliedKind(wire)) {
    case 'event_stream': {
      const id = wire['event_id']
      if (!isWellFormedText(id)) break
      const data = wire as unknown as MonitorEventStreamEvent
      return envelope('monitor.event_stream', id, source, null, data, receivedAt, via, cursorOf(id))
    }
    case 'snapshot': {
      const id = wire['event_id']
      if (!isWellFormedText(id)) break
      const data = wire as unknown as MonitorSnapshotEvent
      return envelope('monitor.snapshot', id, source, null, data, receivedAt, via, cursorOf(id))
    }
    case 'completion': {
      const { timestamp } = wire
      if (!isWellFormedText(timestamp)) break
      const id = `${monitorId}:completion:${instant(timestamp)}`
      const data = wire as unknown as MonitorCompletionEvent
      return envelope('monitor.completion', id, source, timestamp, data, receivedAt, via, cursorOf(id))
    }
    case 'error': {
      const { timestamp } = wire
      if (!isWellFormedText(timestamp)) break
      const message = isWellFormedText(wire['error_message']) ? wire['error_message'] : ''
      // Two executions may fail within the precision of the timestamp.
      const id = `${monitorId}:error:${instant(timestamp)}:${contentHash(message)}`
      const data = wire as unknown as MonitorErrorEvent
      return envelope('monitor.error', id, source, timestamp, data, receivedAt, via, cursorOf(id))
    }
    default:
  }
  return unknownEvent(source, wire, via, undefined, receivedAt)
}

/** The kind of an event without `event_type`, which defaults to the variant's own name (§2.2). */
function impliedKind(wire: Readonly<Record<string, unknown>>): string | undefined {
  if ('changed_output' in wire) return 'snapshot'
  if ('output' in wire) return 'event_stream'
  if ('error_message' in wire) return 'error'
  if ('timestamp' in wire && !DETECTED.some((field) => field in wire)) return 'completion'
  return undefined
}

/**
 * The execution that the data of an event or a webhook names (§2.2): its `event_group_id`, or its `monitor_group_id`, as descriptions of
 * the public service call it too. That name is beyond the interface document.
 */
export function executionOf(data: unknown): unknown {
  return isObject(data) ? (data['event_group_id'] ?? data['monitor_group_id']) : undefined
}

/** Fields of the variants that report a change. */
const DETECTED = ['event_id', 'event_group_id', 'monitor_group_id', 'event_date', 'previous_output']

/** The event of a message of a group's streams (§4.4, §4.5). `position` is the message's own `id:`. */
export function groupEvent(
  groupId: string,
  wire: unknown,
  via: Via,
  position?: string,
  receivedAt: number = Date.now(),
): GroupMessageEvent {
  const eventId = isObject(wire) ? wire['event_id'] : undefined
  const cursor = isWellFormedText(eventId) ? eventId : position && detached(position)
  if (!isObject(wire)) return unknownEvent(groupSource(groupId), wire, via, cursor, receivedAt)
  switch (wire['type']) {
    case 'task_run.state': {
      const run = wire['run']
      if (!isRun(run)) break
      return runEvent(wire as unknown as TaskRunState, via, cursor, receivedAt)
    }
    case 'task_group_status': {
      const status = wire['status']
      if (!isObject(status) || cursor === undefined) break
      const time = isWellFormedText(status['modified_at']) ? status['modified_at'] : null
      const data = wire as unknown as TaskGroupStatusEvent
      return envelope('task_group.status', cursor, groupSource(groupId), time, data, receivedAt, via, cursor)
    }
    case 'error': {
      const problem = wire['error']
      if (!isObject(problem)) break
      // Not the `event_id`, since each of a group's streams numbers its events separately.
      const id = `${groupId}:error:${isWellFormedText(problem['ref_id']) ? problem['ref_id'] : contentHash(wire)}`
      const data = wire as unknown as ErrorEvent
      return envelope('error', id, groupSource(groupId), null, data, receivedAt, via, cursor)
    }
    default:
  }
  return unknownEvent(groupSource(groupId), wire, via, cursor, receivedAt)
}

/**
 * The event of a run that ended. Its id is made from the run and its status, since two streams and a webhook number
 * duplicates differently. A run completes once. It may reach another status again, after a retry within its group, so
 * `modified_at` is then part of the id.
 */
export function runEvent(
  data: TaskRunState,
  via: Via,
  cursor?: string,
  receivedAt: number = Date.now(),
): EventOf<'task_run.state'> {
  const { run } = data
  const { run_id, status, modified_at } = run
  const source = runSource(run_id)
  const time = isWellFormedText(modified_at) ? modified_at : null
  const once = status === 'completed' || time === null
  const id = once ? `${run_id}:${status}` : `${run_id}:${status}:${instant(time)}`
  const event = envelope('task_run.state', id, source, time, data, receivedAt, via, cursor)
  // A longer source contains an escaped id.
  return once && source.length === RUNS.length + run_id.length ? tagRun(event, run) : event
}

/** Whether the value can be a task run: an object with an id that can be part of a path, and a status. */
export function isRun(value: unknown): value is TaskRun {
  return isObject(value) && isId(value['run_id']) && isWellFormedText(value['status'])
}

/** Reports that the service lost events of a source. `key` distinguishes this gap from others of the source. */
export function gapEvent(
  source: string,
  data: StreamGap,
  via: Via,
  key: string,
  receivedAt: number = Date.now(),
): EventOf<'stream.gap'> {
  const id = `${source}:gap:${contentHash([data, key])}`
  return envelope('stream.gap', id, source, null, data, receivedAt, via, undefined)
}

/** Reports an event that exceeds the limit. `cursor` is the position before it. */
export function oversizedEvent(
  source: string,
  data: OversizedEvent,
  via: Via,
  cursor: string | undefined,
  receivedAt: number = Date.now(),
): EventOf<'stream.oversized'> {
  const id = `${source}:oversized:${contentHash(cursor ?? null)}`
  return envelope('stream.oversized', id, source, null, data, receivedAt, via, cursor)
}

/** Reports that a source failed permanently. Each failure has its own id, since the service gives it none. */
export function failureEvent(
  source: string,
  data: SourceFailure,
  via: Via,
  receivedAt: number = Date.now(),
): EventOf<'source.failed'> {
  const { name, message } = data.error
  const id = `${source}:failed:${contentHash([name, message, receivedAt])}`
  return envelope('source.failed', id, source, null, data, receivedAt, via, undefined)
}

/** Reports that a monitor was cancelled (§3). */
export function cancelledEvent(
  monitorId: string,
  monitor: Monitor,
  via: Via,
  receivedAt: number = Date.now(),
): EventOf<'monitor.cancelled'> {
  const id = `${monitorId}:cancelled`
  return envelope(
    'monitor.cancelled',
    id,
    monitorSource(monitorId),
    null,
    monitor,
    receivedAt,
    via,
    undefined,
  )
}

/** Passes on an unknown event. Its id is made from the content, since the scope of an `event_id` in it is not known. */
export function unknownEvent(
  source: string,
  wire: unknown,
  via: Via,
  cursor?: string,
  receivedAt: number = Date.now(),
): EventOf<'unknown'> {
  const id = `${source}:unknown:${contentHash(wire)}`
  return envelope('unknown', id, source, null, wire, receivedAt, via, cursor)
}

/** The fields of a run or a candidate that one event can have and its duplicate lack, a bit each. */
const OUTPUT = 1
const ERROR = 2
const INPUT = 4
const BASIS = 32

/**
 * How complete the event is, as bits, which are compared with the bits of a duplicate: a run's output, error and input, or a candidate's
 * output and basis. A run's webhook has its error but not its output; a stream has its output and its input when asked. A candidate's
 * webhook may lack fields that the stream has.
 */
export function completeness(event: ResearchEvent): number {
  switch (event.type) {
    case 'task_run.state': {
      const { run, input, output } = event.data
      return (output == null ? 0 : OUTPUT) | (run.error == null ? 0 : ERROR) | (input == null ? 0 : INPUT)
    }
    case 'findall.candidate.generated':
    case 'findall.candidate.matched':
    case 'findall.candidate.unmatched':
    case 'findall.candidate.discarded':
    case 'findall.candidate.enriched': {
      const { output, basis } = event.data.data
      return (output == null ? 0 : OUTPUT) | (basis == null ? 0 : BASIS)
    }
    default:
      return 0
  }
}

/** Whether the first completeness has every bit of the second. */
export function isAtLeastAsComplete(first: number, second: number): boolean {
  return (second & ~first) === 0
}

/** Non-empty text that UTF-8 preserves. Two different texts with lone surrogates would become equal. */
export function isWellFormedText(value: unknown): value is string {
  return isText(value) && value.isWellFormed()
}
