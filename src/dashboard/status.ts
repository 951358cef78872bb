import type { EventLog } from '../log/event-log.ts'
import type { LogStats } from '../log/store/stats.ts'
import { ruleStatus } from '../rules/run/rule-status.ts'
import type { RuleStatus } from '../rules/run/rule-status.ts'

/** The answer of a dashboard to `GET /status`: facts that are not in events of the log, and so in no view. */
export interface DashboardStatus {
  /** When it was read, in Unix ms. */
  readonly now: number
  /** The numbers of the log, how far each consumer and process is behind, and which streams are recorded. */
  readonly log: LogStats
  /** Alerts that are pending, firing or unknown, as their rules know them. At most 1,000. */
  readonly rules: RuleStatus
  /** The features of the dashboard besides showing the log. */
  readonly can: { readonly search: boolean; readonly addRuns: boolean; readonly documents: boolean }
}

/** The most alerts in a status. */
const MAX_ALERTS = 1_000

/** Maximum age of a status, in ms, and the factor of its reading time for which it is kept. */
const MAX_AGE = 1_000
const REST = 10

/** How long callers wait for a reading that does not end, in ms: the calls of a log end within half of it. */
const MAX_READING = 60_000

/** Reads the status of a log, once for all callers within a second. */
export class StatusReader {
  readonly #log: EventLog
  readonly #can: DashboardStatus['can']
  readonly #rules: string
  #last: { readonly status: Promise<DashboardStatus>; until: number } | undefined

  /** @param rules The name of the rules' process. */
  constructor(log: EventLog, can: DashboardStatus['can'], rules: string) {
    this.#log = log
    this.#can = can
    this.#rules = rules
  }

  read(): Promise<DashboardStatus> {
    if (this.#last !== undefined && performance.now() < this.#last.until) return this.#last.status
    const began = performance.now()
    const status = this.#read()
    const last = { status, until: began + MAX_READING }
    this.#last = last
    const end = () => {
      const now = performance.now()
      // Rules may have a million keys. Reading them must not keep the process busy.
      last.until = now + Math.max(MAX_AGE, REST * (now - began))
    }
    status.then(end, () => (last.until = 0))
    return status
  }

  async #read(): Promise<DashboardStatus> {
    const [log, rules] = await Promise.all([
      this.#log.stats(),
      ruleStatus(this.#log, { name: this.#rules, limit: MAX_ALERTS }),
    ])
    return { now: Date.now(), log, rules, can: this.#can }
  }
}
