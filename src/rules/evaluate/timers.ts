import { TimerHeap } from '../../log/process/timer-heap.ts'
import { timerId } from '../../log/process/timer-queue.ts'
import { compareTimers } from '../../log/store/process-store.ts'
import type { TimerClock } from '../../log/store/process-store.ts'
import type { Cause } from '../../protocol/event.ts'

/** A timer of a state in memory. */
export interface MemoryTimer {
  readonly key: string
  readonly name: string
  readonly clock: TimerClock
  /** When it is due, Unix ms. */
  readonly due: number
  /** The event that set the timer, directly or through other timers. */
  readonly cause: Pick<Cause, 'source' | 'id' | 'revision' | 'hops'>
  /** The chain of the timer that set it, as the ids of its output need it; null if an event set it. */
  readonly chain: string | null
}

/** Times that timers are compared with, in Unix ms. */
export type Times = Readonly<Record<TimerClock, number>>

/** Timers in memory, in the order in which a process fires them. One for each key and name. */
export class Timers {
  readonly #byKey = new Map<string, MemoryTimer>()
  readonly #queues = { event: new TimerHeap<MemoryTimer>(), recorded: new TimerHeap<MemoryTimer>() }

  /** All timers, in no order. */
  all(): readonly MemoryTimer[] {
    return [...this.#byKey.values()]
  }

  set(timer: MemoryTimer): void {
    this.#byKey.set(timerId(timer), timer)
    this.#queues[timer.clock].push(timer)
    this.#compact()
  }

  cancel(timer: Pick<MemoryTimer, 'key' | 'name'>): void {
    this.#byKey.delete(timerId(timer))
  }

  /** When the first timer is due, on either clock; undefined for none. */
  get firstDue(): number | undefined {
    const [event, recorded] = [this.#first('event')?.due, this.#first('recorded')?.due]
    return event === undefined || recorded === undefined ? (event ?? recorded) : Math.min(event, recorded)
  }

  /** Removes the first timer that is due, and returns it. */
  take(until: Times): MemoryTimer | undefined {
    const [event, recorded] = [this.#due('event', until), this.#due('recorded', until)]
    const first =
      event === undefined || recorded === undefined || compareTimers(event, recorded) <= 0
        ? (event ?? recorded)
        : recorded
    if (first !== undefined) this.cancel(first)
    return first
  }

  #due(clock: TimerClock, until: Times): MemoryTimer | undefined {
    const first = this.#first(clock)
    return first !== undefined && first.due <= until[clock] ? first : undefined
  }

  #first(clock: TimerClock): MemoryTimer | undefined {
    const queue = this.#queues[clock]
    for (let first = queue.first; first !== undefined; first = queue.first) {
      if (this.#byKey.get(timerId(first)) === first) return first
      queue.shift()
    }
    return undefined
  }

  /** Timers that were moved or cancelled stay in the queues until they come first. They must not outnumber the others. */
  #compact(): void {
    const count = this.#queues.event.size + this.#queues.recorded.size
    if (count < 1_000 || count < 4 * this.#byKey.size) return
    this.#queues.event.clear()
    this.#queues.recorded.clear()
    for (const timer of this.#byKey.values()) this.#queues[timer.clock].push(timer)
  }
}
