import { firstIndex } from '../protocol/first-index.ts'
import { compareStored, originalText, storedText } from '../protocol/stored-text.ts'
import type { Clocks } from './clocks.ts'

/** The clock that a timer's `due` is compared with: the watermark, or the time of recording. */
export type TimerClock = 'event' | 'recorded'

/** A timer of a process. Its name is unique for its key. */
export interface Timer {
  readonly key: string
  readonly name: string
  readonly clock: TimerClock
  /** Due time, in Unix ms. */
  readonly due: number
  /** The cause of the timer, as the process has stored it. */
  readonly cause: string
  /** The data that it was started with, as JSON; null for none. */
  readonly data: string | null
}

/** A timer that was set, in the place of an earlier one of its key and name, or one that is gone (`due` null). */
export type TimerChange = Timer | (Pick<Timer, 'key' | 'name'> & { readonly due: null })

/** The place of a timer in the order in which timers fire. */
export type TimerPlace = Pick<Timer, 'due' | 'key' | 'name'>

/**
 * The order in which timers fire: by due time, then key, then name. Texts are compared by code point as they are stored, so
 * that every store has the same order.
 */
export function compareTimers(a: TimerPlace, b: TimerPlace): number {
  return a.due - b.due || compareTexts(a.key, b.key) || compareTexts(a.name, b.name)
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : compareStored(storedText(a), storedText(b))
}

/** A range of the names of timers of a key, by code point as they are stored. */
export interface NameRange {
  /** The first name. */
  readonly from: string
  /** The name before which it ends. */
  readonly to: string
}

/** The timers of a key in memory, by name. */
export class KeyTimers {
  readonly #byName = new Map<string, Timer>()
  /** The names as they are stored, in order; undefined until they are read, since most keys have one timer. */
  #names: string[] | undefined

  get size(): number {
    return this.#byName.size
  }

  get(name: string): Timer | undefined {
    return this.#byName.get(name)
  }

  all(): Iterable<Timer> {
    return this.#byName.values()
  }

  set(timer: Timer): void {
    const { name } = timer
    if (this.#names !== undefined && !this.#byName.has(name)) {
      const stored = storedText(name)
      this.#names.splice(placeOf(this.#names, stored), 0, stored)
    }
    this.#byName.set(name, timer)
  }

  delete(name: string): void {
    if (!this.#byName.delete(name) || this.#names === undefined) return
    this.#names.splice(placeOf(this.#names, storedText(name)), 1)
  }

  /** Timers whose names are in a range, in the order of their names: at most so many. */
  named({ from, to }: NameRange, limit = Infinity): Timer[] {
    this.#names ??= Array.from(this.#byName.keys(), storedText).toSorted(compareStored)
    const first = placeOf(this.#names, storedText(from))
    const end = placeOf(this.#names, storedText(to))
    return this.#names
      .slice(first, Math.min(end, first + limit))
      .flatMap((name) => this.#byName.get(originalText(name)) ?? [])
  }
}

/** The index of a name among names in order, or where it belongs. */
function placeOf(names: readonly string[], name: string): number {
  return firstIndex(names, (each) => compareStored(each, name) >= 0)
}

/** The text is different for each key and name. */
export function timerId({ key, name }: Pick<Timer, 'key' | 'name'>): string {
  return `${key.length}:${key}${name}`
}

/** Timers in memory, in the order in which they fire. One for each key and name. */
export class Timers {
  readonly #byKey = new Map<string, KeyTimers>()
  #size = 0
  readonly #queues: Readonly<Record<TimerClock, TimerHeap>> = {
    event: new TimerHeap(),
    recorded: new TimerHeap(),
  }

  get size(): number {
    return this.#size
  }

  /** Sets a timer in the place of the one of its key and name, or removes that one. */
  set(change: TimerChange): void {
    const { key, name } = change
    let timers = this.#byKey.get(key)
    const before = timers?.size ?? 0
    if (change.due === null) {
      timers?.delete(name)
      if (timers?.size === 0) this.#byKey.delete(key)
    } else {
      if (timers === undefined) this.#byKey.set(key, (timers = new KeyTimers()))
      timers.set(change)
      this.#queues[change.clock].push(change)
    }
    this.#size += (timers?.size ?? 0) - before
    this.#compact()
  }

  /** Timers of a key, in the order of their names. */
  named(key: string, range: NameRange): readonly Timer[] {
    return this.#byKey.get(key)?.named(range) ?? []
  }

  /** The first timer of a clock. */
  first(clock: TimerClock): Timer | undefined {
    const queue = this.#queues[clock]
    for (let first = queue.first; first !== undefined; first = queue.first) {
      if (this.#byKey.get(first.key)?.get(first.name) === first) return first
      queue.shift()
    }
    return undefined
  }

  /** Forgets the timers of a clock. */
  forget(clock: TimerClock): void {
    this.#queues[clock].clear()
    for (const timers of this.#byKey.values())
      for (const { key, name, clock: own } of timers.all())
        if (own === clock) this.set({ key, name, due: null })
  }

  /** Takes the first timer of its clock out of the order, until {@link restore}. */
  setAside({ clock }: Timer): void {
    this.#queues[clock].shift()
  }

  /** Puts the timers of a key back into the order. One that is there twice fires once, since it is gone then. */
  restoreKey(key: string): void {
    for (const timer of this.#byKey.get(key)?.all() ?? []) this.#queues[timer.clock].push(timer)
  }

  /** Puts all timers back into the order. */
  restore(): void {
    this.#queues.event.clear()
    this.#queues.recorded.clear()
    for (const timers of this.#byKey.values())
      for (const timer of timers.all()) this.#queues[timer.clock].push(timer)
  }

  /** The first timer that is due by then, on either clock. It stays. */
  due(until: Clocks): Timer | undefined {
    const [event, recorded] = [this.#due('event', until), this.#due('recorded', until)]
    if (event === undefined || recorded === undefined) return event ?? recorded
    return compareTimers(event, recorded) <= 0 ? event : recorded
  }

  #due(clock: TimerClock, until: Clocks): Timer | undefined {
    const first = this.first(clock)
    return first !== undefined && first.due <= until[clock] ? first : undefined
  }

  /** Timers that were replaced or removed stay in the queues until they come first. They must not outnumber the others. */
  #compact(): void {
    const count = this.#queues.event.size + this.#queues.recorded.size
    if (count >= 1_000 && count >= 4 * this.#size) this.restore()
  }
}

/** A binary heap of timers. */
class TimerHeap {
  readonly #timers: Timer[] = []

  /** The next one to fire. */
  get first(): Timer | undefined {
    return this.#timers[0]
  }

  get size(): number {
    return this.#timers.length
  }

  clear(): void {
    this.#timers.length = 0
  }

  push(timer: Timer): void {
    const timers = this.#timers
    let at = timers.length
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = timers[above]
      if (parent === undefined || compareTimers(parent, timer) <= 0) break
      timers[at] = parent
      at = above
    }
    timers[at] = timer
  }

  /** Removes the first one. */
  shift(): void {
    const timers = this.#timers
    const last = timers.pop()
    if (last === undefined || timers.length === 0) return
    let at = 0
    for (;;) {
      const left = timers[2 * at + 1]
      const right = timers[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && compareTimers(right, left) < 0
      const child = isRight ? right : left
      if (compareTimers(last, child) <= 0) break
      timers[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    timers[at] = last
  }
}
