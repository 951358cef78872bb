import { Answer } from './answer.ts'
import { ProtocolError } from './errors.ts'
import type { ConnectionError, RivuletError } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink } from './exchange.ts'
import type { MessageListener, MessageReader, StreamMessage } from './message-reader.ts'
import type { Reading } from './reading.ts'
import { redactError } from './redact.ts'

/** Takes in one event stream: any number of messages, then `end` or `error`. */
export interface MessageSink {
  /** The service accepted: the stream is open, and nothing may have come yet. */
  open?(): void
  /** Bytes came. The messages that end in them follow at once. */
  received?(): void
  message(message: StreamMessage): void
  /** The server's `retry:` field: how long to wait before connecting again, in ms. */
  retry(delay: number): void
  /** An `id:` came without data: the position moves, and no message comes with it. */
  id?(id: string): void
  /** A message longer than `limit` characters was skipped; the stream goes on behind it. */
  oversized?(limit: number): void
  /** The server closed the stream in good order. */
  end(): void
  /** The server closed the stream within an event, which is lost. Default: as {@link end}, which is what the HTML standard has. */
  endWithinEvent?(): void
  /** Answered with 204: there is no stream, and the server asks not to connect again. Default: as {@link end}. */
  noContent?(): void
  /** The stream could not be opened, or it broke. */
  error(error: RivuletError): void
}

/** Reads one event stream: for each chunk one decoding and one call of the parser, for each message one call of the sink. */
export class MessageStream implements ResponseSink, Flow, MessageListener {
  /** The response's own flow, set before anything comes. */
  flow: Flow | undefined
  readonly #reading: Reading
  readonly #sink: MessageSink
  /** Only while the stream is within a message. */
  #reader: MessageReader | undefined
  #begun = false
  #refusal: Answer | undefined
  #over = false

  constructor(reading: Reading, sink: MessageSink) {
    this.#reading = reading
    this.#sink = sink
  }

  head(status: number, header: HeaderReader): void {
    if (status === 200 && isEventStream(header('content-type'))) {
      this.#sink.open?.()
    } else if (status === 204) {
      this.#finish(() => (this.#sink.noContent === undefined ? this.#sink.end() : this.#sink.noContent()))
    } else {
      this.#refusal = new Answer(
        this.#reading,
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
    const { readers } = this.#reading
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
    this.#refuse(`an event is longer than ${this.#reading.maxEventLength} characters`, false)
    return false
  }

  skipped(): void {
    this.#sink.oversized?.(this.#reading.maxEventLength)
  }

  end(): void {
    if (this.#refusal !== undefined) return this.#refusal.end()
    const sink = this.#sink
    const isWithinEvent = sink.endWithinEvent !== undefined && this.#reader?.endsWithinMessage() === true
    this.#finish(() => (isWithinEvent ? sink.endWithinEvent?.() : sink.end()))
  }

  error(error: ConnectionError | ProtocolError): void {
    if (this.#refusal !== undefined) this.#refusal.error(error)
    else this.#fail(redactError(error, this.#reading.redact))
  }

  pause(): void {
    this.flow?.pause()
  }

  resume(): void {
    this.flow?.resume()
  }

  abort(): void {
    this.#over = true
    // The rest of a chunk would still be told.
    this.#reader?.stop()
    this.flow?.abort()
  }

  #refuse(message: string, retryable = true): void {
    this.flow?.abort()
    this.#fail(new ProtocolError(message, this.#reading.request, { retryable }))
  }

  #fail(error: RivuletError): void {
    this.#finish(() => this.#sink.error(error))
  }

  #finish(last: () => void): void {
    if (this.#over) return
    this.#over = true
    this.#reader?.stop()
    last()
  }
}

function isEventStream(type: string | undefined): boolean {
  return type !== undefined && /^\s*text\/event-stream\s*(;|$)/i.test(type)
}
