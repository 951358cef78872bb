import { Subject, takeUntil } from 'rxjs'
import type { Observable, Subscriber, Subscription } from 'rxjs'
import { KeyedBacklog, UnkeyedBacklog } from './backlog.ts'
import type { Backlog } from './backlog.ts'
import { Backpressure } from './backpressure.ts'
import { DrainTimeoutError } from './drain-timeout-error.ts'
import { receive, release } from '../../src/protocol/acknowledgement.ts'
import { gateOf, subscribeUnderGate } from '../../src/protocol/gate.ts'
import type { Gate } from '../../src/protocol/gate.ts'
import { InFlightTask } from './in-flight.ts'
import type { Handling, InFlightOwner } from './in-flight.ts'
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

/** One subscription of `deliver`: its backlog, the events in flight, backpressure and how it ends. */
export class Delivery<T> implements InFlightOwner<T> {
  readonly #plan: DeliveryPlan<T>
  readonly #subscriber: Subscriber<T>
  /** The gate of the subscriber. */
  readonly #downstream: Gate | undefined
  readonly #backpressure: Backpressure
  readonly #backlog: Backlog<T>
  /** Every task that was created; `#idle` has those without an event. */
  readonly #tasks: InFlightTask<T>[] = []
  readonly #idle: InFlightTask<T>[] = []
  readonly #handlers = new AbortController()
  readonly #stop = new Subject<void>()
  #source: Subscription | undefined
  #inFlight = 0
  #starting = false
  /** The source has completed or errored, or `#stop` has completed it. */
  #sourceEnded = false
  /** Whether no more events are started. */
  #stopped = false
  /** The subscriber has completed, errored or unsubscribed. */
  #closed = false
  #sourceFailure: { readonly error: unknown } | undefined
  #failure: { readonly error: unknown } | undefined
  #drainTimer: Subscription | undefined

  constructor(plan: DeliveryPlan<T>, subscriber: Subscriber<T>) {
    this.#plan = plan
    this.#subscriber = subscriber
    this.#downstream = gateOf(subscriber)
    this.#backpressure = new Backpressure(this.#downstream, plan.gate)
    this.#backlog = plan.key === undefined ? new UnkeyedBacklog() : new KeyedBacklog(plan.key)
    subscriber.add(() => this.#teardown())
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
    // Registered before the source can listen to the same signal: if the source errored first, the backlog would still be started.
    abort?.addEventListener('abort', this.#abort)
    const stoppable = source.pipe(takeUntil(this.#stop))
    this.#source = subscribeUnderGate(this.#backpressure.gate, this.#downstream, stoppable, {
      next: (event) => this.#next(event),
      error: (error: unknown) => this.#endSource({ error }),
      complete: () => this.#endSource(),
    })
  }

  handled(task: InFlightTask<T>): void {
    const { event } = task
    this.#release(task)
    this.#subscriber.next(event)
    this.#startReady()
  }

  divided(task: InFlightTask<T>, parts: readonly T[]): void {
    if (task.partition !== undefined) this.#backlog.putBack(task.partition, parts)
    this.#release(task)
    this.#startReady()
  }

  deadLettered(task: InFlightTask<T>): void {
    this.#release(task)
    this.#startReady()
  }

  fail(error: unknown, task?: InFlightTask<T>): void {
    this.#failure ??= { error }
    if (task !== undefined) this.#giveUp(task)
    for (const other of this.#tasks) if (other.waiting) this.#giveUp(other)
    this.#stopSource()
    this.#startDrainTimer()
  }

  #next(event: T): void {
    try {
      receive(event, this.#backpressure.gate)
    } catch (error) {
      return this.fail(error)
    }
    try {
      this.#backlog.push(event)
    } catch (error) {
      release(event)
      return this.fail(error)
    }
    this.#startReady()
  }

  /** Starts events while `concurrency` permits. Not reentrant: synchronous handlers would grow the stack. */
  #startReady(): void {
    if (this.#starting) return this.#updateBackpressure()
    this.#starting = true
    while (!this.#stopped && this.#inFlight < this.#plan.concurrency) {
      const partition = this.#backlog.next()
      if (partition === undefined) break
      this.#inFlight += 1
      const task = this.#idle.pop() ?? this.#createTask()
      task.start(partition)
    }
    this.#starting = false
    this.#updateBackpressure()
    this.#endIfDone()
  }

  #createTask(): InFlightTask<T> {
    const task = new InFlightTask(this.#plan, this)
    this.#tasks.push(task)
    return task
  }

  #release(task: InFlightTask<T>): void {
    if (task.partition !== undefined) this.#backlog.release(task.partition)
    task.clear()
    this.#idle.push(task)
    this.#inFlight -= 1
    // The backlog is still handled after an error of the source. As long as tasks keep ending, no handler hangs.
    if (this.#sourceFailure !== undefined && !this.#stopped) this.#restartDrainTimer()
  }

  /** Drops the event of a task, which will not be acknowledged. */
  #giveUp(task: InFlightTask<T>): void {
    task.releaseEvent()
    this.#release(task)
  }

  /** Drops the events that were not started. They will not be acknowledged. */
  #dropBacklog(): void {
    for (const event of this.#backlog.drain()) release(event)
  }

  #updateBackpressure(): void {
    const { highWaterMark } = this.#plan
    const { size } = this.#backlog
    // No change between half and the full mark: sources pause and resume less often.
    if (size >= highWaterMark) this.#backpressure.setFull(true)
    else if (size <= highWaterMark / 2) this.#backpressure.setFull(false)
  }

  #endSource(failure?: { readonly error: unknown }): void {
    // RxJS tears the source down after this call. A `retry` downstream would subscribe to it again before that.
    this.#source?.unsubscribe()
    this.#sourceFailure = failure
    this.#sourceEnded = true
    this.#backpressure.release()
    this.#startReady()
    // Without a timeout after completion, which is no failure.
    if (failure !== undefined) this.#startDrainTimer()
  }

  #stopSource(): void {
    this.#stopped = true
    this.#dropBacklog()
    // `#stop` calls `#endSource`. The subscriber must not be notified within it: it may be a `retry`, which resubscribes at once.
    const starting = this.#starting
    this.#starting = true
    this.#stop.next()
    this.#starting = starting
    this.#startReady()
  }

  readonly #abort = (): void => {
    this.#stopSource()
    this.#startDrainTimer()
  }

  /** Limits how long handlers in flight may take, unless the timer runs already. */
  #startDrainTimer(): void {
    const { drainTimeout, scheduler } = this.#plan
    if (this.#closed || this.#drainTimer !== undefined || drainTimeout === Infinity) return
    this.#drainTimer = scheduler.schedule(() => this.#timeOut(), Math.min(drainTimeout, MAX_TIMER_DELAY))
  }

  #restartDrainTimer(): void {
    this.#drainTimer?.unsubscribe()
    this.#drainTimer = undefined
    this.#startDrainTimer()
  }

  #timeOut(): void {
    const cause = this.#failure ?? this.#sourceFailure
    const error = new DrainTimeoutError(
      this.#inFlight,
      this.#plan.drainTimeout,
      cause && { cause: cause.error },
    )
    this.#closed = true
    this.#handlers.abort(error)
    this.#subscriber.error(error)
  }

  #endIfDone(): void {
    if (this.#closed || !this.#sourceEnded || this.#inFlight > 0) return
    if (this.#backlog.size > 0 && !this.#stopped) return
    this.#closed = true
    // A failure to handle an event takes precedence: the source's error means that every event before it was handled.
    const failure = this.#failure ?? this.#sourceFailure
    if (failure === undefined) this.#subscriber.complete()
    else this.#subscriber.error(failure.error)
  }

  #teardown(): void {
    const unsubscribed = !this.#closed
    this.#closed = this.#stopped = true
    this.#stop.next()
    this.#dropBacklog()
    this.#backpressure.release()
    this.#drainTimer?.unsubscribe()
    this.#plan.abort?.removeEventListener('abort', this.#abort)
    for (const task of this.#tasks) task.cancel()
    if (unsubscribed) this.#handlers.abort()
  }
}
