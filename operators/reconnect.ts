import { asyncScheduler, defaultIfEmpty, defer, Observable, of, Subscriber, Subscription, take } from 'rxjs'
import type { MonoTypeOperatorFunction, ObservableInput, SchedulerLike } from 'rxjs'
import { backoffDelay, INITIAL_DELAY, isRetryable, MAX_DELAY } from '../src/protocol/backoff.ts'
import type { Backoff } from '../src/protocol/backoff.ts'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { checkDuration } from '../src/protocol/check.ts'
import { subscribeHeld } from '../src/protocol/gate.ts'
import { retryAfterOf, usableDelay } from '../src/protocol/retry-after.ts'
import { MAX_TIMER_DELAY } from '../src/protocol/timer-limit.ts'

/** One decision to connect again. */
export interface Reconnection {
  /** The error that ended the connection; undefined after a clean close. */
  readonly cause: unknown
  /** How many times in a row it was tried again without progress in between, this time included. */
  readonly attempt: number
  /** How long is waited before, in ms. */
  readonly delay: number
}

/** Settings of {@link reconnect}. */
export interface ReconnectConfig<T = unknown> extends Backoff {
  /** Failures in a row, without progress in between, that are borne; the next one goes through. Default `Infinity`. */
  readonly maxFailures?: number
  /** Whether the source may succeed after this error. Default: the error's own `retryable`. */
  readonly retryable?: (error: unknown) => boolean
  /**
   * Asked when the source completes whether that was the end. Its first value counts, and no value is `false`; its
   * error is a failure like one of the source. Default: it was.
   */
  readonly done?: () => ObservableInput<boolean>
  /**
   * Whether the value is progress, after which the backoff begins anew. Return `false` for what the server repeats: else a
   * server that repeats an event and closes is connected to again and again without a growing wait. Called once for each
   * value, before its emission. Default: every value is.
   */
  readonly progress?: (value: T) => boolean
  /**
   * The latest `retry:` that the server sent, in ms: the least that is waited before each reconnection, after a clean close
   * as well, and what the backoff grows from. An error's `retryAfter` wins over it. Default: none.
   */
  readonly serverDelay?: () => number | undefined
  /** Called when it is decided to connect again, before the wait. What it throws goes to the subscriber. */
  readonly onReconnect?: (reconnection: Reconnection) => void
  /** A number from 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number
  /** Waits. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/**
 * Subscribes to a cold source again when it drops, and tells a clean close from a failure.
 *
 *     source 1: --a--b--#
 *     source 2:               --c--|
 *     source 3:                    --d--|
 *               reconnect({ done: () => of(runsLeft === 0), initialDelay: 2 })
 *     result:   --a--b----------c----d--|
 *
 * - **Failure**: waits as long as the error's `retryAfter` says, else for a backoff with full jitter that keeps to the
 *   server's `retry:`. Progress begins the backoff anew: a value for which `progress` is true, or a connection that held longer
 *   than `maxDelay`.
 * - **Clean close** that was not the end: connects again as soon as the server's `retry:` allows. It backs off where the
 *   connection before brought no progress either, and where this one held shorter than the first delay, which is
 *   `retry:` or `initialDelay`: a server that accepts and closes in a loop is as good as down.
 *
 * The source has to know itself where to resume, for instance with `defer`. Each connection is held by the gate of the
 * subscriber.
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
 * An error that is not retryable, or one failure too many, passes through. Unsubscribing ends the connection, the wait
 * or the question whether it is done, whichever it is at.
 *
 * @throws ArgumentError at the call, for a negative delay or a `maxFailures` that is no count.
 */
export function reconnect<T>(config: ReconnectConfig<T> = {}): MonoTypeOperatorFunction<T> {
  const {
    initialDelay = INITIAL_DELAY,
    maxDelay = MAX_DELAY,
    maxFailures = Infinity,
    retryable = isRetryable,
    done = () => of(true),
    progress = () => true,
    serverDelay = () => undefined,
    onReconnect = () => {},
    random = Math.random,
    scheduler = asyncScheduler,
  } = config
  checkDuration('initialDelay', initialDelay)
  checkDuration('maxDelay', maxDelay)
  if (maxFailures !== Infinity && !(Number.isSafeInteger(maxFailures) && maxFailures >= 0)) {
    throw new ArgumentError('maxFailures', 'an integer of at least 0, or Infinity', maxFailures)
  }
  const settings: Settings<T> = {
    initialDelay,
    maxDelay,
    maxFailures,
    retryable,
    done,
    progress,
    serverDelay,
    onReconnect,
    random,
    scheduler,
  }

  return (source) => new Observable((subscriber) => new Reconnecting(source, settings, subscriber).connect())
}

type Settings<T> = Required<ReconnectConfig<T>>

/** One subscription, over all of its connections. */
class Reconnecting<T> {
  readonly #source: Observable<T>
  readonly #settings: Settings<T>
  readonly #subscriber: Subscriber<T>
  // Each counts what happened since the last progress.
  #reconnects = 0
  #failures = 0
  #backoffs = 0
  #connectedAt = 0
  /** What it does between two connections: asks whether it was the end, or waits. */
  #between = Subscription.EMPTY

  constructor(source: Observable<T>, settings: Settings<T>, subscriber: Subscriber<T>) {
    this.#source = source
    this.#settings = settings
    this.#subscriber = subscriber
    subscriber.add(() => this.#between.unsubscribe())
  }

  connect(): void {
    if (this.#subscriber.closed) return
    this.#connectedAt = this.#settings.scheduler.now()
    subscribeHeld(this.#source, new Connection(this.#subscriber, this))
  }

  /** A value is about to be emitted. */
  came(value: T): void {
    try {
      if (!this.#settings.progress(value)) return
    } catch (thrown) {
      return this.#subscriber.error(thrown)
    }
    if (this.#reconnects > 0) this.#reconnects = this.#failures = this.#backoffs = 0
  }

  /** The connection closed in good order. */
  closed(): void {
    const answer = defer(this.#settings.done).pipe(take(1), defaultIfEmpty(false))
    const held = this.#held()
    const goOn = (isDone: boolean) => {
      if (isDone) return this.#subscriber.complete()
      this.#again(undefined, this.#afterClose(held))
    }
    const asking = answer.subscribe({
      next: (isDone) => this.guarded(() => goOn(isDone)),
      error: (error: unknown) => this.guarded(() => this.failed(error)),
    })
    // An answer that came at once has begun the wait already.
    if (asking.closed) return
    this.#between = asking
    this.#leaveNothing()
  }

  /** What the settings' own functions throw goes to the subscriber. */
  guarded(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      this.#subscriber.error(thrown)
    }
  }

  /** The connection failed. */
  failed(error: unknown): void {
    this.#failures += 1
    this.#held()
    const { maxFailures, retryable } = this.#settings
    if (this.#failures > maxFailures || !retryable(error)) this.#subscriber.error(error)
    else this.#again(error, retryAfterOf(error) ?? this.#backoff())
  }

  /** How long the connection held, in ms. A stream may be quiet for long: beyond the longest wait it was no failed attempt. */
  #held(): number {
    const { maxDelay, scheduler } = this.#settings
    const held = scheduler.now() - this.#connectedAt
    if (held > maxDelay) this.#reconnects = this.#backoffs = 0
    return held
  }

  #afterClose(held: number): number {
    const { initialDelay, serverDelay } = this.#settings
    const least = usableDelay(serverDelay()) ?? 0
    return this.#reconnects === 0 && held >= (least || initialDelay) ? least : this.#backoff()
  }

  #backoff(): number {
    const { initialDelay, maxDelay, serverDelay, random } = this.#settings
    const least = usableDelay(serverDelay()) ?? 0
    const wait = backoffDelay(this.#backoffs++, { initialDelay: least || initialDelay, maxDelay }, random)
    return Math.max(least, wait)
  }

  #again(cause: unknown, wanted: number): void {
    const delay = Math.min(wanted, MAX_TIMER_DELAY)
    this.#reconnects += 1
    this.#settings.onReconnect({ cause, attempt: this.#reconnects, delay })
    let over = false
    // Always through the scheduler, so that sources that end within their subscription do not grow the stack.
    const wait = this.#settings.scheduler.schedule(() => {
      over = true
      this.connect()
    }, delay)
    // A scheduler that does not wait has come further by now.
    if (over) return
    this.#between = wait
    this.#leaveNothing()
  }

  /** A subscriber that had enough within a callback is not to be left with what began after it. */
  #leaveNothing(): void {
    if (this.#subscriber.closed) this.#between.unsubscribe()
  }
}

/**
 * One connection's subscriber. A class of its own instead of `tap`, `repeat` and `retry`, since every event of every stream
 * comes through here: one call instead of six.
 */
class Connection<T> extends Subscriber<T> {
  readonly #subscriber: Subscriber<T>
  readonly #connections: Reconnecting<T>

  constructor(subscriber: Subscriber<T>, connections: Reconnecting<T>) {
    super(subscriber)
    this.#subscriber = subscriber
    this.#connections = connections
  }

  override next(value: T): void {
    if (this.closed) return
    this.#connections.came(value)
    this.#subscriber.next(value)
  }

  override error(error: unknown): void {
    this.#end(() => this.#connections.failed(error))
  }

  override complete(): void {
    this.#end(() => this.#connections.closed())
  }

  #end(tell: () => void): void {
    if (this.closed) return
    this.unsubscribe()
    this.#connections.guarded(tell)
  }
}
