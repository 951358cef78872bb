import type { SchedulerLike, Subscription } from 'rxjs'
import { attemptsInBatches, halvesOf, isDivisiblePart } from '../batches.ts'
import { acknowledge, deadLetter, release } from '../../src/protocol/acknowledgement.ts'
import { retryDelay } from '../../src/protocol/backoff.ts'
import type { Backoff } from '../../src/protocol/backoff.ts'
import type { Partition } from './backlog.ts'
import { currentGate, withGate } from '../../src/protocol/gate.ts'
import { isThenable } from '../../src/protocol/thenable.ts'
import { MAX_TIMER_DELAY } from '../../src/protocol/timer-limit.ts'

/** An event whose handler failed for good. */
export interface DeadLetter<T> {
  readonly event: T
  /** The error of the last attempt. */
  readonly error: unknown
  /** Number of attempts, those of the batches that it was a part of included. */
  readonly attempts: number
}

/** Takes dead letters: an observer, or a store. A returned promise is awaited before the event counts as handled. */
export interface DeadLetters<T> {
  /** Takes one dead letter. If it throws, or its promise rejects, the stream errors. */
  next(letter: DeadLetter<T>): unknown
  /** Whether anything subscribes to it; a `Subject` has this property. */
  readonly observed?: boolean
}

/** How an event is handled. */
export interface Handling<T> {
  readonly handler: (event: T, signal: AbortSignal) => void | PromiseLike<unknown>
  readonly retries: number
  readonly backoff: Backoff
  readonly retryable: (error: unknown) => boolean
  readonly random: () => number
  readonly scheduler: SchedulerLike
  readonly deadLetters: DeadLetters<T> | 'log' | undefined
}

/** The delivery that a task belongs to. */
export interface InFlightOwner<T> {
  /** Passed to the handler. */
  readonly signal: AbortSignal
  /** Whether the delivery has failed; then nothing is retried. */
  readonly failed: boolean
  /** The event was handled. */
  handled(task: InFlightTask<T>): void
  /** The event is a batch that could not be handled: its parts come in its place. */
  divided(task: InFlightTask<T>, parts: readonly T[]): void
  /** The event became a dead letter. */
  deadLettered(task: InFlightTask<T>): void
  /** The event was neither handled nor dead-lettered. */
  fail(error: unknown, task: InFlightTask<T>): void
}

/**
 * One event in flight: its attempts, the delays between them, its dead letter and its acknowledgement.
 *
 * A task is reused for later events, and its promise callbacks are created once: an event allocates no object and no closure.
 */
export class InFlightTask<T> {
  /** The partition of the event. */
  partition: Partition<T> | undefined
  readonly #handling: Handling<T>
  readonly #owner: InFlightOwner<T>
  #event: T | undefined
  #attempts = 0
  #dead = false
  #waiting = false
  #retry: Subscription | undefined
  #cancelled = false

  constructor(handling: Handling<T>, owner: InFlightOwner<T>) {
    this.#handling = handling
    this.#owner = owner
  }

  /** The event in flight. */
  get event(): T {
    // Undefined between two events, and when the event itself is undefined.
    return this.#event as T
  }

  /** Whether the task waits for its next attempt, or to be divided. */
  get waiting(): boolean {
    return this.#waiting
  }

  /** Starts the first event of the partition. */
  start(partition: Partition<T>): void {
    this.partition = partition
    this.#event = partition.shift()
    this.#attempts = 0
    this.#dead = false
    this.#attempt()
  }

  /** Drops the event and its pending retry. */
  clear(): void {
    this.#waiting = false
    this.#retry?.unsubscribe()
    this.#retry = undefined
    this.partition = undefined
    this.#event = undefined
  }

  /** Reports that the event will not be acknowledged. */
  releaseEvent(): void {
    if (this.partition !== undefined) release(this.event)
  }

  /** Drops the event and never calls the owner again, even when the handler ends later. */
  cancel(): void {
    this.#cancelled = true
    this.releaseEvent()
    this.clear()
  }

  readonly #attempt = (): void => {
    this.#waiting = false
    this.#retry = undefined
    this.#attempts += 1
    try {
      const result = this.#call()
      if (isThenable(result)) return void result.then(this.#succeed, this.#fail)
    } catch (error) {
      return this.#fail(error)
    }
    this.#succeed()
  }

  #call(): unknown {
    const { handler } = this.#handling
    const { signal } = this.#owner
    if (currentGate() === undefined) return handler(this.event, signal)
    // A consumer is subscribing right now. Its gate must not pause the handler's own subscriptions.
    return withGate(undefined, () => handler(this.event, signal))
  }

  readonly #succeed = (): void => {
    if (!this.#cancelled) this.#end()
  }

  readonly #fail = (reason: unknown): void => {
    if (this.#cancelled) return
    const { retryable, backoff, random } = this.#handling
    try {
      if (!this.#owner.failed && this.#attempts <= this.#retries && retryable(reason))
        this.#later(retryDelay(reason, this.#attempts - 1, backoff, random), this.#attempt)
      else this.#giveUp(reason)
    } catch (thrown) {
      // The callback that threw may have unsubscribed first.
      if (!this.#cancelled) this.#owner.fail(thrown, this)
    }
  }

  /** A part of a batch that was divided is divided again at once: its values are not at fault, or one of them is. */
  get #retries(): number {
    return isDivisiblePart(this.event) ? 0 : this.#handling.retries
  }

  #giveUp(reason: unknown): void {
    const { deadLetters } = this.#handling
    const attempts = this.#attempts + attemptsInBatches(this.event)
    const parts = this.#owner.failed ? undefined : halvesOf(this.event, attempts)
    if (parts !== undefined) {
      // Not before a `retryAfter` of the error.
      const delay = retryDelay(reason, 0, { initialDelay: 0 })
      if (delay === 0) return this.#owner.divided(this, parts)
      return this.#later(delay, () => this.#owner.divided(this, parts))
    }
    // A subject without subscribers would drop the event silently.
    const unobserved = deadLetters === undefined || (deadLetters !== 'log' && deadLetters.observed === false)
    if (this.#owner.failed || unobserved) return this.#owner.fail(reason, this)
    if (deadLetters === 'log') {
      deadLetter(this.event, { error: reason, attempts })
      return this.#deadLetter()
    }
    const stored = deadLetters.next({ event: this.event, error: reason, attempts })
    if (isThenable(stored)) stored.then(this.#deadLetter, this.#unstored)
    else this.#deadLetter()
  }

  readonly #deadLetter = (): void => {
    this.#dead = true
    if (!this.#cancelled) this.#end()
  }

  readonly #unstored = (error: unknown): void => {
    if (!this.#cancelled) this.#owner.fail(error, this)
  }

  #later(delay: number, action: () => void): void {
    const attempts = this.#attempts
    this.#waiting = true
    const retry = this.#handling.scheduler.schedule(action, Math.min(delay, MAX_TIMER_DELAY))
    // Some schedulers run the action within `schedule`, and a later retry may be pending already.
    if (this.#waiting && this.#attempts === attempts) this.#retry = retry
  }

  #end(): void {
    try {
      acknowledge(this.event)
    } catch (error) {
      return this.#owner.fail(error, this)
    }
    // The acknowledgement may have ended the source, and the subscription with it.
    if (this.#cancelled) return
    if (this.#dead) this.#owner.deadLettered(this)
    else this.#owner.handled(this)
  }
}
