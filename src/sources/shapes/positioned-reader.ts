import { catchError, map, of, throwError } from 'rxjs'
import type { Observable } from 'rxjs'
import { isRetryable } from '../../protocol/backoff.ts'
import { detached } from '../../protocol/detached.ts'
import { gapEvent, oversizedEvent } from '../../protocol/event.ts'
import { isObject, parseJson } from '../../protocol/json.ts'
import type { EventOf, ResearchEvent } from '../../protocol/event.ts'
import { NotFoundError, ValidationError } from '../../transport/errors.ts'
import type { RequestError } from '../../transport/errors.ts'
import type { ApiRequest, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { IncompleteStreamError } from './incomplete-stream-error.ts'
import { ProtocolErrorLimit } from './protocol-error-limit.ts'
import type { ResumedPosition, Shortfall } from './resumed-position.ts'
import type { StreamReader } from './resumable-stream.ts'
import type { SourceStream, StreamEvent, StreamItem } from './stream-item.ts'

/** The request of a stream, and when the stream completes. */
export interface StreamRequest {
  readonly path: string
  readonly query: ApiRequest['query']
  readonly betas?: readonly string[] | undefined
  /** When to complete: `closed` means never. Default `done`. */
  readonly until?: 'done' | 'closed' | undefined
}

/** The least number of clean closes in a row without a new event before an {@link IncompleteStreamError}. */
const MIN_CLOSES = 3

/** How long without a new event until a stream is done, if the number of its events is unknown, in ms. */
const IDLE_TIME = 10_000

/** An event that a stream emits on its own. */
type Report = EventOf<'stream.gap'> | EventOf<'stream.oversized'>

/**
 * Reads a stream that the service resumes after the last event id, and maintains its position.
 *
 * If the service rejects a position that it sent, the stream reports a gap and restarts from the beginning. If the resource is
 * done and events are missing, the stream errors with an {@link IncompleteStreamError} once no new event came for as long as the client's
 * option `patience` allows. A subclass makes the events, reads the resource's state, and has the position that decides what is missing.
 */
export abstract class PositionedReader<
  Event extends ResearchEvent,
  State extends object,
> implements StreamReader<Event | Report> {
  serverDelay: number | undefined
  readonly stream: SourceStream
  readonly #context: Context
  readonly #settings: StreamRequest
  readonly #position: ResumedPosition<State>
  /** When the last new event arrived; at first, when the stream was subscribed. */
  #newAt: number
  /** When the current bytes arrived. */
  #receivedAt = 0
  /** Set while events are missing: the resource's state, since when, and after how many clean closes. */
  #shortfall: { readonly state: State; readonly since: number; closes: number } | undefined
  /** Whether the service answered the current connection with 204. */
  #hasNoContent = false
  /** Whether the last request was for the resource, not for its stream. */
  #isReadingState = false
  readonly #stateErrors = new ProtocolErrorLimit()
  readonly #streamErrors = new ProtocolErrorLimit()
  /** Whether the service has just rejected the position, and the stream restarts. */
  #isRewound = false

  constructor(
    context: Context,
    stream: SourceStream,
    settings: StreamRequest,
    position: ResumedPosition<State>,
  ) {
    this.#context = context
    this.stream = stream
    this.#settings = settings
    this.#position = position
    this.#newAt = this.#now
  }

  /** The event of a message. `receivedAt` is Unix time in ms. */
  protected abstract eventOf(wire: unknown, id: string | undefined, receivedAt: number): Event

  /** Reads the resource's state, which may be anything. */
  protected abstract readState(): Observable<State | undefined>

  /** The error for missing events. */
  protected abstract incomplete(
    request: ApiRequest,
    shortfall: Shortfall,
    patience: number,
  ): IncompleteStreamError

  /** Whether to emit the event. Default: every event. */
  protected emits(_event: Event, _isNew: boolean): boolean {
    return true
  }

  get isOver(): boolean {
    return false
  }

  completed(): StreamItem<Event> {
    return { kind: 'caughtUp', stream: this.stream }
  }

  connect(): ApiRequest {
    this.#position.connect()
    this.#isReadingState = this.#hasNoContent = this.#isRewound = false
    return this.#request
  }

  get #request() {
    const { path, query, betas } = this.#settings
    const timeout = query?.['timeout']
    return {
      method: 'GET',
      path,
      query: { ...query, last_event_id: this.#position.cursor },
      ...(betas !== undefined && { betas }),
      idempotent: true,
      // The service may send nothing until its own timeout.
      ...(typeof timeout === 'number' && { minSilence: timeout * 1_000 + 5_000 }),
    } as const
  }

  open(): void {
    this.#streamErrors.reset()
  }

  received(): void {
    this.#receivedAt = this.#now
  }

  read({ id, data }: StreamMessage): StreamEvent<Event> | null | undefined {
    const wire = parseJson(data)
    if (wire === undefined && id !== undefined && this.#position.permitsRetry()) return undefined
    const event = this.eventOf(wire === undefined ? detached(data) : wire, id, this.#receivedAt)
    const isNew = this.#position.advance(event)
    return this.emits(event, isNew) ? this.#arrived(event, isNew) : null
  }

  skip(limit: number): StreamEvent<Report> {
    const { isNew, cursor, count } = this.#position.skip()
    const event = oversizedEvent(this.stream.source, { limit }, 'stream', cursor, this.#receivedAt)
    // Consecutive skipped events have the same cursor, so their ids need a count.
    return this.#arrived(count === 1 ? event : { ...event, id: `${event.id}:${count}` }, isNew)
  }

  moveTo(cursor: string): void {
    if (!this.#position.moveTo(cursor)) return
    this.#shortfall = undefined
    this.#newAt = this.#receivedAt
  }

  rewind(error: RequestError): StreamEvent<Report> | undefined {
    if (!(error instanceof ValidationError)) return undefined
    const rejected = this.#position.cursor ?? ''
    if (!this.#position.rewind()) return undefined
    this.#isRewound = true
    const reason = 'the service no longer knows the position; the stream restarts from the beginning'
    const key = `${this.#settings.path} ${rejected}`
    const gap = gapEvent(this.stream.source, { from: null, to: null, reason }, 'stream', key, this.#now)
    return this.#item(gap, true)
  }

  noContent(): void {
    this.#hasNoContent = true
  }

  isRetryable(error: unknown): boolean {
    if (error instanceof IncompleteStreamError) return false
    const errors = this.#isReadingState ? this.#stateErrors : this.#streamErrors
    return errors.permitsRetry(error) && (this.#isRewound || isRetryable(error))
  }

  /**
   * Emits whether the stream is complete. Errors with an {@link IncompleteStreamError} if events are missing and no new one came for as
   * long as the option `patience` allows.
   */
  isDone(): Observable<boolean> {
    if (this.#settings.until === 'closed') return of(false)
    const { state } = this.#shortfall ?? {}
    // No new event came, so the last decision still holds. The resource is read again before the stream errors.
    if (state !== undefined && !this.#isOutOfPatience) return of(this.#decide(state))
    this.#isReadingState = true
    return this.readState().pipe(
      // Some deployments lack this endpoint. If the resource itself was deleted, the stream gets a 404 too.
      catchError((error: unknown) =>
        error instanceof NotFoundError ? of(undefined) : throwError(() => error),
      ),
      map((current) => {
        this.#stateErrors.reset()
        return this.#decide(isObject(current) ? current : undefined)
      }),
    )
  }

  #decide(state: State | undefined): boolean {
    const isOutOfPatience = this.#isOutOfPatience
    const decision = this.#position.decide(state, this.#hasNoContent)
    if (typeof decision === 'string' || state === undefined) {
      this.#shortfall = undefined
      return decision === 'done' || (decision === 'idle' && this.#isIdle)
    }
    if (isOutOfPatience) throw this.incomplete(this.#request, decision, this.#context.patience)
    this.#shortfall = {
      state,
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

  #arrived<Emitted extends Event | Report>(event: Emitted, isNew: boolean): StreamEvent<Emitted> {
    if (isNew) {
      this.#shortfall = undefined
      this.#newAt = this.#receivedAt
    }
    return this.#item(event, isNew)
  }

  #item<Emitted extends Event | Report>(event: Emitted, isNew: boolean): StreamEvent<Emitted> {
    return { kind: 'event', stream: this.stream, event, position: this.#position.snapshot, isNew }
  }
}
