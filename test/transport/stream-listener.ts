import type { RequestError } from '../../src/transport/errors.ts'
import type { Exchange } from '../../src/transport/exchange.ts'
import type { MessageSink, StreamMessage } from '../../src/transport/transport.ts'

/** Records the calls of a stream. */
export class Listener implements MessageSink {
  readonly calls: unknown[] = []
  readonly messages: StreamMessage[] = []
  failure: RequestError | undefined
  onMessage: (message: StreamMessage) => void = () => {}
  readonly begun: Promise<void>
  readonly ended: Promise<void>
  readonly #begun = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()

  constructor() {
    this.begun = this.#begun.promise
    this.ended = this.#ended.promise
  }

  open(): void {
    this.calls.push('open')
  }

  message(message: StreamMessage): void {
    this.calls.push(message.data)
    this.messages.push(message)
    this.#begun.resolve()
    this.onMessage(message)
  }

  retry(delay: number): void {
    this.calls.push(delay)
  }

  end(): void {
    this.calls.push('end')
    this.#ended.resolve()
  }

  error(error: RequestError): void {
    this.calls.push('error')
    this.failure = error
    this.#ended.resolve()
  }
}

/** An exchange that answers with an event stream of these chunks. */
export function exchangeOf(chunks: readonly Uint8Array[]): Exchange {
  return (_request, sink) => {
    let over = false
    queueMicrotask(() => {
      sink.head(200, (name) => (name === 'content-type' ? 'text/event-stream' : undefined))
      for (const chunk of chunks) if (!over) sink.chunk(chunk)
      if (!over) sink.end()
    })
    return { pause() {}, resume() {}, abort: () => (over = true) }
  }
}
