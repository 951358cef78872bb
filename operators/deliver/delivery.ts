import { Subject, takeUntil } from 'rxjs'
import type { Observable, Subscriber, Subscription } from 'rxjs'
import { KeyedBacklog, OpenBacklog } from './backlog.ts'
import type { Backlog } from './backlog.ts'
import { Brake } from './backpressure.ts'
import { DrainTimeoutError } from './drain-timeout-error.ts'
import { gateOf, subscribeThrough } from '../../src/protocol/gate.ts'
import type { Gate } from '../../src/protocol/gate.ts'
import { Slot } from './in-flight.ts'
import type { Handling, SlotOwner } from './in-flight.ts'
import { MAX_TIMER_DELAY } from '../../src/protocol/timer-limit.ts'

/** How the events of one subscription are delivered. */
export interface DeliveryPlan<T> extends Handling<T> {
  readonly concurrency: number
  readonly key: ((event: T) => string) | undefined
  readonly highWaterMark: number
  readonly gate: Gate | undefined
  readonly abort: AbortSignal | undefined
  readonly drainTimeout: number
}

/** One subscription of `deliver`: what waits, what is in flight, who is held back, and how it ends. */
export class Delivery<T> implements SlotOwner<T> {
  readonly #plan: DeliveryPlan<T>
  readonly #subscriber: Subscriber<T>
  /** The gate of whoever is fed. */
  readonly #outer: Gate | undefined
  readonly #brake: Brake
  readonly #backlog: Backlog<T>
  /** All slots that were ever needed; those in `#idle` are free. */
  readonly #slots: Slot<T>[] = []
  readonly #idle: Slot<T>[] = []
  readonly #handlers = new AbortController()
  readonly #stop = new Subject<void>()
  #source: Subscription | undefined
  #inFlight = 0
  #pumping = false
  /** Nothing comes from the source any more. */
  #ended = false
  /** Nothing is to be started any more. */
  #stopped = false
  /** The subscriber has heard its last. */
  #over = false
  #sourceFailure: { readonly error: unknown } | undefined
  #failure: { readonly error: unknown } | undefined
  #deadline: Subscription | undefined

  constructor(plan: DeliveryPlan<T>, subscriber: Subscriber<T>) {
    this.#plan = plan
    this.#subscriber = subscriber
    this.#outer = gateOf(subscriber)
    this.#brake = new Brake(this.#outer, plan.gate)
    this.#backlog = plan.key === undefined ? new OpenBacklog() : new KeyedBacklog(plan.key)
    subscriber.add(() => this.#close())
  }

  get signal(): AbortSignal {
    return this.#handlers.signal
  }

  get failed(): boolean {
    return this.#failure !== undefined
  }

  /** Subscribes to the source. */
  start(source: Observable<T>): void {
    const { abort } = this.#plan
    if (abort?.aborted === true) return this.#subscriber.complete()
    this.#subscriber.add(this.#plan.checkpoint?.attach?.())
    // Before the source can listen to the same signal: it would error, and what waits would still be started.
    abort?.addEventListener('abort', this.#abort)
    this.#source = subscribeThrough(this.#brake.gate, this.#outer, source.pipe(takeUntil(this.#stop)), {
      next: (event) => this.#take(event),
      error: (error: unknown) => this.#end({ error }),
      complete: () => this.#end(),
    })
  }

  handled(slot: Slot<T>): void {
    const { event } = slot
    this.#free(slot)
    this.#subscriber.next(event)
    this.#pump()
  }

  buried(slot: Slot<T>): void {
    this.#free(slot)
    this.#pump()
  }

  fail(error: unknown, slot?: Slot<T>): void {
    this.#failure ??= { error }
    if (slot !== undefined) this.#free(slot)
    for (const other of this.#slots) if (other.waits) this.#free(other)
    this.#stopTaking()
    this.#limit()
  }

  #take(event: T): void {
    try {
      this.#plan.checkpoint?.received(event)
      this.#backlog.push(event)
    } catch (error) {
      return this.fail(error)
    }
    this.#pump()
  }

  /** Starts what can be started. Not from within itself, so that handlers which are done at once do not grow the stack. */
  #pump(): void {
    if (this.#pumping) return this.#regulate()
    this.#pumping = true
    while (!this.#stopped && this.#inFlight < this.#plan.concurrency) {
      const lane = this.#backlog.turn()
      if (lane === undefined) break
      this.#inFlight += 1
      const slot = this.#idle.pop() ?? this.#newSlot()
      slot.take(lane)
    }
    this.#pumping = false
    this.#regulate()
    this.#endIfDone()
  }

  #newSlot(): Slot<T> {
    const slot = new Slot(this.#plan, this)
    this.#slots.push(slot)
    return slot
  }

  #free(slot: Slot<T>): void {
    if (slot.lane !== undefined) this.#backlog.release(slot.lane)
    slot.clear()
    this.#idle.push(slot)
    this.#inFlight -= 1
    // What waits is still handled after an error of the source. As long as one after another ends, none of them hangs.
    if (this.#sourceFailure !== undefined && !this.#stopped) this.#prolong()
  }

  #regulate(): void {
    const { highWaterMark } = this.#plan
    const { size } = this.#backlog
    // Between the two marks it stays as it is, so that sources stop and go on seldom.
    if (size >= highWaterMark) this.#brake.set(true)
    else if (size <= highWaterMark / 2) this.#brake.set(false)
  }

  /** The source has ended. */
  #end(failure?: { readonly error: unknown }): void {
    // It tears down only after it has told us, and a `retry` behind us would subscribe to it again before that.
    this.#source?.unsubscribe()
    this.#sourceFailure = failure
    this.#ended = true
    this.#brake.release()
    this.#pump()
    // A source that has completed is no failure: its last events may take as long as any others.
    if (failure !== undefined) this.#limit()
  }

  #stopTaking(): void {
    this.#stopped = true
    this.#backlog.clear()
    // To the source this is an unsubscription, to us it has completed. Whoever is fed hears of it afterwards: it may be a
    // `retry`, which subscribes to the source again at once.
    const pumping = this.#pumping
    this.#pumping = true
    this.#stop.next()
    this.#pumping = pumping
    this.#pump()
  }

  readonly #abort = (): void => {
    this.#stopTaking()
    this.#limit()
  }

  /** What is in flight has its time to end from now on, unless that runs already. */
  #limit(): void {
    const { drainTimeout, scheduler } = this.#plan
    if (this.#over || this.#deadline !== undefined || drainTimeout === Infinity) return
    this.#deadline = scheduler.schedule(() => this.#cutOff(), Math.min(drainTimeout, MAX_TIMER_DELAY))
  }

  #prolong(): void {
    this.#deadline?.unsubscribe()
    this.#deadline = undefined
    this.#limit()
  }

  #cutOff(): void {
    const cause = this.#failure ?? this.#sourceFailure
    const error = new DrainTimeoutError(
      this.#inFlight,
      this.#plan.drainTimeout,
      cause && { cause: cause.error },
    )
    this.#over = true
    this.#handlers.abort(error)
    this.#subscriber.error(error)
  }

  #endIfDone(): void {
    if (this.#over || !this.#ended || this.#inFlight > 0) return
    if (this.#backlog.size > 0 && !this.#stopped) return
    this.#over = true
    // What could not be handled goes first: the source's error would say that all that came before it was.
    const failure = this.#failure ?? this.#sourceFailure
    if (failure === undefined) this.#subscriber.complete()
    else this.#subscriber.error(failure.error)
  }

  /** The subscriber is gone: by itself, or since it was told of the end. */
  #close(): void {
    const left = !this.#over
    this.#over = this.#stopped = true
    this.#stop.next()
    this.#backlog.clear()
    this.#brake.release()
    this.#deadline?.unsubscribe()
    this.#plan.abort?.removeEventListener('abort', this.#abort)
    for (const slot of this.#slots) slot.cut()
    if (left) this.#handlers.abort()
  }
}
