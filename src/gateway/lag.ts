import type { EventLog } from '../log/event-log/event-log.ts'
import { limitedRead } from '../protocol/limited-read.ts'

/** How long the numbers of a log are reused, in ms: reading them takes some time. */
const MAX_AGE = 1_000

/** How long the log is waited for, in ms: a heartbeat goes without its numbers then. */
const LIMIT = 1_000

/** How far views are behind the log. */
export class Lag {
  readonly #log: EventLog
  readonly #stats = limitedRead(() => this.#readStats(), LIMIT)
  #read = -Infinity
  #behind: Promise<ReadonlyMap<string, number> | undefined> | undefined

  constructor(log: EventLog) {
    this.#log = log
  }

  /**
   * How long ago the oldest entry was recorded that one of these processes has not processed, in ms; 0 for none; undefined while the
   * log cannot say so.
   */
  async of(processes: readonly string[]): Promise<number | undefined> {
    const now = performance.now()
    if (this.#behind === undefined || now - this.#read > MAX_AGE) {
      this.#read = now
      // The views themselves find out whether the log still works.
      this.#behind = this.#stats().catch(() => undefined)
    }
    const behind = await this.#behind
    if (behind === undefined) return undefined
    return Math.max(0, ...processes.map((name) => behind.get(name) ?? 0))
  }

  async #readStats(): Promise<ReadonlyMap<string, number>> {
    const { readers } = await this.#log.stats()
    return new Map(
      readers.flatMap(({ kind, name, lag }) => (kind === 'process' ? [[name, lag.seconds * 1_000]] : [])),
    )
  }
}
