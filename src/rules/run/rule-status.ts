import type { EventLog } from '../../log/event-log/event-log.ts'
import { checkInteger, checkOptions, checkText } from '../../protocol/check.ts'
import type { Alert } from '../../protocol/alert.ts'
import { checkLog } from '../../protocol/check-log.ts'
import { alertData, dataOf } from '../evaluate/alert-data.ts'
import { ruleOfKey } from '../evaluate/key.ts'
import type { RuleState } from '../evaluate/state.ts'
import { REGISTRY } from './registry.ts'
import type { ProcessedState } from './rule-process.ts'

/** An alert that has not ended. */
type OpenAlert = Alert & { readonly state: Exclude<Alert['state'], 'resolved'> }

/** The counters of a rule. */
interface RuleNumbers {
  /** The name of the rule. */
  readonly alert: string
  readonly pending: number
  readonly firing: number
  readonly unknown: number
  /** Number of keys that have a state. Here and below, a key that changes during the call may count twice. */
  readonly keys: number
  /** Events without a field that an expression needs. */
  readonly missing: number
  /** Expressions that failed. */
  readonly errors: number
  /** Events of which a text was cut. */
  readonly cut: number
  /** Late events of the keys that have a state. */
  readonly late: number
  /** The number of events that windows have dropped since they had no room, for keys that have a state. */
  readonly overflow: number
}

/** The status of rules over a log. */
export interface RuleStatus {
  /** The open alerts: by the name of the rule, then firing ones first, then by `since`. */
  readonly alerts: readonly OpenAlert[]
  /** Whether there are more alerts than `limit`. */
  readonly isCut: boolean
  /** The rules that have a state, by name. */
  readonly rules: readonly RuleNumbers[]
}

/**
 * Which alerts are pending, firing or unknown, and the counters of each rule, at the last commit: whether the rules run here, in
 * another process or not at all.
 *
 * @param options `name`: of the process, default `rules`. `limit`: maximum number of alerts, default 10,000.
 *
 * @example
 * ```ts
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { ruleStatus } from 'rivulet/rules'
 *
 * await using log = await openLog(memoryStore())
 * for (const { alert, key, since } of (await ruleStatus(log)).alerts) console.log(alert, key, since)
 * ```
 */
export async function ruleStatus(
  log: EventLog,
  options: {
    /** Name of the process that runs the rules. Default `rules`. */
    readonly name?: string
    /** Maximum number of alerts. Default 10,000. */
    readonly limit?: number
  } = {},
): Promise<RuleStatus> {
  checkLog(log)
  checkOptions('options', options, ['name', 'limit'])
  const { name = 'rules', limit = 10_000 } = options
  checkText('options.name', name)
  checkInteger('options.limit', limit, 1)
  const status = new Status(limit)
  await new Promise<void>((resolve, reject) => {
    // A million keys are not held in memory.
    log
      .state<ProcessedState>(name)
      .changes(undefined, { live: false })
      .subscribe({
        next: ({ key, state }) => status.take(key, state),
        error: reject,
        complete: resolve,
      })
  })
  return status.result()
}

type Numbers = { -readonly [Name in keyof RuleNumbers]: RuleNumbers[Name] }

class Status {
  readonly #limit: number
  /** The open alerts, by key of the state. */
  readonly #alerts = new Map<string, OpenAlert>()
  readonly #numbers = new Map<string, Numbers>()
  #isCut = false

  constructor(limit: number) {
    this.#limit = limit
  }

  take(key: string, state: ProcessedState | null): void {
    if (key === REGISTRY) return
    const { name, prefix } = ruleOfKey(key)
    const numbers = this.#numbersOf(name)
    const before = this.#alerts.get(key)
    if (before !== undefined) {
      numbers[before.state]--
      this.#alerts.delete(key)
    }
    if (state === null) return
    if (prefix === undefined) {
      const { missing = 0, errors = 0, cut = 0 } = state.counts ?? {}
      Object.assign(numbers, { missing, errors, cut })
      return
    }
    numbers.keys++
    numbers.late += state.lateEvents ?? 0
    for (const { dropped = 0 } of state.windows ?? []) numbers.overflow += dropped
    const alert = openAlert(name, state)
    if (alert === undefined) return
    numbers[alert.state]++
    if (this.#alerts.size < this.#limit) this.#alerts.set(key, alert)
    else this.#isCut = true
  }

  result(): RuleStatus {
    return {
      alerts: [...this.#alerts.values()].toSorted(compareAlerts),
      isCut: this.#isCut,
      rules: [...this.#numbers.values()].toSorted((a, b) => compare(a.alert, b.alert)),
    }
  }

  #numbersOf(alert: string): Numbers {
    let numbers = this.#numbers.get(alert)
    if (numbers === undefined) {
      const nothing = { missing: 0, errors: 0, cut: 0, late: 0, overflow: 0 }
      numbers = { alert, pending: 0, firing: 0, unknown: 0, keys: 0, ...nothing }
      this.#numbers.set(alert, numbers)
    }
    return numbers
  }
}

function openAlert(name: string, state: RuleState): OpenAlert | undefined {
  const { trueSince, fired, unknown = null } = state
  if (trueSince === undefined && unknown === null) return undefined
  const data = alertData(name, state, dataOf(name, state))
  if (fired !== undefined) return { ...data, state: 'firing', resolved: null, unknown }
  if (trueSince !== undefined) return { ...data, state: 'pending', resolved: null, unknown }
  return { ...data, state: 'unknown', events: [], episode: null, resolved: null, unknown }
}

const ORDER = { firing: 0, pending: 1, unknown: 2 } as const

function compareAlerts(a: OpenAlert, b: OpenAlert): number {
  return compare(a.alert, b.alert) || ORDER[a.state] - ORDER[b.state] || compare(a.since, b.since)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
