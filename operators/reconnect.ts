import { asyncScheduler, defaultIfEmpty, defer, Observable, of, Subscriber, Subscription, take } from 'rxjs'
import type { MonoTypeOperatorFunction, ObservableInput, SchedulerLike, Unsubscribable } from 'rxjs'
import { INITIAL_DELAY, isRetryable, MAX_DELAY, retryDelay, usableDelay } from '../src/protocol/backoff.ts'
import type { Backoff } from '../src/protocol/backoff.ts'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import {
  checkDuration,
  checkOptionalFunctions,
  checkObject,
  checkOptions,
  checkScheduler,
} from '../src/protocol/check.ts'
import { subscribeWithGate } from '../src/protocol/gate.ts'
import { MAX_TIMER_DELAY } from '../src/protocol/timer-limit.ts'

/** A reconnection, reported before its delay. */
export interface Reconnection {
  /** The error that ended the connection; undefined after a clean close. */
  readonly cause: unknown
  /** Number of reconnections in a row without progress, including this one. */
  readonly attempt: number
  /** The delay before it, in ms. */
  readonly delay: number
}

/** Settings of {@link reconnect}. Its functions are called on it, so it may be an instance of a class. */
export interface ReconnectOptions<T = unknown> extends Backoff {
  /** Maximum number of failures in a row without progress; one more errors the result. Default `Infinity`. */
  readonly maxFailures?: number
  /** Whether to reconnect after this error. Default: the `retryable` of the error. */
  readonly retryable?: (error: unknown) => boolean
  /**
   * Called when the source completes. If the first value is true, the result completes; else it reconnects, also when there
   * is no value. An error counts as a failure of the source. Default: true.
   */
  readonly done?: () => ObservableInput<boolean>
  /**
   * Whether the value is progress, which resets the backoff. Return `false` for repeated events: else a server that repeats
   * an event and closes would be reconnected to without a growing delay. Called once per value, before it is emitted.
   * Default: true.
   */
  readonly progress?: (value: T) => boolean
  /**
   * Returns the latest `retry:` of the server, in ms: the minimum delay before each reconnection, after a clean close too, and
   * the initial delay of the backoff if it is longer than `initialDelay`. Default: none.
   */
  readonly serverDelay?: () => number | undefined
  /** Called before the delay of each reconnection. An error that it throws errors the result. Default: none. */
  readonly onReconnect?: (reconnection: Reconnection) => void
  /** Returns a number from 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number
  /** Schedules reconnections. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

const CALLBACKS = Object.keys({
  retryable: true,
  done: true,
  progress: true,
  serverDelay: true,
  onReconnect: true,
  random: true,
} satisfies Record<keyof Callbacks<unknown>, true>)

const OPTIONS = Object.keys({
  initialDelay: true,
  maxDelay: true,
  maxFailures: true,
  scheduler: true,
} satisfies Record<Exclude<keyof ReconnectOptions, keyof Callbacks<unknown>>, true>)

/**
 * Resubscribes to a cold source when its connection ends, with backoff after a failure and without it after a clean close.
 *
 *     source 1: --a--b--#
 *     source 2:               --c--|
 *     source 3:                    --d--|
 *               reconnect({ done: () => of(runsLeft === 0), initialDelay: 2 })
 *     result:   --a--b----------c----d--|
 *
 * - **Failure** (the source errors): reconnects after a backoff with full jitter, and not before the error's `retryAfter` and
 *   the server's `retry:`. Progress resets the backoff: a value for which `progress` is true, or a connection that
 *   lasted longer than `maxDelay`.
 * - **Clean close** (the source completes, `done` is false): reconnects after the server's `retry:`. It backs off if the
 *   previous connection made no progress either, or if this one lasted shorter than `retry:` or `initialDelay`: a server that
 *   accepts and closes in a loop is treated as down.
 *
 * The source resumes from its own position, for instance with `defer`. The gate of the subscriber pauses every connection.
 *
 * ```ts
 * import { defer, of, throwError } from 'rxjs'
 * import { reconnect } from 'rivulet/operators'
 *
 * let connections = 0
 * const flaky = defer(() => (++connections < 3 ? throwError(() => new Error('down')) : of('up')))
 *
 * flaky
 *   .pipe(reconnect({ initialDelay: 10, retryable: () => true }))
 *   .subscribe((state) => console.log(state, connections)) // up 3
 * ```
 *
 * An error passes through when it is not retryable or exceeds `maxFailures`. Unsubscribing ends the connection, the pending
 * delay and `done`.
 *
 * @throws ArgumentError at the call, for an unknown option or an invalid one.
 */
export function reconnect<T>(options: ReconnectOptions<T> = {}): MonoTypeOperatorFunction<T> {
  const given: unknown = options
  checkObject('options', given)
  // An instance of a class may have fields of its own.
  if (given['constructor'] === Object) checkOptions('options', given, [...OPTIONS, ...CALLBACKS])
  const {
    initialDelay = INITIAL_DELAY,
    maxDelay = MAX_DELAY,
    maxFailures = Infinity,
    scheduler = asyncScheduler,
  } = options
  checkDuration('initialDelay', initialDelay)
  checkDuration('maxDelay', maxDelay)
  checkScheduler('scheduler', scheduler)
  for (const name of CALLBACKS) checkOptionalFunctions({ [name]: given[name] })
  if (maxFailures !== Infinity && !(Number.isSafeInteger(maxFailures) && maxFailures >= 0)) {
    throw new ArgumentError('maxFailures', 'an integer of at least 0, or Infinity', maxFailures)
  }
  const settings = { initialDelay, maxDelay, maxFailures, scheduler, callbacks: options }
  return (source) =>
    new Observable((subscriber) => new ReconnectingSubscription(source, settings, subscriber).connect())
}

/** The options with their defaults. The callbacks are called on the options themselves, which may be an instance of a class. */
interface Settings<T> extends Required<Omit<ReconnectOptions<T>, keyof Callbacks<T>>> {
  readonly callbacks: Callbacks<T>
}

type Callbacks<T> = Pick<
  ReconnectOptions<T>,
  'retryable' | 'done' | 'progress' | 'serverDelay' | 'onReconnect' | 'random'
>

/** One subscription of `reconnect`, over all of its connections. */
class ReconnectingSubscription<T> implements Unsubscribable {
  readonly #source: Observable<T>
  readonly #settings: Settings<T>
  readonly #subscriber: Subscriber<T>
  // Counts since the last progress.
  #reconnects = 0
  #failures = 0
  #backoffs = 0
  #connectedAt = 0
  /** The subscription between two connections: to `done`, or to the delay. */
  #pending = Subscription.EMPTY

  constructor(source: Observable<T>, settings: Settings<T>, subscriber: Subscriber<T>) {
    this.#source = source
    this.#settings = settings
    this.#subscriber = subscriber
    subscriber.add(this)
  }

  /** Called when the subscriber unsubscribes. A method, because thousands of quiet streams would have a closure each. */
  unsubscribe(): void {
    this.#pending.unsubscribe()
  }

  connect(): void {
    if (this.#subscriber.closed) return
    this.#connectedAt = this.#settings.scheduler.now()
    subscribeWithGate(this.#source, new Connection(this.#subscriber, this))
  }

  /** Called before each value is emitted. */
  beforeNext(value: T): void {
    try {
      const { callbacks } = this.#settings
      if (callbacks.progress !== undefined && !callbacks.progress(value)) return
    } catch (thrown) {
      return this.#subscriber.error(thrown)
    }
    if (this.#reconnects > 0) this.#reconnects = this.#failures = this.#backoffs = 0
  }

  /** Called when the connection completes. */
  completed(): void {
    const { callbacks } = this.#settings
    const done = defer(() => (callbacks.done === undefined ? of(true) : callbacks.done())).pipe(
      take(1),
      defaultIfEmpty(false),
    )
    const duration = this.#connectionDuration()
    const completeOrReconnect = (isDone: boolean) => {
      if (isDone) return this.#subscriber.complete()
      this.#reconnect(undefined, this.#delayAfterClose(duration))
    }
    const pending = done.subscribe({
      next: (isDone) => this.guard(() => completeOrReconnect(isDone)),
      error: (error: unknown) => this.guard(() => this.errored(error)),
    })
    // A synchronous `done` has set the delay as pending already.
    if (pending.closed) return
    this.#pending = pending
    this.#cancelIfClosed()
  }

  /** Passes an error that a callback of the settings throws to the subscriber. */
  guard(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      this.#subscriber.error(thrown)
    }
  }

  /** Called when the connection or `done` errors. */
  errored(error: unknown): void {
    this.#failures += 1
    this.#connectionDuration()
    if (this.#failures <= this.#settings.maxFailures && this.#isRetryable(error)) {
      this.#reconnect(error, this.#backoff(error))
    } else {
      this.#subscriber.error(error)
    }
  }

  /** How long the connection lasted, in ms. Above `maxDelay` it resets the backoff, since a stream may be quiet for long. */
  #connectionDuration(): number {
    const { maxDelay, scheduler } = this.#settings
    const duration = scheduler.now() - this.#connectedAt
    if (duration > maxDelay) this.#reconnects = this.#backoffs = 0
    return duration
  }

  #isRetryable(error: unknown): boolean {
    const { callbacks } = this.#settings
    return callbacks.retryable === undefined ? isRetryable(error) : callbacks.retryable(error)
  }

  #delayAfterClose(duration: number): number {
    const min = this.#minDelay
    const longEnough = Math.max(min, this.#settings.initialDelay)
    return this.#reconnects === 0 && duration >= longEnough ? min : this.#backoff()
  }

  get #minDelay(): number {
    return usableDelay(this.#settings.callbacks.serverDelay?.()) ?? 0
  }

  #backoff(error?: unknown): number {
    const { initialDelay, maxDelay, callbacks } = this.#settings
    const random = () => callbacks.random?.() ?? Math.random()
    const min = this.#minDelay
    const backoff = { initialDelay: Math.max(min, initialDelay), maxDelay }
    return Math.max(min, retryDelay(error, this.#backoffs++, backoff, random))
  }

  #reconnect(cause: unknown, wantedDelay: number): void {
    const delay = Math.min(wantedDelay, MAX_TIMER_DELAY)
    this.#reconnects += 1
    this.#settings.callbacks.onReconnect?.({ cause, attempt: this.#reconnects, delay })
    let connected = false
    // Scheduled even without a delay, so that sources that end synchronously do not grow the stack.
    const pending = this.#settings.scheduler.schedule(() => {
      connected = true
      this.connect()
    }, delay)
    // A synchronous scheduler has connected already.
    if (connected) return
    this.#pending = pending
    this.#cancelIfClosed()
  }

  /** A callback may have unsubscribed before `#pending` was set. */
  #cancelIfClosed(): void {
    if (this.#subscriber.closed) this.#pending.unsubscribe()
  }
}

/**
 * The subscriber of one connection. A class instead of `tap`, `repeat` and `retry`, because every event of every stream passes
 * through it: one call instead of six.
 */
class Connection<T> extends Subscriber<T> {
  readonly #subscriber: Subscriber<T>
  readonly #owner: ReconnectingSubscription<T>

  constructor(subscriber: Subscriber<T>, owner: ReconnectingSubscription<T>) {
    super(subscriber)
    this.#subscriber = subscriber
    this.#owner = owner
  }

  override next(value: T): void {
    if (this.closed) return
    this.#owner.beforeNext(value)
    this.#subscriber.next(value)
  }

  override error(error: unknown): void {
    this.#end(() => this.#owner.errored(error))
  }

  override complete(): void {
    this.#end(() => this.#owner.completed())
  }

  #end(notify: () => void): void {
    if (this.closed) return
    this.unsubscribe()
    this.#owner.guard(notify)
  }
}
