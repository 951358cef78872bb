import type { SchedulerLike, Subscription } from 'rxjs'
import { RateLimitError } from './errors.ts'
import type { RivuletError } from './errors.ts'
import type { Flow } from './exchange.ts'
import type { MessageSink } from './message-stream.ts'
import type { QuotaQueue } from './quota-queue.ts'

/** Receives the stream of one answer: any number of messages, then one of `end` and `error`. */
export type AnswerSink = Required<Pick<MessageSink, 'open' | 'message' | 'end' | 'error'>>

/** How a {@link QueuedStream} opens its connections. */
export interface QueuedStreamSettings {
  /** Opens one connection. `attempt` counts from 1. */
  readonly connect: (attempt: number, sink: MessageSink) => Flow
  readonly queue: QuotaQueue | undefined
  readonly scheduler: SchedulerLike
  /** The delay after a failed attempt, in ms. Passes a 429 to the queue. */
  readonly delayAfter: (
    error: RivuletError,
    attempt: number,
    startedAt: number,
    queue: QuotaQueue | undefined,
  ) => number
  /** Whether to open another connection after `delay` ms. Called only for a stream that has not begun. */
  readonly retries: (error: RivuletError, attempt: number, delay: number) => boolean
}

/** A stream that waits for its quota, and opens another connection while the service has not acted on the request. */
export class QueuedStream implements Flow {
  readonly #settings: QueuedStreamSettings
  readonly #sink: AnswerSink
  #flow: Flow | undefined
  #leaveQueue: (() => void) | undefined
  #timer: Subscription | undefined
  #isPaused = false
  #isOver = false

  constructor(settings: QueuedStreamSettings, sink: AnswerSink) {
    this.#settings = settings
    this.#sink = sink
    this.#enter(1)
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
    this.#isOver = true
    this.#leaveQueue?.()
    this.#timer?.unsubscribe()
    this.#flow?.abort()
  }

  #enter(attempt: number): void {
    const { queue } = this.#settings
    if (queue === undefined) this.#connect(attempt, 0)
    else {
      const start = (startedAt: number) => this.#connect(attempt, startedAt)
      this.#leaveQueue = queue.enter({ isRetry: attempt > 1, start })
    }
  }

  #connect(attempt: number, startedAt: number): void {
    const { connect, queue } = this.#settings
    const sink = this.#sink
    let isOpen = false
    const flow = connect(attempt, {
      open() {
        isOpen = true
        queue?.accepted()
        sink.open()
      },
      message: (message) => sink.message(message),
      retry() {},
      end: () => sink.end(),
      error: (error) => {
        if (isOpen) sink.error(error)
        else this.#failed(error, attempt, startedAt)
      },
    })
    this.#flow = flow
    if (this.#isPaused) flow.pause()
  }

  #failed(error: RivuletError, attempt: number, startedAt: number): void {
    const { queue, scheduler, delayAfter, retries } = this.#settings
    const delay = delayAfter(error, attempt, startedAt, queue)
    const willRetry = retries(error, attempt, delay)
    // `retries` may have called code of the user, which aborted the stream.
    if (this.#isOver) return
    if (!willRetry) return this.#sink.error(error)
    // The queue has the delay itself: a delay here would let later requests overtake this one.
    if (queue !== undefined && error instanceof RateLimitError) return this.#enter(attempt + 1)
    this.#timer = scheduler.schedule(() => this.#enter(attempt + 1), delay)
  }
}
