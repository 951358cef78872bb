import { INITIAL_DELAY } from '../../protocol/backoff.ts'
import {
  checkDuration,
  checkInteger,
  checkList,
  checkOneOf,
  checkOptions,
  checkText,
  checkWait,
} from '../../protocol/check.ts'
import { notifierSettings } from './notifier-options.ts'
import type { NotifierOptions, NotifierSettings } from './notifier-options.ts'

/** Which alerts are one notification. Times are in ms. */
export interface Grouping {
  /** Alerts with the same values of these labels. Default: `alertname`. */
  readonly by?: readonly string[]
  /** How long the first event of a group waits for others. Default 5,000. */
  readonly wait?: number
  /** The shortest time between two notifications of a group. Default 60,000. */
  readonly interval?: number
}

/** A limit to the number of notifications. */
export interface RateLimit {
  /** Maximum number of notifications. */
  readonly max: number
  /** Within this time, in ms. */
  readonly per: number
}

/** Settings of notifiers that group alerts themselves. */
export interface GroupedOptions extends NotifierOptions {
  /** Which alerts are one notification. Default: see each notifier. */
  readonly grouping?: Grouping
  /**
   * Limits the notifications. Groups that exceed it wait, and are then one notification together; nothing is dropped. Counted
   * from the start of the notifier. Default: none.
   */
  readonly limit?: RateLimit
  /** How long a notification is tried, in ms. Then its events are dead letters of the consumer. Default 3,600,000. */
  readonly retryFor?: number
  /**
   * Alerts that have ended before they could be notified, such as those of an outage that is caught up: `notify` sends that they fired and
   * ended, `ignore` leaves them out. Default `notify`.
   */
  readonly past?: 'notify' | 'ignore'
}

/** The names of {@link GroupedOptions}. */
export const GROUPED_OPTIONS = Object.keys({
  name: true,
  fetch: true,
  timeout: true,
  onProblem: true,
  grouping: true,
  limit: true,
  retryFor: true,
  past: true,
} satisfies Record<keyof GroupedOptions, true>)

/** {@link GroupedOptions} with their defaults. */
export interface GroupedSettings extends NotifierSettings {
  readonly grouping: Required<Grouping> | undefined
  readonly limit: RateLimit | undefined
  readonly retryFor: number
  readonly past: 'notify' | 'ignore'
  /** Bounds of the delay between attempts, in ms. */
  readonly backoff: { readonly initialDelay: number; readonly maxDelay: number }
}

/** The settings with their defaults. Throws an ArgumentError for an invalid one. */
export function groupedSettings(
  defaultName: string,
  options: GroupedOptions,
  defaultGrouping?: Grouping,
): GroupedSettings {
  const { grouping = defaultGrouping, limit, retryFor = 3_600_000, past = 'notify' } = options
  checkOptions('grouping', grouping, ['by', 'wait', 'interval'])
  const { by = ['alertname'], wait = 5_000, interval = 60_000 } = grouping ?? {}
  if (by.length > 0) checkList('grouping.by', by)
  for (const label of by) checkText('grouping.by', label)
  checkWait('grouping.wait', wait)
  checkWait('grouping.interval', interval)
  checkOptions('limit', limit, ['max', 'per'])
  if (limit !== undefined) {
    checkInteger('limit.max', limit.max, 1, 10_000)
    checkInteger('limit.per', limit.per, 1)
    checkWait('limit.per', limit.per)
  }
  checkDuration('retryFor', retryFor)
  checkOneOf('past', past, ['notify', 'ignore'])
  return {
    ...notifierSettings(defaultName, options),
    grouping: grouping && { by, wait, interval },
    limit,
    retryFor,
    past,
    backoff: { initialDelay: INITIAL_DELAY, maxDelay: 60_000 },
  }
}
