import { asyncScheduler, Observable } from 'rxjs'
import type { OperatorFunction, SchedulerLike } from 'rxjs'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import {
  checkDuration,
  checkFunction,
  checkInteger,
  checkOptions,
  checkScheduler,
} from '../src/protocol/check.ts'
import { isObject } from '../src/protocol/json.ts'
import { Batching } from './batch/batching.ts'

/** Settings of {@link batch}. */
export interface BatchOptions<T> {
  /** Maximum number of values of a batch, at least 1. */
  readonly size: number
  /** How long a batch waits for more values after its first one, in ms. With 0, it has what comes in the same turn. */
  readonly wait: number
  /** Each batch has values with the same key only, in order. Default: none, and a batch has whatever comes. */
  readonly key?: (value: T) => string
  /** Schedules `wait`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

const OPTIONS = Object.keys({
  size: true,
  wait: true,
  key: true,
  scheduler: true,
} satisfies Record<keyof BatchOptions<unknown>, true>)

/**
 * Collects values into batches: non-empty arrays of up to `size` values, each emitted when it is full or `wait` ms after its first
 * value.
 *
 *     source:   --a-b-c------d--------e-|
 *               batch({ size: 3, wait: 5 })
 *     result:   ------x-----------y-----(z|)    x: [a, b, c], y: [d], z: [e]
 *
 * For a handler that does many things at once at less cost, such as an insert of many rows. `deliver` knows these batches: it joins
 * those that wait behind a slow handler, up to `size`, and it divides one that fails, until the value at fault is alone.
 *
 * - **Backpressure**: while the gate of the subscriber is closed, nothing is emitted. Batches fill up meanwhile, and once `size`
 *   values wait, sources are paused too.
 * - **Memory**: with `key`, the values of all unfinished batches count: once 1,000 or ten times `size` of them wait, whichever is more,
 *   the oldest batch is emitted before it is full, or sources are paused.
 * - **Acknowledgement**: entries of a log's consumer count as received while they are here, so its `stallTimeout` does not
 *   elapse. If the consumer cannot read on without the acknowledgement of what is here, batches are emitted before they are full.
 *
 * ```ts
 * import { range } from 'rxjs'
 * import { batch, deliver } from 'rivulet/operators'
 *
 * const insert = async (numbers: readonly number[]) => console.log(`${numbers.length} rows in one request`)
 *
 * range(1, 250)
 *   .pipe(batch({ size: 100, wait: 1_000 }), deliver(insert))
 *   .subscribe() // 100, 100 and 50 rows
 * ```
 *
 * How it ends:
 *
 * - The source completes or errors: the unfinished batches are emitted first, the oldest one first, whether or not the gate is open.
 * - `key` throws: the result errors at once, and the values that wait are dropped. They will not be acknowledged.
 * - The subscriber unsubscribes: the values that wait are dropped in the same way.
 *
 * @throws ArgumentError at the call, for an unknown option or an invalid one.
 */
export function batch<T>(options: BatchOptions<T>): OperatorFunction<T, readonly [T, ...T[]]> {
  checkBatchOptions('options', options)
  return batchesOf(options)
}

/**
 * The settings of {@link batch}.
 *
 * @param argument The argument or option that has them.
 * @param without The names of those that it does not have. Default: none.
 */
export function checkBatchOptions(argument: string, options: unknown, without: readonly string[] = []): void {
  if (!isObject(options)) throw new ArgumentError(argument, 'an object with size and wait', options)
  const names = OPTIONS.filter((name) => !without.includes(name))
  checkOptions(argument, options, names)
  const { size, wait, key, scheduler } = options
  const prefix = argument === 'options' ? '' : `${argument}.`
  checkInteger(`${prefix}size`, size, 1)
  checkDuration(`${prefix}wait`, wait)
  if (key !== undefined) checkFunction(`${prefix}key`, key)
  if (scheduler !== undefined) checkScheduler(`${prefix}scheduler`, scheduler)
}

/**
 * Collects values as {@link batch} does.
 *
 * @param isAlone Whether a value comes in a batch of its own, at once. Default: none does.
 */
export function batchesOf<T>(
  { size, wait, key, scheduler = asyncScheduler }: BatchOptions<T>,
  isAlone: (value: T) => boolean = () => false,
): OperatorFunction<T, readonly [T, ...T[]]> {
  const plan = { size, wait, key, scheduler, isAlone }
  return (source) => new Observable((subscriber) => new Batching(plan, subscriber).start(source))
}
