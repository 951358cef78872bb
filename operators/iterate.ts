import { from, isObservable, observable } from 'rxjs'
import type { Observable, Subscription } from 'rxjs'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { checkInteger } from '../src/protocol/check.ts'
import { Gate, subscribeThrough } from '../src/protocol/gate.ts'
import { Queue } from './queue.ts'

/** Settings of {@link iterate}. */
export interface IterateConfig {
  /** Values that may wait before the source is asked to stop reading. Default 1,000. */
  readonly highWaterMark?: number
}

/**
 * Reads an observable with `for await`, and holds its source back while the loop is behind.
 *
 *     source:   --a--b--c-----------d--|
 *               iterate(source, { highWaterMark: 2 })
 *     gate:     --------x--o------------      x: closes, o: opens
 *     loop:     --a--------b-----c--d--|
 *
 * The observable is subscribed at the first `next()`, under a {@link Gate} of the iteration's own. The gate closes
 * when `highWaterMark` values wait and opens when half of them are read, so that the source stops and starts seldom.
 * Only sources that obey a gate are held back; what others push waits in memory. The loop has to wait for its own work:
 * RxJS asks an async generator around the loop for each next value at once, so nothing is held back.
 * `from(iterate(source))` subscribes to `source` itself as long as no value was asked for, and emits what is left after that.
 *
 * ```ts
 * import { interval, take } from 'rxjs'
 * import { iterate } from 'rivulet/operators'
 *
 * for await (const n of iterate(interval(10).pipe(take(3)))) console.log(n) // 0, 1, 2
 * ```
 *
 * An error of the source is thrown once the values before it are read. Leaving the loop unsubscribes, drops what waits and
 * opens the gate. `next()` may be called again before the last answer came: answers come in order.
 *
 * @throws ArgumentError at the call, for something that is no observable or a `highWaterMark` below 1.
 */
export function iterate<T>(source: Observable<T>, config: IterateConfig = {}): AsyncIterableIterator<T> {
  const { highWaterMark = 1_000 } = config
  if (!isObservable(source)) throw new ArgumentError('source', 'an Observable', source)
  checkInteger('highWaterMark', highWaterMark, 1)
  return new ObservableIterator(source, highWaterMark)
}

/** A `next()` that waits for its answer. */
interface Waiter<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined }

class ObservableIterator<T> implements AsyncIterableIterator<T> {
  readonly #source: Observable<T>
  readonly #highWaterMark: number
  readonly #gate = new Gate()
  // Of these two one is empty at any time.
  readonly #results = new Queue<IteratorYieldResult<T>>()
  readonly #waiters = new Queue<Waiter<T>>()
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

  /** RxJS would ask for each next value as soon as it has one, and no gate of a consumer would reach the source. */
  [observable](): Observable<T> {
    if (this.#subscription === undefined && !this.#ended) return this.#source
    const rest: AsyncIterable<T> = { [Symbol.asyncIterator]: () => this }
    return from(rest)
  }

  next(): Promise<IteratorResult<T, undefined>> {
    this.#subscribe()
    const result = this.#results.shift()
    if (result !== undefined) {
      if (this.#results.size <= this.#highWaterMark / 2) this.#gate.open()
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
    this.#subscription = subscribeThrough(this.#gate, undefined, this.#source, {
      next: (value) => this.#take(value),
      error: (error: unknown) => this.#end({ error }),
      complete: () => this.#end(),
    })
  }

  #take(value: T): void {
    const result: IteratorYieldResult<T> = { done: false, value }
    const waiter = this.#waiters.shift()
    if (waiter !== undefined) {
      waiter.resolve(result)
      return
    }
    this.#results.push(result)
    if (this.#results.size >= this.#highWaterMark) this.#gate.close()
  }

  #end(failure?: { readonly error: unknown }): void {
    this.#ended = true
    // Whoever shares the source with this loop is not to be held by it for ever.
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
    this.#results.clear()
    this.#end()
  }
}
