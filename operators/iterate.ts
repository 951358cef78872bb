import { from, isObservable, observable } from 'rxjs'
import type { Observable, Subscription } from 'rxjs'
import { acknowledge, receive, release } from '../src/protocol/acknowledgement.ts'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { checkInteger, checkOptions } from '../src/protocol/check.ts'
import { Gate, subscribeUnderGate } from '../src/protocol/gate.ts'
import { Queue } from './queue.ts'

/** Settings of {@link iterate}. */
export interface IterateOptions {
  /** Number of buffered values at which the source is paused. Default 1,000. */
  readonly highWaterMark?: number
}

/**
 * Reads an observable with `for await`, with backpressure: pauses the source while the loop is behind.
 *
 *     source:   --a--b--c-----------d--|
 *               iterate(source, { highWaterMark: 2 })
 *     gate:     --------x--o------------      x: closes, o: opens
 *     loop:     --a--------b-----c--d--|
 *
 * The first `next()` subscribes, under a {@link Gate} that closes when `highWaterMark` values are buffered and opens when
 * half of them are read. Values of a source without support for gates are buffered in memory without a limit.
 *
 * The loop must await its own work. Do not pass an async generator around it to RxJS, which requests each next value at
 * once. `from(iterate(source))` subscribes to `source` itself, or emits the remaining values if iteration has begun.
 *
 * ```ts
 * import { interval, take } from 'rxjs'
 * import { iterate } from 'rivulet/operators'
 *
 * for await (const n of iterate(interval(10).pipe(take(3)))) console.log(n) // 0, 1, 2
 * ```
 *
 * Each `next()` acknowledges the entries of a log's consumer that earlier calls have returned. Leaving the loop by `break` or
 * an error does not.
 *
 * An error of the source is thrown once the values before it are read. Leaving the loop unsubscribes, drops buffered values
 * and opens the gate. Concurrent calls of `next()` are resolved in order.
 *
 * @throws ArgumentError at the call, for an unknown option, a `source` that is not an Observable or a `highWaterMark` below 1.
 */
export function iterate<T>(source: Observable<T>, options: IterateOptions = {}): AsyncIterableIterator<T> {
  checkOptions('options', options, ['highWaterMark'])
  const { highWaterMark = 1_000 } = options
  if (!isObservable(source)) throw new ArgumentError('source', 'an Observable', source)
  checkInteger('highWaterMark', highWaterMark, 1)
  return new ObservableIterator(source, highWaterMark)
}

/** A pending `next()`. */
interface Waiter<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined }

class ObservableIterator<T> implements AsyncIterableIterator<T> {
  readonly #source: Observable<T>
  readonly #highWaterMark: number
  readonly #gate = new Gate()
  // At least one of the two is empty.
  readonly #results = new Queue<IteratorYieldResult<T>>()
  readonly #waiters = new Queue<Waiter<T>>()
  /** The values that were returned and are not acknowledged. */
  readonly #handed = new Queue<T>()
  #subscription: Subscription | undefined
  #ended = false
  #failure: { readonly error: unknown } | undefined

  constructor(source: Observable<T>, highWaterMark: number) {
    this.#source = source
    this.#highWaterMark = highWaterMark
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** RxJS would otherwise request each next value at once, and the gate of a consumer would not reach the source. */
  [observable](): Observable<T> {
    if (this.#subscription === undefined && !this.#ended) return this.#source
    const remaining: AsyncIterable<T> = { [Symbol.asyncIterator]: () => this }
    return from(remaining)
  }

  next(): Promise<IteratorResult<T, undefined>> {
    this.#subscribe()
    this.#acknowledgeHanded()
    const result = this.#results.shift()
    if (result !== undefined) {
      if (this.#results.size <= this.#highWaterMark / 2) this.#gate.open()
      this.#handed.push(result.value)
      return Promise.resolve(result)
    }
    if (this.#failure !== undefined) {
      const { error } = this.#failure
      this.#failure = undefined
      return Promise.reject(error)
    }
    if (this.#ended) return Promise.resolve(DONE)
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#stop()
    return Promise.resolve(DONE)
  }

  throw(error: unknown): Promise<IteratorResult<T, undefined>> {
    this.#stop()
    return Promise.reject(error)
  }

  #subscribe(): void {
    if (this.#subscription !== undefined || this.#ended) return
    this.#subscription = subscribeUnderGate(this.#gate, undefined, this.#source, {
      next: (value) => this.#next(value),
      error: (error: unknown) => this.#end({ error }),
      complete: () => this.#end(),
    })
    // A value was refused while the source emitted synchronously.
    if (this.#ended) this.#subscription.unsubscribe()
  }

  /** Asking for the next value means that those before it were handled. */
  #acknowledgeHanded(): void {
    for (let count = this.#handed.size; count > 0; count--) acknowledge(this.#handed.shift())
  }

  #next(value: T): void {
    if (this.#ended) return
    try {
      // A buffered value counts too: the source may end before the loop has read it.
      receive(value, this.#gate)
    } catch (error) {
      this.#subscription?.unsubscribe()
      return this.#end({ error })
    }
    const result: IteratorYieldResult<T> = { done: false, value }
    const waiter = this.#waiters.shift()
    if (waiter !== undefined) {
      this.#handed.push(value)
      return waiter.resolve(result)
    }
    this.#results.push(result)
    if (this.#results.size >= this.#highWaterMark) this.#gate.close()
  }

  #end(failure?: { readonly error: unknown }): void {
    this.#ended = true
    // Other subscribers of a shared source must not stay paused.
    this.#gate.open()
    const first = failure && this.#waiters.shift()
    if (first === undefined) this.#failure = failure
    else first.reject(failure?.error)
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) {
      waiter.resolve(DONE)
    }
  }

  #stop(): void {
    this.#subscription?.unsubscribe()
    for (const value of this.#handed.drain()) release(value)
    for (const { value } of this.#results.drain()) release(value)
    this.#end()
  }
}
