import { Observable } from 'rxjs'
import type { SchedulerLike, Subscriber } from 'rxjs'
import { reconnect } from '../../../operators/reconnect.ts'
import type { ReconnectConfig, Reconnection } from '../../../operators/reconnect.ts'
import { ConnectionError, ProtocolError } from '../../transport/errors.ts'
import type { RivuletError } from '../../transport/errors.ts'
import type { Flow } from '../../transport/exchange.ts'
import { MAX_RETRY_AFTER } from '../../transport/retry-policy.ts'
import type { ApiRequest, MessageSink, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { gated } from './gated.ts'

/** What is special about one kind of stream: its requests, its events, its position, and when it is done. */
export interface StreamReader<Event> {
  /** The resource, for diagnostics. */
  readonly source: string
  /** The latest `retry:` of the server, in ms. The stream keeps it here. */
  serverDelay: number | undefined
  /** Whether the event that was read last is new. Only a new event is progress. */
  readonly isNew: boolean
  /** A connection is opened. Returns its request, from the position. */
  connect(): ApiRequest
  /** The service sends an event stream. */
  accepted(): void
  /** Bytes of the stream came. */
  received(): void
  /** The event of a message; undefined where the message is broken, and may come whole another time. */
  read(message: StreamMessage): Event | undefined
  /** The event that stands for one that was skipped, since it is longer than `limit` characters. */
  skip(limit: number): Event
  /** The service moved the position without an event. */
  moveTo(cursor: string): void
  /** The service answered with 204. */
  refused(): void
  /** Goes back to the beginning where the error says that the position is lost. Returns the event that reports it. */
  rewind(error: RivuletError): Event | undefined
  /** Whether to connect again after the error. */
  mayGoOn(error: unknown): boolean
  /** Whether everything was sent, after the server closed a connection in good order. May error, which ends the stream. */
  isDone(): Observable<boolean>
}

/**
 * A stream over as many connections as it takes: after each that closes or breaks, the next one is opened from the position,
 * with backoff and the server's own `retry:`, until the reader says that it is done.
 *
 * @param createReader Called for each subscription.
 */
export function resumableStream<Event>(
  context: Context,
  createReader: () => StreamReader<Event>,
): Observable<Event> {
  return new Observable((subscriber) => connections(context, createReader()).subscribe(subscriber))
}

/** A function of its own, so that an open stream does not keep the closures of its source. */
function connections<Event>(context: Context, reader: StreamReader<Event>): Observable<Event> {
  const connection = new Observable<Event>((subscriber) => {
    const request = reader.connect()
    const sink = new Connection(reader, request, subscriber)
    sink.flow = context.transport.stream(request, sink)
    return gated(sink.flow, subscriber)
  })
  return connection.pipe(reconnect(new Reconnecting(context, reader)))
}

/** When to connect again. A class, because its callbacks as closures take 400 bytes for each open stream. */
class Reconnecting<Event> implements ReconnectConfig<Event> {
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
    return this.#reader.mayGoOn(error)
  }

  serverDelay(): number | undefined {
    return this.#reader.serverDelay
  }

  onReconnect(reconnection: Reconnection): void {
    this.#context.report({ kind: 'reconnect', source: this.#reader.source, ...reconnection })
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
    this.#reader.accepted()
  }

  received(): void {
    this.#reader.received()
  }

  message(message: StreamMessage): void {
    // A keep-alive in the shape of a message, or a position alone.
    if (message.data === '') return this.id(message.id ?? '')
    const event = this.#reader.read(message)
    if (event !== undefined) return this.#subscriber.next(event)
    this.flow?.abort()
    this.error(new ProtocolError('an event is not JSON', this.#request))
  }

  oversized(limit: number): void {
    this.#subscriber.next(this.#reader.skip(limit))
  }

  id(id: string): void {
    // An empty one means no position at all.
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
    this.#reader.refused()
    this.#subscriber.complete()
  }

  error(error: RivuletError): void {
    const gap = this.#reader.rewind(error)
    if (gap !== undefined) this.#subscriber.next(gap)
    this.#subscriber.error(error)
  }
}
