import type { SchedulerLike, Subscription } from 'rxjs'
import { backoffDelay } from '../../src/protocol/backoff.ts'
import type { Backoff } from '../../src/protocol/backoff.ts'
import type { Lane } from './backlog.ts'
import { currentGate, throughGate } from '../../src/protocol/gate.ts'
import type { Progress } from '../progress.ts'
import { retryAfterOf } from '../../src/protocol/retry-after.ts'
import { isThenable } from '../../src/protocol/thenable.ts'
import { MAX_TIMER_DELAY } from '../../src/protocol/timer-limit.ts'

/** An event that was given up, and why. */
export interface DeadLetter<T> {
  readonly event: T
  /** What the last attempt failed with. */
  readonly error: unknown
  /** How often the handler was called. */
  readonly attempts: number
}

/** Takes dead letters: an observer, or whatever stores them. A promise is awaited before the event counts as handled. */
export interface DeadLetters<T> {
  next(letter: DeadLetter<T>): unknown
  /** What a `Subject` says of its listeners. */
  readonly observed?: boolean
}

/** How one event is handled. */
export interface Handling<T> {
  readonly handler: (event: T, signal: AbortSignal) => void | PromiseLike<unknown>
  readonly retries: number
  readonly backoff: Backoff
  readonly retryable: (error: unknown) => boolean
  readonly random: () => number
  readonly scheduler: SchedulerLike
  readonly deadLetters: DeadLetters<T> | undefined
  readonly checkpoint: Progress<T> | undefined
}

/** Who a slot works for. */
export interface SlotOwner<T> {
  /** For the handler. */
  readonly signal: AbortSignal
  /** Whether something failed for good: nothing is tried again then. */
  readonly failed: boolean
  /** The handler has done its work, and that is saved. */
  handled(slot: Slot<T>): void
  /** The event became a dead letter, and that is saved. */
  buried(slot: Slot<T>): void
  /** The event could neither be handled nor buried, or that could not be saved. */
  fail(error: unknown, slot: Slot<T>): void
}

/**
 * A place in which one event at a time is handled: its attempts, the waits between them, its dead letter, its saving.
 *
 * A slot is used again for the next event, and what it hands to promises was made once: so an event costs no object and
 * no closure of its own.
 */
export class Slot<T> {
  /** Where its event was taken from. */
  lane: Lane<T> | undefined
  readonly #handling: Handling<T>
  readonly #owner: SlotOwner<T>
  #event: T | undefined
  #attempts = 0
  #dead = false
  #waits = false
  #wait: Subscription | undefined
  #cut = false

  constructor(handling: Handling<T>, owner: SlotOwner<T>) {
    this.#handling = handling
    this.#owner = owner
  }

  /** The event that is being handled. */
  get event(): T {
    // Not undefined while there is one, unless undefined is the event.
    return this.#event as T
  }

  /** Whether it waits for the next attempt. */
  get waits(): boolean {
    return this.#waits
  }

  /** Handles the first event of the lane. */
  take(lane: Lane<T>): void {
    this.lane = lane
    this.#event = lane.shift()
    this.#attempts = 0
    this.#dead = false
    this.#attempt()
  }

  /** Lets go of its event. */
  clear(): void {
    this.#waits = false
    this.#wait?.unsubscribe()
    this.#wait = undefined
    this.lane = undefined
    this.#event = undefined
  }

  /** Lets go of its event for ever: the owner hears no more, whatever the handler does. */
  cut(): void {
    this.#cut = true
    this.clear()
  }

  readonly #attempt = (): void => {
    this.#waits = false
    this.#wait = undefined
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
    // It is called while somebody subscribes. What it subscribes to itself must not be held until it has ended.
    return throughGate(undefined, () => handler(this.event, signal))
  }

  readonly #succeed = (): void => {
    if (!this.#cut) this.#save()
  }

  readonly #fail = (reason: unknown): void => {
    if (this.#cut) return
    const { retries, retryable } = this.#handling
    try {
      if (!this.#owner.failed && this.#attempts <= retries && retryable(reason)) this.#waitAndTryAgain(reason)
      else this.#giveUp(reason)
    } catch (thrown) {
      // Whoever was asked or told may have unsubscribed before.
      if (!this.#cut) this.#owner.fail(thrown, this)
    }
  }

  #giveUp(reason: unknown): void {
    const { deadLetters } = this.#handling
    // A subject that nobody listens to would swallow it.
    const unheard = deadLetters === undefined || deadLetters.observed === false
    if (this.#owner.failed || unheard) return this.#owner.fail(reason, this)
    const told = deadLetters.next({ event: this.event, error: reason, attempts: this.#attempts })
    if (isThenable(told)) told.then(this.#bury, this.#unsaved)
    else this.#bury()
  }

  readonly #bury = (): void => {
    this.#dead = true
    if (!this.#cut) this.#save()
  }

  #waitAndTryAgain(error: unknown): void {
    const { scheduler, backoff, random } = this.#handling
    const attempts = this.#attempts
    const delay = retryAfterOf(error) ?? backoffDelay(attempts - 1, backoff, random)
    this.#waits = true
    const wait = scheduler.schedule(this.#attempt, Math.min(delay, MAX_TIMER_DELAY))
    // Some schedulers call back within `schedule`; then this wait is over, and another may have begun.
    if (this.#waits && this.#attempts === attempts) this.#wait = wait
  }

  #save(): void {
    try {
      const result: unknown = this.#handling.checkpoint?.handled(this.event)
      if (isThenable(result)) return void result.then(this.#saved, this.#unsaved)
    } catch (error) {
      return this.#unsaved(error)
    }
    this.#saved()
  }

  readonly #saved = (): void => {
    if (this.#cut) return
    if (this.#dead) this.#owner.buried(this)
    else this.#owner.handled(this)
  }

  readonly #unsaved = (error: unknown): void => {
    if (!this.#cut) this.#owner.fail(error, this)
  }
}
