import { ResponseReader } from './response-reader.ts'
import { ProtocolError } from './errors.ts'
import type { ConnectionError, RequestError } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink } from './exchange.ts'
import type { MessageListener, MessageReader, StreamMessage } from './message-reader.ts'
import type { Observation } from './observer.ts'
import type { ResponseContext } from './response-context.ts'
import { redactError } from './redact.ts'

/** Receives one event stream: any number of messages, then one of `end`, `endWithinEvent`, `noContent` and `error`. */
export interface MessageSink {
  /** The service accepted the request and the stream is open. */
  open?(): void
  /** Bytes arrived. The messages that they complete follow synchronously. */
  received?(): void
  message(message: StreamMessage): void
  /** The server's `retry:` field: how long to wait before connecting again, in ms. */
  retry(delay: number): void
  /** An `id:` field arrived without data: the position advances without a message. */
  id?(id: string): void
  /** A message longer than `limit` characters was skipped; the stream continues after it. */
  oversized?(limit: number): void
  /** The server closed the stream properly. */
  end(): void
  /** The server closed the stream within an event, which is lost. Default: as {@link end}, as in the HTML standard. */
  endWithinEvent?(): void
  /** The server answered with 204: no stream, and a request not to reconnect. Default: as {@link end}. */
  noContent?(): void
  /** The stream could not be opened, or it broke. */
  error(error: RequestError): void
}

/** Reads one event stream: per chunk one decoding and one call of the parser, per message one call of the sink. */
export class MessageStream implements ResponseSink, Flow, MessageListener {
  /** The response's own flow. Set before anything arrives. */
  flow: Flow | undefined
  readonly #context: ResponseContext
  readonly #sink: MessageSink
  readonly #observation: Observation | undefined
  /** The reader, only while the stream is within a message. */
  #reader: MessageReader | undefined
  #begun = false
  #refusal: ResponseReader | undefined
  #over = false

  constructor(context: ResponseContext, sink: MessageSink, observation?: Observation) {
    this.#context = context
    this.#sink = sink
    this.#observation = observation
  }

  head(status: number, header: HeaderReader): void {
    this.#observation?.responded(status)
    if (status === 200 && isEventStream(header('content-type'))) {
      this.#sink.open?.()
    } else if (status === 204) {
      this.#finish(() => (this.#sink.noContent === undefined ? this.#sink.end() : this.#sink.noContent()))
    } else {
      this.#refusal = new ResponseReader(
        this.#context,
        'an event stream',
        () => {},
        (error) => this.#fail(error),
      )
      this.#refusal.flow = this.flow
      this.#refusal.head(status, header)
    }
  }

  chunk(bytes: Uint8Array): void {
    if (this.#refusal !== undefined) this.#refusal.chunk(bytes)
    else if (!this.#over) this.#read(bytes)
  }

  #read(bytes: Uint8Array): void {
    const { readers } = this.#context
    const reader = (this.#reader ??= readers.take(this, !this.#begun))
    this.#begun = true
    this.#sink.received?.()
    reader.read(bytes)
    if (!reader.betweenMessages) return
    this.#reader = undefined
    readers.giveBack(reader)
  }

  message(message: StreamMessage): void {
    this.#sink.message(message)
  }

  retry(delay: number): void {
    this.#sink.retry(delay)
  }

  id(id: string): void {
    this.#sink.id?.(id)
  }

  tooLong(): boolean {
    if (this.#sink.oversized !== undefined) return true
    this.#refuse(`an event is longer than ${this.#context.maxEventLength} characters`, false)
    return false
  }

  skipped(): void {
    this.#sink.oversized?.(this.#context.maxEventLength)
  }

  end(): void {
    if (this.#refusal !== undefined) return this.#refusal.end()
    const sink = this.#sink
    const isWithinEvent = sink.endWithinEvent !== undefined && this.#reader?.endsWithinMessage() === true
    this.#finish(() => (isWithinEvent ? sink.endWithinEvent?.() : sink.end()))
  }

  error(error: ConnectionError | ProtocolError): void {
    if (this.#refusal !== undefined) this.#refusal.error(error)
    else this.#fail(redactError(error, this.#context.redact))
  }

  pause(): void {
    this.flow?.pause()
  }

  resume(): void {
    this.flow?.resume()
  }

  abort(): void {
    this.#over = true
    this.#observation?.ended()
    // The reader would still report the rest of a chunk.
    this.#reader?.stop()
    this.flow?.abort()
  }

  #refuse(message: string, retryable = true): void {
    this.flow?.abort()
    this.#fail(new ProtocolError(message, this.#context.request, { retryable }))
  }

  #fail(error: RequestError): void {
    this.#finish(() => this.#sink.error(error), error)
  }

  #finish(last: () => void, error?: RequestError): void {
    if (this.#over) return
    this.#over = true
    this.#observation?.ended(error)
    this.#reader?.stop()
    last()
  }
}

function isEventStream(type: string | undefined): boolean {
  return type !== undefined && /^\s*text\/event-stream\s*(;|$)/i.test(type)
}
