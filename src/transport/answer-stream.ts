import type { Flow } from './exchange.ts'
import type { MessageSink } from './message-stream.ts'

/** Receives the stream of one answer: any number of messages, then one of `end` and `error`. */
export type AnswerSink = Required<Pick<MessageSink, 'open' | 'message' | 'end'>> & {
  /** The stream could not be opened, or it broke. A callback of the user may have thrown something else than a RequestError. */
  error(error: unknown): void
}

/** The stream of one answer: the first connection that opens has its messages, and the attempts before it only fail. */
export class AnswerStream implements Flow {
  readonly #sink: AnswerSink
  readonly #connect: (attempt: number, sink: MessageSink) => Flow
  readonly #ended = new AbortController()
  #flow: Flow | undefined
  #isPaused = false

  /** @param connect Opens one connection. `attempt` counts from 1. */
  constructor(sink: AnswerSink, connect: (attempt: number, sink: MessageSink) => Flow) {
    this.#sink = sink
    this.#connect = connect
  }

  /** Aborted with the flow: no attempt may begin. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  /** Makes one attempt. Resolves when the stream is open, and rejects if it cannot be opened; later errors go to the sink. */
  open(attempt: number): Promise<void> {
    const sink = this.#sink
    return new Promise((resolve, reject) => {
      let isOpen = false
      const flow = this.#connect(attempt, {
        open() {
          isOpen = true
          resolve()
          sink.open()
        },
        message: (message) => sink.message(message),
        retry() {},
        end() {
          resolve()
          sink.end()
        },
        error(error) {
          if (isOpen) sink.error(error)
          else reject(error)
        },
      })
      this.#flow = flow
      if (this.#isPaused) flow.pause()
    })
  }

  /** No attempt has opened the stream, and none follows. */
  failed(error: unknown): void {
    if (!this.signal.aborted) this.#sink.error(error)
  }

  pause(): void {
    this.#isPaused = true
    this.#flow?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#flow?.resume()
  }

  abort(): void {
    this.#ended.abort()
    this.#flow?.abort()
  }
}
