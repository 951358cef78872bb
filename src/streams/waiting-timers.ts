import type { Clocks } from './clocks.ts'
import { timerSources } from './effects.ts'
import { isAwaited, sourceKey } from './holds.ts'
import type { Hold } from './holds.ts'
import { compareTimers } from './timers.ts'
import type { Timer, TimerChange, TimerPlace } from './timers.ts'

/** A source that is behind, and the timers that wait for it. */
interface Waiting {
  readonly hold: Hold
  /** When the first of them was due. */
  first: number
  /** The keys whose first timer that waits is among them. */
  readonly keys: Set<string>
}

/** The first timer of a key that waits, and the source that it waits for. */
interface FirstWaiting {
  readonly place: TimerPlace
  readonly source: string
}

/**
 * Which timers by event time wait for a source that is behind: those that its events have started, or whose key is the source, and the later
 * timers of the same keys, since the timers of a key fire in order. It follows from the timers and the clocks alone, and is not stored.
 */
export class WaitingTimers {
  readonly #sources = new Map<string, Waiting>()
  readonly #keys = new Map<string, FirstWaiting>()
  #holds: Clocks['holds'] | undefined
  /** When the next of the sources is no longer waited for. */
  #nextEnd = Infinity
  readonly #lateness: number

  /** @param lateness That of the process, in ms. */
  constructor(lateness: number) {
    this.#lateness = lateness
  }

  /** Whether the timer waits. Call it for the timers that are due, in their order. */
  takes(timer: Timer, { holds, recorded }: Clocks): boolean {
    if (holds.size === 0 || timer.clock !== 'event') return false
    for (const each of [...timerSources(timer), timer.key]) {
      const source = sourceKey(each)
      const hold = holds.get(source)
      if (hold === undefined || !isAwaited(hold, recorded) || timer.due <= hold.through - this.#lateness)
        continue
      this.#add(source, hold, timer)
      return true
    }
    const first = this.#keys.get(timer.key)
    return first !== undefined && compareTimers(timer, first.place) >= 0
  }

  /** A timer was changed. Returns from which due time on timers may wait no longer; undefined if that is none. */
  changed({ key, name }: TimerChange): number | undefined {
    const first = this.#keys.get(key)
    if (first?.place.name !== name) return undefined
    this.#forget(key, first)
    return first.place.due
  }

  /** Sources are no longer waited for. Returns from which due time on timers wait no longer; undefined if that is none. */
  release({ holds, recorded }: Clocks): number | undefined {
    if (holds === this.#holds && recorded < this.#nextEnd) return undefined
    this.#holds = holds
    this.#nextEnd = Infinity
    let released: number | undefined
    for (const [source, { hold, first, keys }] of this.#sources) {
      if (holds.get(source) === hold && isAwaited(hold, recorded)) {
        this.#nextEnd = Math.min(this.#nextEnd, hold.until)
        continue
      }
      this.#sources.delete(source)
      for (const key of keys) this.#keys.delete(key)
      released = Math.min(released ?? Infinity, first)
    }
    return released
  }

  #add(source: string, hold: Hold, { key, name, due }: Timer): void {
    const waiting = this.#sources.get(source) ?? { hold, first: due, keys: new Set() }
    this.#sources.set(source, waiting)
    waiting.first = Math.min(waiting.first, due)
    this.#nextEnd = Math.min(this.#nextEnd, hold.until)
    const place = { key, name, due }
    const first = this.#keys.get(key)
    if (first !== undefined && compareTimers(first.place, place) <= 0) return
    if (first !== undefined) this.#forget(key, first)
    this.#keys.set(key, { place, source })
    waiting.keys.add(key)
  }

  #forget(key: string, { source }: FirstWaiting): void {
    this.#keys.delete(key)
    this.#sources.get(source)?.keys.delete(key)
  }
}
