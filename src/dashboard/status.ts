import type { EventLog } from '../log/event-log/event-log.ts'
import type { LogStats } from '../log/store/stats.ts'

/** The answer of a dashboard to `GET /status`: facts that are not in events of the log, and so in no view. */
export interface DashboardStatus {
  /** When it was read, in Unix ms. */
  readonly now: number
  /** The numbers of the log, how far each consumer and process is behind, and which streams are recorded. */
  readonly log: LogStats
  /** The features of the dashboard besides showing the log. */
  readonly can: { readonly search: boolean; readonly addRuns: boolean; readonly documents: boolean }
}

/** Maximum age of a status, in ms, and the factor of its reading time for which it is kept. */
const MAX_AGE = 1_000
const REST = 10

/** How long callers wait for a reading that does not end, in ms: the calls of a log end within half of it. */
const MAX_READING = 60_000

/** Reads the status of a log, once for all callers within a second. */
export class StatusReader {
  readonly #log: EventLog
  readonly #can: DashboardStatus['can']
  #last: { readonly status: Promise<DashboardStatus>; until: number } | undefined

  constructor(log: EventLog, can: DashboardStatus['can']) {
    this.#log = log
    this.#can = can
  }

  read(): Promise<DashboardStatus> {
    if (this.#last !== undefined && performance.now() < this.#last.until) return this.#last.status
    const began = performance.now()
    const status = this.#read()
    const last = { status, until: began + MAX_READING }
    this.#last = last
    const end = () => {
      const now = performance.now()
      // The log may be slow. Reading its numbers must not keep it busy.
      last.until = now + Math.max(MAX_AGE, REST * (now - began))
    }
    status.then(end, () => (last.until = 0))
    return status
  }

  async #read(): Promise<DashboardStatus> {
    const log = await this.#log.stats()
    return { now: Date.now(), log, can: this.#can }
  }
}
