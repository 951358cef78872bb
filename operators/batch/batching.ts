import { Subject, takeUntil } from 'rxjs'
import type { Observable, SchedulerLike, Subscriber, Subscription } from 'rxjs'
import { noteBatch } from '../batches.ts'
import type { BatchOrigin } from '../batches.ts'
import { Queue } from '../queue.ts'
import {
  handOn,
  onAcknowledgementsAwaited,
  passExpectation,
  receive,
  release,
} from '../../src/protocol/acknowledgement.ts'
import { Gate, gateOf, subscribeUnderGate } from '../../src/protocol/gate.ts'
import { MAX_TIMER_DELAY } from '../../src/protocol/timer-limit.ts'

/** How the values of one subscription are collected. */
export interface BatchPlan<T> extends BatchOrigin {
  readonly wait: number
  readonly key: ((value: T) => string) | undefined
  readonly scheduler: SchedulerLike
  /** Whether a value comes in a batch of its own, at once. */
  readonly isAlone: (value: T) => boolean
}

/** A batch that is being filled. */
interface Filling<T> {
  readonly origin: BatchOrigin
  readonly key: string | undefined
  readonly values: [T, ...T[]]
  timer: Subscription | undefined
  /** Whether it has waited for long enough. */
  isDue: boolean
}

/** The origin of batches of one value, which are joined with no others. */
const SINGLE: BatchOrigin = { size: 1 }

/** With keys, so many values may wait in batches that are not full; or ten times the size of a batch, if that is more. */
const MAX_WAITING = 1_000

/** One subscription of `batch`. */
export class Batching<T> {
  readonly #plan: BatchPlan<T>
  readonly #subscriber: Subscriber<readonly [T, ...T[]]>
  /** The gate of the subscriber. */
  readonly #downstream: Gate | undefined
  readonly #gate = new Gate()
  readonly #stop = new Subject<void>()
  /** The batches that are being filled, by their keys, the oldest one first. */
  readonly #filling = new Map<string | undefined, Filling<T>>()
  readonly #full = new Queue<Filling<T>>()
  readonly #maxWaiting: number
  /** Number of values in all of these batches. */
  #waiting = 0
  #isEmitting = false
  /** Whether the source waits for acknowledgements, so that no batch waits for more values. */
  #isAwaited = false
  #isOver = false
  #source: Subscription | undefined

  constructor(plan: BatchPlan<T>, subscriber: Subscriber<readonly [T, ...T[]]>) {
    this.#plan = plan
    this.#subscriber = subscriber
    this.#maxWaiting = plan.key === undefined ? plan.size : Math.max(MAX_WAITING, 10 * plan.size)
    this.#downstream = gateOf(subscriber)
    const unlisten = this.#downstream?.onChange(() => this.#emit())
    onAcknowledgementsAwaited(this.#gate, (count) => this.#awaited(count))
    subscriber.add(() => {
      unlisten?.()
      this.#tearDown()
    })
  }

  /** Subscribes to the source. */
  start(source: Observable<T>): void {
    const stoppable = source.pipe(takeUntil(this.#stop))
    this.#source = subscribeUnderGate(this.#gate, this.#downstream, stoppable, {
      next: (value) => this.#next(value),
      error: (error: unknown) => this.#end(() => this.#subscriber.error(error)),
      complete: () => this.#end(() => this.#subscriber.complete()),
    })
  }

  #next(value: T): void {
    if (this.#isOver) return
    try {
      receive(value, this.#gate)
    } catch (error) {
      return this.#subscriber.error(error)
    }
    passExpectation(this.#gate, this.#downstream)
    try {
      this.#add(value)
    } catch (error) {
      release(value)
      return this.#subscriber.error(error)
    }
    this.#emit()
  }

  #add(value: T): void {
    const { size, key, isAlone } = this.#plan
    const isSingle = size === 1 || isAlone(value)
    const name = key?.(value)
    this.#waiting += 1
    const filling = isSingle ? undefined : this.#filling.get(name)
    if (filling !== undefined) {
      filling.values.push(value)
      if (filling.values.length === size) this.#full.push(this.#taken(filling))
      return
    }
    const origin = isSingle ? SINGLE : this.#plan
    const created: Filling<T> = { origin, key: name, values: [value], timer: undefined, isDue: false }
    if (isSingle) return this.#full.push(created)
    this.#filling.set(name, created)
    this.#startTimer(created)
  }

  #startTimer(filling: Filling<T>): void {
    const { wait, scheduler } = this.#plan
    const elapsed = () => {
      filling.isDue = true
      this.#emit()
    }
    filling.timer = scheduler.schedule(elapsed, Math.min(wait, MAX_TIMER_DELAY))
  }

  /** Emits what is full or due while the subscriber's gate is open. Not reentrant, so that batches keep their order. */
  #emit(): void {
    if (this.#isEmitting) return
    this.#isEmitting = true
    while (this.#downstream?.closed !== true) {
      const next = this.#full.shift() ?? this.#due()
      if (next === undefined) break
      this.#send(next)
    }
    this.#isEmitting = false
    this.#updateGate()
  }

  #due(): Filling<T> | undefined {
    const [oldest] = this.#filling.values()
    if (oldest === undefined) this.#isAwaited = false
    const isDue = oldest?.isDue === true || this.#isAwaited || this.#waiting >= this.#maxWaiting
    return oldest !== undefined && isDue ? this.#taken(oldest) : undefined
  }

  #taken(filling: Filling<T>): Filling<T> {
    filling.timer?.unsubscribe()
    this.#filling.delete(filling.key)
    return filling
  }

  #send({ origin, key, values }: Filling<T>): void {
    this.#waiting -= values.length
    noteBatch(values, origin, key)
    this.#subscriber.next(values)
    // After it: the subscriber has received them, so none is without a receiver in between.
    handOn(values)
  }

  /** The source cannot go on before so many values are acknowledged. Those that were emitted may still be. */
  #awaited(count: number): void {
    if (this.#waiting < count) return
    this.#isAwaited = true
    this.#emit()
  }

  #updateGate(): void {
    const isClosed = !this.#isOver && this.#downstream?.closed === true && this.#waiting >= this.#maxWaiting
    if (isClosed === this.#gate.closed) return
    if (isClosed) this.#gate.close()
    else this.#gate.open()
  }

  #end(notify: () => void): void {
    if (this.#isOver) return
    // RxJS tears the source down after this call. A `retry` downstream would subscribe to it again before that.
    this.#source?.unsubscribe()
    for (let full = this.#full.shift(); full !== undefined; full = this.#full.shift()) this.#send(full)
    for (const filling of this.#filling.values()) this.#send(this.#taken(filling))
    notify()
  }

  #tearDown(): void {
    this.#isOver = true
    this.#stop.next()
    for (const { values } of this.#full.drain()) release(values)
    for (const filling of this.#filling.values()) release(this.#taken(filling).values)
    this.#updateGate()
  }
}
