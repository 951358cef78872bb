import type { Clocks } from '../../streams/clocks.ts'
import { compareTimers, KeyTimers, timerId, Timers } from '../../streams/timers.ts'
import { WaitingTimers } from '../../streams/waiting-timers.ts'
import type { NameRange, Timer, TimerChange, TimerClock } from '../../streams/timers.ts'
import type { ProcessStore } from '../store/process-store.ts'

/** Maximum number of timers that are read at once. */
const PAGE = 500

/** Maximum number of timers of a key that are read for one call: more than it may append events. */
const MAX_NAMED = 1_000

const CLOCKS: readonly TimerClock[] = ['event', 'recorded']

type TimerPlace = Pick<Timer, 'due' | 'key' | 'name'>

interface ReadPlace extends TimerPlace {
  /** Whether it is after all timers of its time, and not at a timer. */
  readonly isAll: boolean
}

/**
 * The timers of a process in the order in which they fire. Those that are not due yet stay in the store. For each clock, all
 * timers up to a place are known; the next ones are read when they become due.
 */
export class TimerQueue {
  readonly #store: ProcessStore
  readonly #name: string
  readonly #known = new Timers()
  readonly #waiting: WaitingTimers
  /** All timers up to this place are known. */
  readonly #read: Record<TimerClock, ReadPlace> = {
    event: { ...placeAt(-Infinity), isAll: true },
    recorded: { ...placeAt(-Infinity), isAll: true },
  }

  /** @param lateness That of the process, in ms. */
  constructor(store: ProcessStore, name: string, lateness: number) {
    this.#store = store
    this.#name = name
    this.#waiting = new WaitingTimers(lateness)
  }

  /** Whether {@link next} has all timers that it needs. */
  isReadUpTo(until: Clocks): boolean {
    return CLOCKS.every((clock) => this.#isRead(clock, until))
  }

  /**
   * Reads timers that are due by then. Call it until {@link isReadUpTo}. Returns the timers that were read.
   *
   * @param changes The changes that are not in the store yet.
   */
  async read(until: Clocks, changes: Iterable<TimerChange>): Promise<readonly Timer[]> {
    const changed = new Map(Array.from(changes, (change) => [timerId(change), change]))
    const added: Timer[] = []
    for (const clock of CLOCKS) {
      if (this.#isRead(clock, until)) continue
      const after = this.#read[clock]
      const found = await this.#store.timers(this.#name, { clock, until: until[clock], after, limit: PAGE })
      const last = found.length < PAGE ? undefined : found.at(-1)
      const end = last ?? placeAt(until[clock])
      this.#read[clock] = { due: end.due, key: end.key, name: end.name, isAll: last === undefined }
      for (const timer of found) if (!changed.has(timerId(timer))) added.push(timer)
      for (const change of changed.values()) {
        if (change.due === null || change.clock !== clock) continue
        if (compareTimers(change, after) > 0 && compareTimers(change, end) <= 0) added.push(change)
      }
    }
    for (const timer of added) this.#known.set(timer)
    return added
  }

  /** Lets go of the timers of sources that are no longer waited for. Call it before timers fire. */
  release(until: Clocks): void {
    this.#readAgain(this.#waiting.release(until))
  }

  /** The first timer that fires by then, of those that were read. It stays. */
  next(until: Clocks): Timer | undefined {
    for (;;) {
      const timer = this.#known.due(until)
      if (timer === undefined || !this.#waiting.takes(timer, until)) return timer
      // It stays in the store: so any number of them can wait.
      this.#known.set({ key: timer.key, name: timer.name, due: null })
    }
  }

  /**
   * Timers of a key whose names are in a range, in the order of their names.
   *
   * @param changes The changes of this key that are not in the store yet.
   */
  async named(key: string, range: NameRange, changes: Iterable<TimerChange>): Promise<readonly Timer[]> {
    const stored = await this.#store.keyTimers(this.#name, key, range, MAX_NAMED)
    const timers = new KeyTimers()
    for (const timer of stored) timers.set(timer)
    for (const change of changes) {
      if (change.due === null) timers.delete(change.name)
      else timers.set(change)
    }
    return timers.named(range)
  }

  /** Applies a change. The caller also puts it into the store. */
  set(change: TimerChange): void {
    this.#readAgain(this.#waiting.changed(change))
    const isKnown = change.due !== null && compareTimers(change, this.#read[change.clock]) <= 0
    this.#known.set(isKnown ? change : { key: change.key, name: change.name, due: null })
  }

  /** Timers with the clock `event` that are due from this time on are read again. */
  #readAgain(due: number | undefined): void {
    if (due === undefined) return
    const first = this.#known.first('event')?.due ?? due
    this.#known.forget('event')
    const place = placeAt(Math.min(due, first) - 1)
    if (place.due < this.#read.event.due) this.#read.event = { ...place, isAll: true }
  }

  #isRead(clock: TimerClock, until: Clocks): boolean {
    if (this.#known.first(clock) !== undefined) return true
    const { due, isAll } = this.#read[clock]
    // If reading has ended at a timer that is due at this very time, others of the same time may follow it.
    return isAll ? due >= until[clock] : due > until[clock]
  }
}

/** The place after all timers that are due at this time. */
function placeAt(time: number): TimerPlace {
  return { due: time + 0.5, key: '', name: '' }
}
