import type { SchedulerLike } from 'rxjs'

/** How a {@link Work} ends. */
export interface Outcome {
  /** What it fails with. Default: it does not. */
  readonly error?: unknown
  /** Called right before whoever waits for it. */
  readonly onSettled?: () => void
}

/** A handler's work in virtual time: settles after `ms` of the scheduler's time, and calls back right then. */
export class Work implements PromiseLike<void> {
  readonly #scheduler: SchedulerLike
  readonly #ms: number
  readonly #outcome: Outcome

  constructor(scheduler: SchedulerLike, ms: number, outcome: Outcome = {}) {
    this.#scheduler = scheduler
    this.#ms = ms
    this.#outcome = outcome
  }

  // A promise of the platform settles in no virtual time.
  // oxlint-disable-next-line unicorn/no-thenable
  then<A = void, B = never>(
    fulfilled?: ((value: void) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): PromiseLike<A | B> {
    this.#scheduler.schedule(() => {
      this.#outcome.onSettled?.()
      if ('error' in this.#outcome) rejected?.(this.#outcome.error)
      else fulfilled?.()
    }, this.#ms)
    return new Promise(() => {})
  }
}

/** What a handler that fails on purpose throws; says of retries what it is told to. */
export class Refused extends Error {
  readonly retryable: boolean | undefined
  readonly retryAfter: number | undefined

  constructor(message: string, says: { readonly retryable?: boolean; readonly retryAfter?: number } = {}) {
    super(message)
    this.retryable = says.retryable
    this.retryAfter = says.retryAfter
  }
}
