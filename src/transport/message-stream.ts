import { createParser } from 'eventsource-parser'
import type { EventSourceParser } from 'eventsource-parser'
import { Answer, describeType } from './answer.ts'
import { ProtocolError } from './errors.ts'
import type { ConnectionError, RivuletError } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink } from './exchange.ts'
import type { Reading } from './reading.ts'

/** One message of an event stream, its fields as the server wrote them. */
export interface StreamMessage {
  /** The `id:` field, where this message has one; it does not stand for the messages after it. */
  readonly id?: string | undefined
  /** The `event:` field. */
  readonly event?: string | undefined
  /** The `data:` lines, joined by newlines. */
  readonly data: string
}

/** Takes in one event stream: any number of messages, then `end` or `error`. */
export interface MessageSink {
  /** The service accepted: the stream is open, and nothing may have come yet. */
  open?(): void
  message(message: StreamMessage): void
  /** The server's `retry:` field: how long to wait before connecting again, in ms. */
  retry(delay: number): void
  /** The server closed the stream in good order. */
  end(): void
  /** The stream could not be opened, or it broke. */
  error(error: RivuletError): void
}

/**
 * Reads one event stream. An event whose blank line never comes is not told, as the format wants it. This is the hot
 * path: for each chunk one decoding and one call of the parser, for each message one call of the sink.
 */
export class MessageStream implements ResponseSink, Flow {
  /** The response's own flow, set before anything comes. */
  flow: Flow | undefined
  readonly #reading: Reading
  readonly #sink: MessageSink
  readonly #decoder = new TextDecoder()
  readonly #parser: EventSourceParser
  #refusal: Answer | undefined
  #over = false

  constructor(reading: Reading, sink: MessageSink) {
    this.#reading = reading
    this.#sink = sink
    this.#parser = createParser({
      maxBufferSize: reading.maxLineLength,
      // The rest of a chunk is still parsed after an abort.
      onEvent: (message) => {
        if (!this.#over) sink.message(message)
      },
      onRetry: (delay) => {
        if (!this.#over) sink.retry(delay)
      },
      onError: (error) => {
        // Unknown fields and odd `retry:` values are to be ignored.
        if (error.type === 'max-buffer-size-exceeded')
          this.#refuse(`an event is longer than ${reading.maxLineLength} characters`, false)
      },
    })
  }

  head(status: number, header: HeaderReader): void {
    if (status !== 200) {
      this.#refusal = new Answer(
        this.#reading,
        () => this.#refuse(`answered with ${status} where an event stream was expected`),
        (error) => this.#fail(error),
      )
      this.#refusal.flow = this.flow
      this.#refusal.head(status, header)
    } else if (isEventStream(header('content-type'))) {
      this.#sink.open?.()
    } else {
      this.#refuse(`answered with ${describeType(header, this.#reading)} where an event stream was expected`)
    }
  }

  chunk(bytes: Uint8Array): void {
    if (this.#refusal !== undefined) this.#refusal.chunk(bytes)
    else this.#parser.feed(this.#decoder.decode(bytes, { stream: true }))
  }

  end(): void {
    if (this.#refusal !== undefined) return this.#refusal.end()
    this.#over = true
    this.#sink.end()
  }

  error(error: ConnectionError): void {
    if (this.#refusal !== undefined) this.#refusal.error(error)
    else this.#fail(error)
  }

  pause(): void {
    this.flow?.pause()
  }

  resume(): void {
    this.flow?.resume()
  }

  abort(): void {
    this.#over = true
    this.flow?.abort()
  }

  #refuse(message: string, retryable = true): void {
    this.flow?.abort()
    this.#fail(new ProtocolError(message, this.#reading.request, { retryable }))
  }

  #fail(error: RivuletError): void {
    if (this.#over) return
    this.#over = true
    this.#sink.error(error)
  }
}

function isEventStream(type: string | undefined): boolean {
  return type !== undefined && /^\s*text\/event-stream\s*(;|$)/i.test(type)
}
