import type { Clocks } from './clocks.ts'
import { timerSources } from './effects.ts'
import { holdOf } from './holds.ts'
import type { Hold } from './holds.ts'
import { compareTimers } from './timers.ts'
import type { Timer, TimerPlace } from './timers.ts'

/** A source of which timers wait. */
interface Waiting {
  readonly hold: Hold
  /** When the first of its timers was due. */
  first: number
}

/** A key whose event time stands. */
interface StandingKey {
  /** The first of its timers that waits. */
  readonly first: TimerPlace
  /** The source that it waits for. */
  readonly source: string
}

/**
 * Which timers by event time wait for a source that is behind: those that its events have started, or whose key is the source, and the later
 * timers of the same keys, since the timers of a key fire in order. What it knows follows from the timers that are due, and is not stored.
 */
export class WaitingTimers {
  readonly #lateness: number
  readonly #sources = new Map<string, Waiting>()
  readonly #keys = new Map<string, StandingKey>()
  #seen: Clocks['holds'] | undefined
  /** When the next of the sources is no longer waited for. */
  #nextEnd = Infinity

  /** @param lateness That of the process, in ms. */
  constructor(lateness: number) {
    this.#lateness = lateness
  }

  /** Whether the timer waits. Call it for the timers that are due, in their order. */
  takes(timer: Timer, { holds, recorded }: Clocks): boolean {
    if (timer.clock !== 'event' || holds.size === 0) return false
    const { key, due } = timer
    const own = holdOf(holds, [...timerSources(timer), key])
    if (own !== undefined && isActive(own.hold, recorded) && due > this.#reached(own.hold)) {
      this.#add(own.source, own.hold, timer)
      return true
    }
    const standing = this.#keys.get(key)
    return standing !== undefined && compareTimers(timer, standing.first) >= 0
  }

  /**
   * The time up to which timers fire for a key, and for what these sources have brought: before the first timer that waits, and not after what
   * has come.
   */
  clocksOf(clocks: Clocks, key: string, sources: readonly string[]): Clocks {
    const { holds, recorded } = clocks
    if (holds.size === 0) return clocks
    const own = holdOf(holds, [...sources, key])
    const standing = this.#keys.get(key)
    const before = standing === undefined ? clocks.event : Math.min(clocks.event, standing.first.due - 1)
    if (own === undefined) return { ...clocks, event: before }
    // It was waited for in vain.
    if (!isActive(own.hold, recorded)) return { ...clocks, event: before, complete: false }
    return { ...clocks, event: Math.min(before, this.#reached(own.hold)) }
  }

  /** Lets go of the timers of sources that are no longer waited for. Returns when the first of them was due; undefined for none. */
  release({ holds, recorded }: Clocks): number | undefined {
    if (holds === this.#seen && recorded < this.#nextEnd) return undefined
    this.#seen = holds
    this.#nextEnd = Infinity
    let first: number | undefined
    const current = new Set(holds.values())
    for (const [source, waiting] of this.#sources) {
      if (current.has(waiting.hold) && isActive(waiting.hold, recorded)) {
        this.#nextEnd = Math.min(this.#nextEnd, waiting.hold.until)
        continue
      }
      this.#sources.delete(source)
      first = Math.min(first ?? Infinity, waiting.first)
    }
    for (const [key, { source }] of this.#keys) if (!this.#sources.has(source)) this.#keys.delete(key)
    return first
  }

  #add(source: string, hold: Hold, { key, name, due }: Timer): void {
    const waiting = this.#sources.get(source)
    if (waiting === undefined) this.#sources.set(source, { hold, first: due })
    else waiting.first = Math.min(waiting.first, due)
    this.#nextEnd = Math.min(this.#nextEnd, hold.until)
    const standing = this.#keys.get(key)
    if (standing === undefined || compareTimers({ key, name, due }, standing.first) < 0) {
      this.#keys.set(key, { first: { key, name, due }, source })
    }
  }

  /** The watermark of a source that is behind. */
  #reached({ through }: Hold): number {
    return Math.floor(through - this.#lateness)
  }
}

/** Whether a source that is behind is still waited for. */
function isActive({ until }: Hold, recorded: number): boolean {
  return recorded < until
}
