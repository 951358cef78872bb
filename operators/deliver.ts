import { asyncScheduler, Observable } from 'rxjs'
import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { INITIAL_DELAY, MAX_DELAY } from '../src/protocol/backoff.ts'
import type { Backoff } from '../src/protocol/backoff.ts'
import { checkDuration, checkInteger } from '../src/protocol/check.ts'
import { Delivery } from './deliver/delivery.ts'
import type { DeliveryPlan } from './deliver/delivery.ts'
import { Gate } from '../src/protocol/gate.ts'
import type { Progress } from './progress.ts'
import type { DeadLetters } from './deliver/in-flight.ts'

/** Settings of {@link deliver}. */
export interface DeliverConfig<T> extends Backoff {
  /** Events that are in flight at once, at the most: handled, waiting for another attempt, or being saved. Default 8. */
  readonly concurrency?: number
  /**
   * Events with the same key are handled one after another, in the order of their coming; those of different keys side
   * by side, the keys taking turns. Default: none, and every event is handled as soon as there is room.
   */
  readonly key?: (event: T) => string
  /**
   * Events that may wait, besides those in flight, before sources are asked to stop reading; they go on when half of
   * them have been started. Default 64, or twice the concurrency where that is more.
   */
  readonly highWaterMark?: number
  /**
   * A gate to close along with the one that the source is subscribed under: for sources that were subscribed elsewhere,
   * behind `share` or a `Subject` for instance, with `underGate`. It serves one subscription.
   */
  readonly gate?: Gate
  /** Attempts after the first, as long as an event's handler fails. Default 4; `Infinity` never gives up. */
  readonly retries?: number
  /** Whether the handler may succeed after this error. Default: unless the error itself says `retryable: false`. */
  readonly retryable?: (error: unknown) => boolean
  /**
   * Takes the events that were given up. Default: none, and the first one is the end of the stream. One that throws, or
   * whose promise rejects, is the end too; a `Subject` that nobody listens to is none.
   */
  readonly deadLetters?: DeadLetters<T>
  /** Keeps the place of the pipeline: an event is over once its `handled` has settled. Default: none. */
  readonly checkpoint?: Progress<T>
  /** Ends the delivery in good order when it is aborted. Default: none. */
  readonly signal?: AbortSignal
  /**
   * How long handlers in flight have to end after an abort or a failure, in ms; `Infinity` for as long as it takes. What
   * waits is still handled after an error of the source, so there each event that is over begins the time anew. Default
   * 10,000.
   */
  readonly drainTimeout?: number
  /** A number from 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number
  /** Waits. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/**
 * Calls a handler for each event, several at a time, holds the sources back while it is behind, and emits each event once
 * it was handled.
 *
 *     source:   --a--b-c--------d--|
 *     handler:    aaaaaaaaaa                how long each takes
 *                    bbbb
 *                        ccccc              waited for a slot
 *                               ddddd
 *               deliver(handler, { concurrency: 2 })
 *     result:   ---------b--a-c------(d|)
 *
 * - **Order**: events are started in the order of their coming and emitted in the order of completion. With `key`, each
 *   key has its own order, and a key whose handler hangs does not keep the others waiting until its own events fill the
 *   queue.
 * - **Slow handlers**: the source is subscribed under a {@link Gate}. It closes when `highWaterMark` events wait, and
 *   while the gate of the subscriber is closed, so that sources stop reading, whenever they were subscribed: by `switchMap`
 *   or after the delay of a `retry` as well. What comes nevertheless waits in memory.
 * - **Failures**: a handler that throws or rejects is called again, after the error's `retryAfter` or a backoff with full
 *   jitter. An event whose last attempt failed goes to `deadLetters` and not to the result: each event ends in one of
 *   them. Without `deadLetters` it ends the stream.
 * - **Checkpoint**: `received` hears of each event as it comes, `handled` of each that was handled or became a dead letter.
 *   The event is emitted, and its slot is free, once that is saved.
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
 * - The source completes: what waits and what is in flight is handled first, however long that takes, then the result
 *   completes.
 * - The source errors: so does the result, once what waits and what is in flight is handled.
 * - An event cannot be handled or buried, or its place cannot be saved: the source is unsubscribed and nothing is started
 *   or tried again; what is being handled ends, then the result errors.
 * - `signal` is aborted: the source is unsubscribed and nothing that waits is started; what is in flight ends, its
 *   retries included, then the result completes.
 * - It is unsubscribed: all at once. The signals of the handlers are aborted, and nothing more is emitted or saved.
 *
 * A handler that hangs does not hang the end: where that takes longer than `drainTimeout` after an error or an abort, the
 * signals of the handlers are aborted, and the result errors with a `DrainTimeoutError`, whose `cause` is what had failed.
 *
 * What was not handled has not moved the checkpoint, so the next start gets it.
 *
 * @param handler Gets the event and a signal that tells it to give up; one signal for all handlers of a subscription. One
 * that returns no promise is done when it returns, and costs none.
 * @throws ArgumentError at the call, for a setting that cannot be right.
 */
export function deliver<T>(
  handler: (event: T, signal: AbortSignal) => void | PromiseLike<unknown>,
  config: DeliverConfig<NoInfer<T>> = {},
): MonoTypeOperatorFunction<T> {
  const {
    concurrency = 8,
    highWaterMark = Math.max(64, 2 * concurrency),
    retries = 4,
    initialDelay = INITIAL_DELAY,
    maxDelay = MAX_DELAY,
    retryable = notRefused,
    drainTimeout = 10_000,
    random = Math.random,
    scheduler = asyncScheduler,
    key,
    gate,
    deadLetters,
    checkpoint,
    signal,
  } = config
  checkInteger('concurrency', concurrency, 1)
  checkInteger('highWaterMark', highWaterMark, 1)
  if (retries !== Infinity) checkInteger('retries', retries, 0)
  checkDuration('initialDelay', initialDelay)
  checkDuration('maxDelay', maxDelay)
  checkDuration('drainTimeout', drainTimeout, true)
  checkFunctions({ handler, retryable, random })
  if (key !== undefined) checkFunctions({ key })
  if (gate !== undefined && !(gate instanceof Gate)) throw new ArgumentError('gate', 'a Gate', gate)
  if (deadLetters !== undefined) checkFunctions({ 'deadLetters.next': deadLetters.next })
  if (checkpoint !== undefined) {
    checkFunctions({ 'checkpoint.received': checkpoint.received, 'checkpoint.handled': checkpoint.handled })
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new ArgumentError('signal', 'an AbortSignal', signal)
  }
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
    checkpoint,
    abort: signal,
    drainTimeout,
  }

  return (source) => new Observable((subscriber) => new Delivery(plan, subscriber).start(source))
}

function checkFunctions(given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== 'function') throw new ArgumentError(name, 'a function', value)
  }
}

/** A handler's error mostly says nothing of trying again, so it has to say that there is no use in it. */
function notRefused(error: unknown): boolean {
  return !(typeof error === 'object' && error !== null && 'retryable' in error && error.retryable === false)
}
