import { asyncScheduler, Observable } from 'rxjs'
import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { INITIAL_DELAY, MAX_DELAY, retryableOf } from '../src/protocol/backoff.ts'
import type { Backoff } from '../src/protocol/backoff.ts'
import {
  checkDuration,
  checkFunction,
  checkOptionalFunctions,
  checkInteger,
  checkOptions,
  checkSignal,
} from '../src/protocol/check.ts'
import { isObject } from '../src/protocol/json.ts'
import { Delivery } from './deliver/delivery.ts'
import type { DeliveryPlan } from './deliver/delivery.ts'
import { Gate } from '../src/protocol/gate.ts'
import type { DeadLetters } from './deliver/in-flight.ts'

/** Settings of {@link deliver}. */
export interface DeliverOptions<T> extends Backoff {
  /** Maximum number of events in flight: being handled, or waiting for a retry. Default 8. */
  readonly concurrency?: number
  /**
   * Events with the same key are handled one at a time, in the order of arrival. Different keys are handled concurrently,
   * round-robin. Default: none, and every event is handled as soon as `concurrency` permits.
   */
  readonly key?: (event: T) => string
  /**
   * Number of buffered events, without those in flight, at which sources are paused. They resume when half of the buffer
   * is left. Default: 64 or twice the concurrency, the greater of the two.
   */
  readonly highWaterMark?: number
  /**
   * A second gate, which is closed and opened together with the gate through which `deliver` subscribes. For a source that is subscribed
   * elsewhere with `underGate`, behind `share` or a `Subject` for instance. Use it for one subscription only. Default: none.
   */
  readonly gate?: Gate
  /** Maximum number of retries for an event whose handler fails. Default 4; `Infinity` never gives up. */
  readonly retries?: number
  /** Whether to retry after this error. Default: unless the error has `retryable: false`. */
  readonly retryable?: (error: unknown) => boolean
  /**
   * Takes the events whose handler failed for good; `'log'` stores them in the log of the consumer. Default: none, and the first of them errors
   * the stream.
   *
   * The stream also errors when `next` throws or its promise rejects. A `Subject` without subscribers counts as none. `'log'` stores them in the
   * transaction that acknowledges them: `log.deadLetters(name)` lists them and hands them out again.
   */
  readonly deadLetters?: DeadLetters<T> | 'log'
  /** When aborted, no more events are started, and the result completes once those in flight have ended. Default: none. */
  readonly signal?: AbortSignal
  /**
   * How long handlers in flight may take to end after an abort or a failure, in ms; `Infinity` sets no limit. After an
   * error of the source, buffered events are still handled, and each event that ends restarts the timeout. Default 10,000.
   */
  readonly drainTimeout?: number
  /** Returns a number from 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number
  /** Schedules retries and the drain timeout. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/** The names of {@link DeliverOptions}. */
export const DELIVER_OPTIONS = Object.keys({
  concurrency: true,
  key: true,
  highWaterMark: true,
  gate: true,
  retries: true,
  retryable: true,
  initialDelay: true,
  maxDelay: true,
  deadLetters: true,
  signal: true,
  drainTimeout: true,
  random: true,
  scheduler: true,
} satisfies Record<keyof DeliverOptions<unknown>, true>)

/**
 * Calls a handler for each event, with bounded concurrency, retries and backpressure, and emits each event once it is
 * handled.
 *
 *     source:   --a--b-c--------d--|
 *     handler:    aaaaaaaaaa                duration of each call
 *                    bbbb
 *                        ccccc              waited for `b` to end
 *                               ddddd
 *               deliver(handler, { concurrency: 2 })
 *     result:   ---------b--a-c------(d|)
 *
 * - **Order**: events start in the order of arrival and are emitted in the order of completion. With `key`, order is kept
 *   within each key. A key whose handler hangs does not block the other keys until its own events fill the buffer.
 * - **Backpressure**: the source is subscribed under a {@link Gate}, which closes while `highWaterMark` events are buffered
 *   and while the gate of the subscriber is closed. Sources pause then, also those that `switchMap` or `retry` subscribe to
 *   later. Events that arrive nevertheless are buffered in memory.
 * - **Failures**: when a handler throws or rejects, it is called again after a backoff with full jitter, and not before the
 *   error's `retryAfter`. After the last attempt the event goes to `deadLetters` instead of the result. Without `deadLetters`
 *   the result errors.
 * - **Batches**: a batch of {@link batch} is one event. Batches that wait are joined, up to their `size`. One whose handler fails for good
 *   is divided into halves, and these in turn, until the value at fault is alone: only that one goes to `deadLetters`, as a batch of one,
 *   or errors the result. The others are handled, and emitted in the parts in which they were. A part with several values is tried once,
 *   a single value is retried in full. With `retryable: false`, a batch is divided after its first attempt. A handler gets values of a
 *   divided batch again, so it must tolerate values that it has seen in an attempt that failed.
 * - **Acknowledgement**: an entry of a log's consumer, and each entry of an array, is acknowledged once it is handled or its
 *   dead letter is stored. An unhandled one comes again at the next start.
 *
 * ```ts
 * import { range } from 'rxjs'
 * import { deliver } from 'rivulet/operators'
 *
 * const save = async (n: number) => {
 *   if (n === 2) throw new Error('two is refused')
 * }
 *
 * range(1, 3)
 *   .pipe(
 *     deliver(save, {
 *       concurrency: 2,
 *       retries: 1,
 *       initialDelay: 10,
 *       deadLetters: { next: ({ event, attempts }) => console.log(`gave up ${event} after ${attempts} attempts`) },
 *     }),
 *   )
 *   .subscribe((n) => console.log(n)) // 1, 3, gave up 2 after 2 attempts
 * ```
 *
 * How it ends:
 *
 * - The source completes: the result completes once buffered events and those in flight are handled, without a timeout.
 * - The source errors: the result errors once buffered events and those in flight are handled.
 * - An event can be neither handled nor dead-lettered: the source is unsubscribed, no event is started or retried, and the
 *   result errors once the running handlers have ended.
 * - `signal` is aborted: the source is unsubscribed and no event is started. The result completes once those in flight have
 *   ended, retries included.
 * - The subscriber unsubscribes: the signal of the handlers is aborted at once, and nothing more is emitted or acknowledged.
 *
 * If handlers do not end within `drainTimeout` after an error or an abort, their signal is aborted, and the result errors
 * with a `DrainTimeoutError`, whose `cause` is the failure.
 *
 * @param handler Called with the event and a signal that is aborted when it should stop; all handlers of a subscription
 * share the signal. A handler that returns no promise is done when it returns, and no promise is created for it.
 * @throws ArgumentError at the call, for an unknown option or an invalid one.
 */
export function deliver<T>(
  handler: (event: T, signal: AbortSignal) => void | PromiseLike<unknown>,
  options: DeliverOptions<NoInfer<T>> = {},
): MonoTypeOperatorFunction<T> {
  checkOptions('options', options, DELIVER_OPTIONS)
  const {
    concurrency = 8,
    highWaterMark = Math.max(64, 2 * concurrency),
    retries = 4,
    initialDelay = INITIAL_DELAY,
    maxDelay = MAX_DELAY,
    // Most errors of a handler have no `retryable`, so only an explicit `false` prevents a retry.
    retryable = (error: unknown) => retryableOf(error) !== false,
    drainTimeout = 10_000,
    random = Math.random,
    scheduler = asyncScheduler,
    key,
    gate,
    deadLetters,
    signal,
  } = options
  checkInteger('concurrency', concurrency, 1)
  checkInteger('highWaterMark', highWaterMark, 1)
  if (retries !== Infinity) checkInteger('retries', retries, 0)
  checkDuration('initialDelay', initialDelay)
  checkDuration('maxDelay', maxDelay)
  checkDuration('drainTimeout', drainTimeout, true)
  checkFunction('handler', handler)
  checkOptionalFunctions({ retryable, random, key })
  if (gate !== undefined && !(gate instanceof Gate)) throw new ArgumentError('gate', 'a Gate', gate)
  if (deadLetters !== undefined && deadLetters !== 'log') checkDeadLetters(deadLetters)
  if (signal !== undefined) checkSignal('signal', signal)
  const plan: DeliveryPlan<T> = {
    handler,
    concurrency,
    key,
    highWaterMark,
    gate,
    retries,
    backoff: { initialDelay, maxDelay },
    retryable,
    random,
    scheduler,
    deadLetters,
    abort: signal,
    drainTimeout,
  }

  return (source) => new Observable((subscriber) => new Delivery(plan, subscriber).start(source))
}

function checkDeadLetters(deadLetters: unknown): void {
  if (!isObject(deadLetters)) throw new ArgumentError('deadLetters', '"log" or an object', deadLetters)
  checkFunction('deadLetters.next', deadLetters['next'])
}
