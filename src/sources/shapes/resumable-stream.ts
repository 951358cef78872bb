import { Observable, tap } from 'rxjs'
import type { SchedulerLike, Subscriber } from 'rxjs'
import { reconnect } from '../../../operators/reconnect.ts'
import type { ReconnectOptions, Reconnection } from '../../../operators/reconnect.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { ConnectionError, ProtocolError } from '../../transport/errors.ts'
import type { RequestError } from '../../transport/errors.ts'
import type { Flow } from '../../transport/exchange.ts'
import { MAX_RETRY_AFTER } from '../../protocol/retry-after-header.ts'
import type { ApiRequest, MessageSink, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { applyBackpressure } from './backpressure.ts'
import { isProgress } from './stream-item.ts'
import type { SourceStream, StreamItem } from './stream-item.ts'

/** The differences between kinds of streams: requests, events, the position, and when the stream is done. */
export interface StreamReader<Event extends ResearchEvent> {
  readonly stream: SourceStream
  /** The latest `retry:` of the server, in ms. Set by the stream. */
  serverDelay: number | undefined
  /** Called before each connection. Returns its request, which resumes from the position. */
  connect(): ApiRequest
  /** Called when the service accepts the request and the stream is open. */
  open(): void
  /** Called when bytes arrive, before their messages are read. */
  received(): void
  /**
   * Returns the item of a message; null for a repeat that is not emitted; undefined if the message is malformed and the
   * connection must be retried.
   */
  read(message: StreamMessage): StreamItem<Event> | null | undefined
  /** Whether a repeat shows that nothing more comes, so that the connection is closed. Read after each repeat. */
  readonly isOver: boolean
  /** Returns the item that reports a skipped event, which is longer than `limit` characters; null for a repeat. */
  skip(limit: number): StreamItem<Event> | null
  /** Called when the service advances the position without an event. */
  moveTo(cursor: string): void
  /** Called when the service answers with 204, a request not to reconnect. */
  noContent(): void
  /** Resets the position to the start if the service rejected it with this error. Returns the item that reports this. */
  rewind(error: RequestError): StreamItem<Event> | undefined
  /** Whether to reconnect after the error. */
  isRetryable(error: unknown): boolean
  /** Called after a clean close. Emits whether the stream is complete. An error ends the stream unless it is retryable. */
  isDone(): Observable<boolean>
  /** Called when the stream is complete. Returns its last item. */
  completed(): StreamItem<Event> | undefined
}

/**
 * An event stream over any number of connections. After each clean close or failure it reconnects from the position, with
 * backoff and the server's `retry:`, until the reader's `isDone` emits true.
 *
 * @param createReader Called for each subscription.
 */
export function resumableStream<Event extends ResearchEvent>(
  context: Context,
  createReader: () => StreamReader<Event>,
): Observable<StreamItem<Event>> {
  return new Observable((subscriber) =>
    connections(context, createReader(), subscriber).subscribe(subscriber),
  )
}

/** A separate function, so that an open stream does not retain the closures of its source. */
function connections<Event extends ResearchEvent>(
  context: Context,
  reader: StreamReader<Event>,
  subscriber: Subscriber<StreamItem<Event>>,
): Observable<StreamItem<Event>> {
  const settings = new ReconnectSettings(context, reader, subscriber)
  const connection = new Observable<StreamItem<Event>>((connected) => {
    const request = reader.connect()
    const sink = new Connection(settings, reader, request, connected)
    sink.flow = context.transport.stream(request, sink)
    return applyBackpressure(sink.flow, connected)
  })
  return connection.pipe(reconnect(settings))
}

/** How to reconnect. A class, because closures take 400 bytes for each open stream. */
class ReconnectSettings<Event extends ResearchEvent> implements ReconnectOptions<StreamItem<Event>> {
  /** Failures since the stream was open. */
  failures = 0
  readonly #context: Context
  readonly #reader: StreamReader<Event>
  /** Receives what happens between the connections. */
  readonly #subscriber: Subscriber<StreamItem<Event>>

  constructor(context: Context, reader: StreamReader<Event>, subscriber: Subscriber<StreamItem<Event>>) {
    this.#context = context
    this.#reader = reader
    this.#subscriber = subscriber
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
    return this.#reader.isDone().pipe(
      tap((isDone) => {
        const last = isDone ? this.#reader.completed() : undefined
        if (last !== undefined) this.#subscriber.next(last)
      }),
    )
  }

  progress(item: StreamItem<Event>): boolean {
    return isProgress(item)
  }

  retryable(error: unknown): boolean {
    return this.#reader.isRetryable(error)
  }

  serverDelay(): number | undefined {
    return this.#reader.serverDelay
  }

  onReconnect(reconnection: Reconnection): void {
    const { stream } = this.#reader
    const { cause } = reconnection
    this.#context.report({ kind: 'reconnect', source: stream.source, ...reconnection })
    if (cause === undefined) return
    this.failures += 1
    // An open stream may break; it is lost when it cannot be opened again.
    if (this.failures > 1) this.#subscriber.next({ kind: 'lost', stream, error: cause })
  }
}

/** How often an open connection says that it is alive, in ms. */
const ALIVE_INTERVAL = 1_000

class Connection<Event extends ResearchEvent> implements MessageSink {
  flow: Flow | undefined
  #aliveAt = -Infinity
  readonly #settings: ReconnectSettings<Event>
  readonly #reader: StreamReader<Event>
  readonly #request: ApiRequest
  readonly #subscriber: Subscriber<StreamItem<Event>>

  constructor(
    settings: ReconnectSettings<Event>,
    reader: StreamReader<Event>,
    request: ApiRequest,
    subscriber: Subscriber<StreamItem<Event>>,
  ) {
    this.#settings = settings
    this.#reader = reader
    this.#request = request
    this.#subscriber = subscriber
  }

  open(): void {
    this.#settings.failures = 0
    this.#reader.open()
    this.#subscriber.next({ kind: 'reached', stream: this.#reader.stream })
  }

  received(): void {
    this.#reader.received()
    const now = this.#settings.scheduler.now()
    if (now - this.#aliveAt < ALIVE_INTERVAL) return
    this.#aliveAt = now
    this.#subscriber.next({ kind: 'alive', stream: this.#reader.stream })
  }

  message(message: StreamMessage): void {
    // A keep-alive, or only a position.
    if (message.data === '') return this.id(message.id ?? '')
    const item = this.#reader.read(message)
    if (item != null) return this.#subscriber.next(item)
    if (item === null && !this.#reader.isOver) return
    this.flow?.abort()
    if (item === null) return this.#subscriber.complete()
    this.error(new ProtocolError('an event is not JSON', this.#request))
  }

  oversized(limit: number): void {
    const item = this.#reader.skip(limit)
    if (item !== null) this.#subscriber.next(item)
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

  error(error: RequestError): void {
    const gap = this.#reader.rewind(error)
    if (gap !== undefined) this.#subscriber.next(gap)
    this.#subscriber.error(error)
  }
}
