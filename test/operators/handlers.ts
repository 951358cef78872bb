import type { SchedulerLike } from 'rxjs'

/** How a {@link Work} ends. */
export interface Outcome {
  /** The error to reject with. Default: none. */
  readonly error?: unknown
  /** Called right before it settles. */
  readonly onSettled?: () => void
}

/** A handler's work in virtual time: settles after `ms` of the scheduler's time, synchronously. */
export class Work implements PromiseLike<void> {
  readonly #scheduler: SchedulerLike
  readonly #ms: number
  readonly #outcome: Outcome

  constructor(scheduler: SchedulerLike, ms: number, outcome: Outcome = {}) {
    this.#scheduler = scheduler
    this.#ms = ms
    this.#outcome = outcome
  }

  // A native promise does not settle in virtual time.
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

/** The error of a handler that fails on purpose, with the given retry hints. */
export class Refused extends Error {
  readonly retryable: boolean | undefined
  readonly retryAfter: number | undefined

  constructor(message: string, hints: { readonly retryable?: boolean; readonly retryAfter?: number } = {}) {
    super(message)
    this.retryable = hints.retryable
    this.retryAfter = hints.retryAfter
  }
}
