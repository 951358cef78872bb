import { Observable } from 'rxjs'
import type { SchedulerLike, Subscriber } from 'rxjs'
import { reconnect } from '../../../operators/reconnect.ts'
import type { ReconnectConfig, Reconnection } from '../../../operators/reconnect.ts'
import { ConnectionError, ProtocolError } from '../../transport/errors.ts'
import type { RivuletError } from '../../transport/errors.ts'
import type { Flow } from '../../transport/exchange.ts'
import { MAX_RETRY_AFTER } from '../../protocol/retry-after-header.ts'
import type { ApiRequest, MessageSink, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { applyBackpressure } from './backpressure.ts'

/** The differences between kinds of streams: requests, events, the position, and when the stream is done. */
export interface StreamReader<Event> {
  /** The resource, for diagnostics. */
  readonly source: string
  /** The latest `retry:` of the server, in ms. Set by the stream. */
  serverDelay: number | undefined
  /** Whether the last event is new. Only a new event counts as progress. */
  readonly isNew: boolean
  /** Called before each connection. Returns its request, which resumes from the position. */
  connect(): ApiRequest
  /** Called when the service accepts the request and the stream is open. */
  open(): void
  /** Called when bytes arrive, before their messages are read. */
  received(): void
  /**
   * Returns the event of a message; null for a repeat that is not emitted; undefined if the message is malformed and the
   * connection must be retried.
   */
  read(message: StreamMessage): Event | null | undefined
  /** Whether a repeat shows that nothing more comes, so that the connection is closed. Read after each repeat. */
  readonly isOver: boolean
  /** Returns the event that reports a skipped one, which is longer than `limit` characters; null for a repeat. */
  skip(limit: number): Event | null
  /** Called when the service advances the position without an event. */
  moveTo(cursor: string): void
  /** Called when the service answers with 204, a request not to reconnect. */
  noContent(): void
  /** Resets the position to the start if the service rejected it with this error. Returns the event that reports this. */
  rewind(error: RivuletError): Event | undefined
  /** Whether to reconnect after the error. */
  isRetryable(error: unknown): boolean
  /** Called before a reconnection. `cause` is undefined after a clean close. */
  reconnecting(cause: unknown): void
  /** Called after a clean close. Emits whether the stream is complete. An error ends the stream unless it is retryable. */
  isDone(): Observable<boolean>
}

/**
 * An event stream over any number of connections. After each clean close or failure it reconnects from the position, with
 * backoff and the server's `retry:`, until the reader's `isDone` emits true.
 *
 * @param createReader Called for each subscription.
 */
export function resumableStream<Event>(
  context: Context,
  createReader: () => StreamReader<Event>,
): Observable<Event> {
  return new Observable((subscriber) => connections(context, createReader()).subscribe(subscriber))
}

/** A separate function, so that an open stream does not retain the closures of its source. */
function connections<Event>(context: Context, reader: StreamReader<Event>): Observable<Event> {
  const connection = new Observable<Event>((subscriber) => {
    const request = reader.connect()
    const sink = new Connection(reader, request, subscriber)
    sink.flow = context.transport.stream(request, sink)
    return applyBackpressure(sink.flow, subscriber)
  })
  return connection.pipe(reconnect(new ReconnectSettings(context, reader)))
}

/** How to reconnect. A class, because closures take 400 bytes for each open stream. */
class ReconnectSettings<Event> implements ReconnectConfig<Event> {
  readonly #context: Context
  readonly #reader: StreamReader<Event>

  constructor(context: Context, reader: StreamReader<Event>) {
    this.#context = context
    this.#reader = reader
  }

  get initialDelay(): number {
    return this.#context.backoff.initialDelay
  }

  get maxDelay(): number {
    return this.#context.backoff.maxDelay
  }

  get scheduler(): SchedulerLike {
    return this.#context.scheduler
  }

  get random(): () => number {
    return this.#context.random
  }

  done(): Observable<boolean> {
    return this.#reader.isDone()
  }

  progress(): boolean {
    return this.#reader.isNew
  }

  retryable(error: unknown): boolean {
    return this.#reader.isRetryable(error)
  }

  serverDelay(): number | undefined {
    return this.#reader.serverDelay
  }

  onReconnect(reconnection: Reconnection): void {
    this.#context.report({ kind: 'reconnect', source: this.#reader.source, ...reconnection })
    this.#reader.reconnecting(reconnection.cause)
  }
}

class Connection<Event> implements MessageSink {
  flow: Flow | undefined
  readonly #reader: StreamReader<Event>
  readonly #request: ApiRequest
  readonly #subscriber: Subscriber<Event>

  constructor(reader: StreamReader<Event>, request: ApiRequest, subscriber: Subscriber<Event>) {
    this.#reader = reader
    this.#request = request
    this.#subscriber = subscriber
  }

  open(): void {
    this.#reader.open()
  }

  received(): void {
    this.#reader.received()
  }

  message(message: StreamMessage): void {
    // A keep-alive, or only a position.
    if (message.data === '') return this.id(message.id ?? '')
    const event = this.#reader.read(message)
    if (event != null) return this.#subscriber.next(event)
    if (event === null && !this.#reader.isOver) return
    this.flow?.abort()
    if (event === null) return this.#subscriber.complete()
    this.error(new ProtocolError('an event is not JSON', this.#request))
  }

  oversized(limit: number): void {
    const event = this.#reader.skip(limit)
    if (event !== null) this.#subscriber.next(event)
  }

  id(id: string): void {
    // An empty id means that there is no position.
    if (id !== '') this.#reader.moveTo(id)
  }

  retry(delay: number): void {
    this.#reader.serverDelay = Math.min(delay, MAX_RETRY_AFTER)
  }

  end(): void {
    this.#subscriber.complete()
  }

  endWithinEvent(): void {
    this.error(new ConnectionError('broken', 'the stream ended within an event', this.#request))
  }

  noContent(): void {
    this.#reader.noContent()
    this.#subscriber.complete()
  }

  error(error: RivuletError): void {
    const gap = this.#reader.rewind(error)
    if (gap !== undefined) this.#subscriber.next(gap)
    this.#subscriber.error(error)
  }
}
