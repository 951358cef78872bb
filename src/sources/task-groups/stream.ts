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
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus } from '../../protocol/task.ts'
import { NotFoundError, ValidationError } from '../../transport/errors.ts'
import type { RivuletError } from '../../transport/errors.ts'
import type { ApiRequest, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { GroupPosition } from './position.ts'
import type { StreamEnd } from './position.ts'
import { IncompleteStreamError } from './incomplete-stream-error.ts'
import { getTaskGroup } from './task-groups.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'
import type { StreamReader } from '../shapes/resumable-stream.ts'
import type { Tracking } from '../shapes/tracking.ts'
import { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'

/** One of a group's two streams. */
export interface GroupStream {
  readonly end: StreamEnd
  readonly path: string
  readonly query: ApiRequest['query'] & {
    readonly last_event_id?: string | undefined
    readonly status?: RunStatus | undefined
  }
  /** `closed` follows the group beyond its end. Default `done`. */
  readonly until?: 'done' | 'closed' | undefined
  readonly tracking?: Tracking | undefined
}

/** Closes in a row without a new event that a stream has to have before it is incomplete for good. */
const FRUITLESS = 3

/** How long a stream has to be without a new event to be done, where nothing says how many events it has, in ms. */
const QUIET = 10_000

/**
 * A group's stream, resumed by itself until the group is done (§4.4, §4.5).
 *
 * Where the group is done and its stream keeps something back, it errors with an {@link IncompleteStreamError} once nothing
 * new came for the client's `patience`. Where the service refuses a position that it gave out, a `stream.gap` says that the
 * stream begins again: what was emitted before comes again.
 */
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream & { readonly end: 'runs' },
): Observable<GroupRunEvent>
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream & { readonly end: 'statuses' },
): Observable<GroupEvent>
export function groupStream(context: Context, groupId: string, stream: GroupStream): Observable<GroupEvent> {
  return resumableStream(context, () => new GroupReader(context, groupId, stream, positionOf(stream)))
}

/** Where the stream goes on: at the position that was kept, else where it was asked to. */
function positionOf({ end, query, tracking }: GroupStream): GroupPosition {
  if (tracking?.position === undefined) return new GroupPosition(query.last_event_id, query.status, end)
  const position = GroupPosition.parse(tracking.position, query.status, end)
  if (position === undefined) throw tracking.unreadable()
  return position
}

/** Reads a group's stream, and keeps the position as it goes. */
class GroupReader implements StreamReader<GroupEvent> {
  serverDelay: number | undefined
  isNew = false
  readonly #context: Context
  readonly #groupId: string
  readonly #stream: GroupStream
  readonly #position: GroupPosition
  /** When the stream was opened first, or its last new event came. */
  #newAt: number
  /** When the bytes came that are being read. */
  #receivedAt = 0
  /** The group's status that says that events are missing, since when, and how many closes have said so. */
  #shortfall: { readonly status: TaskGroupStatus; readonly since: number; closes: number } | undefined
  /** Whether the present connection was answered with 204. */
  #isRefused = false
  /** Whether the service was just asked for the group, and not for its stream. */
  #isAsking = false
  readonly #groupAnswers = new ProtocolErrorLimit()
  readonly #streamAnswers = new ProtocolErrorLimit()
  /** Whether the position was just refused, and the stream begins again. */
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
    this.#position.opened()
    this.#isAsking = this.#isRefused = this.#isRewound = false
    return this.#request
  }

  get #request() {
    const { path, query } = this.#stream
    return {
      method: 'GET',
      path,
      query: { ...query, last_event_id: this.#position.cursor },
      idempotent: true,
      // The service may be silent for as long as it was asked to bear.
      ...(typeof query.timeout === 'number' && {
        timeouts: { silence: Math.max(query.timeout * 1_000 + 5_000, 60_000) },
      }),
    } as const
  }

  open(): void {
    this.#streamAnswers.reset()
  }

  received(): void {
    this.#receivedAt = this.#now
  }

  read({ id, data }: StreamMessage): GroupEvent | undefined {
    const wire = parsed(data)
    if (wire === undefined && id !== undefined && this.#position.mayBeBroken()) return undefined
    const event = this.#eventOf(wire === undefined ? detached(data) : wire, id)
    return this.#entered(event, this.#position.advance(event))
  }

  #eventOf(wire: unknown, id: string | undefined): GroupEvent {
    const event = groupEvent(this.#groupId, wire, 'stream', id, this.#receivedAt)
    // The runs stream has no statuses (§4.5).
    if (this.#stream.end === 'statuses' || event.type !== 'task_group.status') return event
    return unknownEvent(this.source, wire, 'stream', event.cursor, this.#receivedAt)
  }

  skip(limit: number): GroupEvent {
    const { isNew, cursor, count } = this.#position.skip()
    const event = oversizedEvent(this.source, { limit }, 'stream', cursor, this.#receivedAt)
    // Several in a row have the same position before them.
    return this.#entered(count === 1 ? event : { ...event, id: `${event.id}:${count}` }, isNew)
  }

  moveTo(cursor: string): void {
    if (!this.#position.moveTo(cursor)) return
    this.#shortfall = undefined
    this.#newAt = this.#receivedAt
  }

  rewind(error: RivuletError): GroupEvent | undefined {
    if (!(error instanceof ValidationError)) return undefined
    const lost = this.#position.cursor ?? ''
    if (!this.#position.rewind()) return undefined
    this.#isRewound = true
    const reason = 'the service no longer knows the position, the stream begins again'
    const place = `${this.#stream.path} ${lost}`
    const gap = gapEvent(this.source, { from: null, to: null, reason }, 'stream', place, this.#now)
    return this.#entered(gap, false)
  }

  noContent(): void {
    this.#isRefused = true
  }

  isRetryable(error: unknown): boolean {
    if (error instanceof IncompleteStreamError) return false
    const answers = this.#isAsking ? this.#groupAnswers : this.#streamAnswers
    return answers.permitsRetry(error) && (this.#isRewound || isRetryable(error))
  }

  /**
   * Whether all was sent that there is, after a clean close. Errors with an {@link IncompleteStreamError} where it was not,
   * and nothing new came for the client's patience.
   */
  isDone(): Observable<boolean> {
    if (this.#stream.until === 'closed') return of(false)
    const { status } = this.#shortfall ?? {}
    // What was missing is missing still. The group is asked again before the stream is given up.
    if (status !== undefined && !this.#isOutOfPatience) return of(this.#decide(status))
    this.#isAsking = true
    return getTaskGroup(this.#context, this.#groupId).pipe(
      map((group): TaskGroupStatus | undefined => group.status),
      // Not every deployment has this endpoint; and where it is the group that is gone, the stream will say so.
      catchError((error: unknown) =>
        error instanceof NotFoundError ? of(undefined) : throwError(() => error),
      ),
      map((current) => {
        this.#groupAnswers.reset()
        return this.#decide(isObject(current) ? current : undefined)
      }),
    )
  }

  #decide(status: TaskGroupStatus | undefined): boolean {
    const isOutOfPatience = this.#isOutOfPatience
    const verdict = this.#position.verdict(status, this.#isRefused)
    if (typeof verdict === 'string' || status === undefined) {
      this.#shortfall = undefined
      return verdict === 'done' || (verdict === 'quiet' && this.#isQuiet)
    }
    if (isOutOfPatience) throw new IncompleteStreamError(this.#request, verdict, this.#context.patience)
    this.#shortfall = {
      status,
      since: this.#shortfall?.since ?? this.#now,
      closes: (this.#shortfall?.closes ?? 0) + 1,
    }
    return false
  }

  get #isQuiet(): boolean {
    return this.#now - this.#newAt >= Math.min(QUIET, this.#context.patience)
  }

  /** Several closes are asked for, since a process that was suspended may find its time over at the first. */
  get #isOutOfPatience(): boolean {
    if (this.#shortfall === undefined) return false
    const { since, closes } = this.#shortfall
    return closes >= FRUITLESS && this.#now - since >= this.#context.patience
  }

  get #now(): number {
    return this.#context.scheduler.now()
  }

  #entered(event: GroupEvent, isNew: boolean): GroupEvent {
    this.isNew = isNew
    if (isNew) {
      this.#shortfall = undefined
      this.#newAt = this.#receivedAt
    }
    this.#stream.tracking?.entered(event, this.#position.place)
    return event
  }
}

/** Undefined for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
