import { catchError, map, of, throwError } from 'rxjs'
import type { Observable } from 'rxjs'
import { isRetryable } from '../../protocol/backoff.ts'
import { detached } from '../../protocol/detached.ts'
import {
  gapEvent,
  groupEvent,
  groupSource,
  isObject,
  oversizedEvent,
  unknownEvent,
} from '../../protocol/event.ts'
import type { GroupEvent, GroupRunEvent } from '../../protocol/event.ts'
import { parseJson } from '../../protocol/json.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus } from '../../protocol/task.ts'
import { NotFoundError, ValidationError } from '../../transport/errors.ts'
import type { RequestLine, RivuletError } from '../../transport/errors.ts'
import type { ApiRequest, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { GroupPosition } from './position.ts'
import type { Shortfall, StreamKind } from './position.ts'
import { IncompleteStreamError } from '../shapes/incomplete-stream-error.ts'
import { getTaskGroup } from './task-groups.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'
import type { StreamReader } from '../shapes/resumable-stream.ts'
import type { Tracking } from '../shapes/tracking.ts'
import { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'

/** One of the two streams of a group. */
export interface GroupStream {
  readonly kind: StreamKind
  readonly path: string
  readonly query: ApiRequest['query'] & {
    readonly last_event_id?: string | undefined
    readonly status?: RunStatus | undefined
  }
  /** When to complete: `closed` means never. Default `done`. */
  readonly until?: 'done' | 'closed' | undefined
  readonly tracking?: Tracking | undefined
}

/** The least number of clean closes in a row without a new event before an {@link IncompleteStreamError}. */
const MIN_CLOSES = 3

/** How long without a new event until a stream is done, if the number of its events is unknown, in ms. */
const IDLE_TIME = 10_000

/**
 * A group's stream, resumed until the group is done (§4.4, §4.5).
 *
 * If the group is done and events are missing, it errors with an {@link IncompleteStreamError} after the client's `patience`
 * without a new event. If the service rejects a position that it sent, the stream emits `stream.gap` and restarts from the
 * beginning: earlier events are emitted again.
 */
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream & { readonly kind: 'runs' },
): Observable<GroupRunEvent>
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream & { readonly kind: 'events' },
): Observable<GroupEvent>
export function groupStream(context: Context, groupId: string, stream: GroupStream): Observable<GroupEvent> {
  return resumableStream(context, () => new GroupReader(context, groupId, stream, initialPosition(stream)))
}

/** The saved position, else the caller's `last_event_id`. */
function initialPosition({ kind, query, tracking }: GroupStream): GroupPosition {
  if (tracking?.position === undefined) return new GroupPosition(query.last_event_id, query.status, kind)
  const position = GroupPosition.parse(tracking.position, query.status, kind)
  if (position === undefined) throw tracking.unreadable()
  return position
}

/** Reads a group's stream and maintains its position. */
class GroupReader implements StreamReader<GroupEvent> {
  serverDelay: number | undefined
  isNew = false
  readonly #context: Context
  readonly #groupId: string
  readonly #stream: GroupStream
  readonly #position: GroupPosition
  /** When the last new event arrived; at first, when the stream was subscribed. */
  #newAt: number
  /** When the current bytes arrived. */
  #receivedAt = 0
  /** Set while events are missing: the group's status, since when, and after how many clean closes. */
  #shortfall: { readonly status: TaskGroupStatus; readonly since: number; closes: number } | undefined
  /** Whether the service answered the current connection with 204. */
  #hasNoContent = false
  /** Whether the last request was for the group, not for its stream. */
  #isReadingGroup = false
  readonly #groupErrors = new ProtocolErrorLimit()
  readonly #streamErrors = new ProtocolErrorLimit()
  /** Failures since the stream was open. */
  #failures = 0
  /** Whether the service has just rejected the position, and the stream restarts. */
  #isRewound = false

  constructor(context: Context, groupId: string, stream: GroupStream, position: GroupPosition) {
    this.#context = context
    this.#groupId = groupId
    this.#stream = stream
    this.#position = position
    this.#newAt = this.#now
  }

  get source(): string {
    return groupSource(this.#groupId)
  }

  connect(): ApiRequest {
    this.#position.connect()
    this.#isReadingGroup = this.#hasNoContent = this.#isRewound = false
    return this.#request
  }

  get #request() {
    const { path, query } = this.#stream
    return {
      method: 'GET',
      path,
      query: { ...query, last_event_id: this.#position.cursor },
      idempotent: true,
      // The service may send nothing until its own timeout.
      ...(typeof query.timeout === 'number' && { minSilence: query.timeout * 1_000 + 5_000 }),
    } as const
  }

  open(): void {
    this.#streamErrors.reset()
    this.#failures = 0
    this.#stream.tracking?.reached()
  }

  reconnecting(cause: unknown): void {
    if (cause === undefined) return
    this.#failures += 1
    // An open stream may break; it is lost when it cannot be opened again.
    if (this.#failures > 1) this.#stream.tracking?.lost(cause)
  }

  received(): void {
    this.#receivedAt = this.#now
  }

  read({ id, data }: StreamMessage): GroupEvent | undefined {
    const wire = parseJson(data)
    if (wire === undefined && id !== undefined && this.#position.permitsRetry()) return undefined
    const event = this.#eventOf(wire === undefined ? detached(data) : wire, id)
    return this.#track(event, this.#position.advance(event))
  }

  #eventOf(wire: unknown, id: string | undefined): GroupEvent {
    const event = groupEvent(this.#groupId, wire, 'stream', id, this.#receivedAt)
    // The runs stream has no statuses (§4.5).
    if (this.#stream.kind === 'events' || event.type !== 'task_group.status') return event
    return unknownEvent(this.source, wire, 'stream', event.cursor, this.#receivedAt)
  }

  skip(limit: number): GroupEvent {
    const { isNew, cursor, count } = this.#position.skip()
    const event = oversizedEvent(this.source, { limit }, 'stream', cursor, this.#receivedAt)
    // Consecutive skipped events have the same cursor, so their ids need a count.
    return this.#track(count === 1 ? event : { ...event, id: `${event.id}:${count}` }, isNew)
  }

  moveTo(cursor: string): void {
    if (!this.#position.moveTo(cursor)) return
    this.#shortfall = undefined
    this.#newAt = this.#receivedAt
  }

  rewind(error: RivuletError): GroupEvent | undefined {
    if (!(error instanceof ValidationError)) return undefined
    const rejected = this.#position.cursor ?? ''
    if (!this.#position.rewind()) return undefined
    this.#isRewound = true
    const reason = 'the service no longer knows the position; the stream restarts from the beginning'
    const key = `${this.#stream.path} ${rejected}`
    const gap = gapEvent(this.source, { from: null, to: null, reason }, 'stream', key, this.#now)
    return this.#track(gap, false)
  }

  noContent(): void {
    this.#hasNoContent = true
  }

  isRetryable(error: unknown): boolean {
    if (error instanceof IncompleteStreamError) return false
    const errors = this.#isReadingGroup ? this.#groupErrors : this.#streamErrors
    return errors.permitsRetry(error) && (this.#isRewound || isRetryable(error))
  }

  /**
   * Emits whether the stream is complete. Errors with an {@link IncompleteStreamError} if events are missing and no new one
   * came within the client's patience.
   */
  isDone(): Observable<boolean> {
    if (this.#stream.until === 'closed') return of(false)
    const { status } = this.#shortfall ?? {}
    // No new event came, so the last decision still holds. The group is read again before the stream errors.
    if (status !== undefined && !this.#isOutOfPatience) return of(this.#decide(status))
    this.#isReadingGroup = true
    return getTaskGroup(this.#context, this.#groupId).pipe(
      map((group): TaskGroupStatus | undefined => group.status),
      // Some deployments lack this endpoint. If the group itself was deleted, the stream gets a 404 too.
      catchError((error: unknown) =>
        error instanceof NotFoundError ? of(undefined) : throwError(() => error),
      ),
      map((current) => {
        this.#groupErrors.reset()
        return this.#decide(isObject(current) ? current : undefined)
      }),
    )
  }

  #decide(status: TaskGroupStatus | undefined): boolean {
    const isOutOfPatience = this.#isOutOfPatience
    const decision = this.#position.decide(status, this.#hasNoContent)
    if (typeof decision === 'string' || status === undefined) {
      this.#shortfall = undefined
      return decision === 'done' || (decision === 'idle' && this.#isIdle)
    }
    if (isOutOfPatience) throw incompleteGroup(this.#request, decision, this.#context.patience)
    this.#shortfall = {
      status,
      since: this.#shortfall?.since ?? this.#now,
      closes: (this.#shortfall?.closes ?? 0) + 1,
    }
    return false
  }

  get #isIdle(): boolean {
    return this.#now - this.#newAt >= Math.min(IDLE_TIME, this.#context.patience)
  }

  /** Requires several closes, since a suspended process may find its time over at the first one. */
  get #isOutOfPatience(): boolean {
    if (this.#shortfall === undefined) return false
    const { since, closes } = this.#shortfall
    return closes >= MIN_CLOSES && this.#now - since >= this.#context.patience
  }

  get #now(): number {
    return this.#context.scheduler.now()
  }

  #track(event: GroupEvent, isNew: boolean): GroupEvent {
    this.isNew = isNew
    if (isNew) {
      this.#shortfall = undefined
      this.#newAt = this.#receivedAt
    }
    this.#stream.tracking?.entered(event, this.#position.snapshot)
    return event
  }
}

function incompleteGroup(
  request: RequestLine,
  { missing, expected }: Shortfall,
  patience: number,
): IncompleteStreamError {
  const what =
    missing === 0
      ? `the last status of a group of ${expected} ended runs is missing`
      : `${missing} of ${expected} ended runs are missing`
  const advice =
    'subscribe again, without last_event_id if the same are missing, or read a single run with tasks.result'
  return new IncompleteStreamError(request, { missing, expected, what, advice, patience })
}
