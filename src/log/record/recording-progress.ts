import type { Gate } from '../../protocol/gate.ts'
import type { StreamItem } from '../../sources/shapes/stream-item.ts'
import { StreamProgress } from './stream-progress.ts'

/** From this number of streams on, one of a hundred may be behind without holding the others. */
const MANY = 100

/** How much later than it should a look comes from a process that was suspended, in ms. */
const SUSPENDED = 500

/** The time up to which the streams of a recording, or of one part of it, are complete. */
export class RecordingProgress {
  readonly #streams = new Map<string, StreamProgress>()
  readonly #gate: Gate
  #through = -Infinity
  /** Since when this process reads what comes without a pause. */
  #awakeSince: number
  /** When the next look is expected. */
  #expected = Infinity

  constructor(gate: Gate, now: () => number) {
    this.#gate = gate
    this.#awakeSince = now()
    gate.onChange(() => (this.#awakeSince = now()))
  }

  /** They were complete up to this time before, in Unix ms. */
  resume(through: number): void {
    this.#through = Math.max(this.#through, through)
  }

  /**
   * A stream is read from now on.
   *
   * @param through The time up to which it is known to be complete. Default: it is not known.
   */
  join(name: string, isPolled: boolean, through?: number): void {
    this.#streams.set(name, new StreamProgress(isPolled, through))
  }

  /** A stream has ended, or is read no longer. */
  leave(name: string): void {
    this.#streams.delete(name)
  }

  /** A stream has emitted an item. */
  took(item: StreamItem, now: number): void {
    this.#streams.get(item.stream.name)?.took(item, now)
  }

  /**
   * The time up to which all of them are complete, or 99 of 100 if they are many. It never goes back.
   *
   * @param next When the next call is expected, in Unix ms.
   */
  look(now: number, next: number): number {
    // What came meanwhile is read after this.
    if (now - this.#expected > SUSPENDED || this.#gate.closed) this.#awakeSince = now
    this.#expected = next
    for (const stream of this.#streams.values()) stream.look(now, this.#awakeSince)
    // If none of them holds anything yet, it is complete up to now, and may stand still later.
    this.#through = Math.max(this.#through, Math.min(now, this.#ofMost(now)))
    return this.#through
  }

  #ofMost(now: number): number {
    const { size } = this.#streams
    if (size === 0) return now
    if (size < MANY)
      return Array.from(this.#streams.values()).reduce(
        (least, { through }) => Math.min(least, through),
        Infinity,
      )
    const times = new Float64Array(size)
    let at = 0
    for (const { through } of this.#streams.values()) times[at++] = through
    // In place, which is several times as fast as `toSorted`: a look takes 9 ms for 100,000 monitors.
    times.sort()
    return times[Math.floor(size / MANY)] ?? now
  }
}
