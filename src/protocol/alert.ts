/** An event that contributed to an alert. */
export interface AlertCause {
  readonly source: string
  readonly id: string
  readonly type: string
  /** Time of the event, in RFC 3339; null if it is not known. */
  readonly time: string | null
}

/** The data that all events of an alert have. */
export interface AlertData {
  /** The name of its rule. */
  readonly alert: string
  /** The group of its rule; null for none. */
  readonly group: string | null
  /** The values of the rule's `key`, by name. */
  readonly key: Readonly<Record<string, string>>
  /** `alertname`, the values of the key and the rule's own. They are the same in all events of an alert: rule and labels are its identity. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** The value that the condition has measured, such as a count; null if it measures nothing. */
  readonly value: number | string | null
  /**
   * Whether the rule had all events of its windows when this alert began to be pending or to fire. False after a `stream.gap` of its
   * source, if a `sum`, `avg` or `percentile` had no room for all numbers, or while events were still to come (`complete: false` of `log.tick`). `alert.resolved` repeats `alert.firing`.
   */
  readonly complete: boolean
  /** When the condition began to hold, in RFC 3339. The same in the event that ends the episode. */
  readonly since: string
  /** Events that made the condition hold, the latest ones, oldest first. At most 20. */
  readonly events: readonly AlertCause[]
  /** Id of this alert from `alert.pending` or `alert.firing` to its end: the same text for one rule, key and `since`, in each run. */
  readonly episode: string
}

/** The condition of a rule began to hold, and its `for` has not passed. `alert.firing` or `alert.inactive` follows. */
export interface AlertPending extends AlertData {}

/** An alert that was pending did not fire. Its data is that of its `alert.pending`, with the events that came since. */
export interface AlertInactive extends AlertData {}

/** The condition of a rule holds, and held as long as its `for` asks. */
export interface AlertFiring extends AlertData {}

/** An alert that was firing has ended. */
export interface AlertResolved extends AlertData {
  /**
   * `condition`: it no longer holds. `expired`: it held for as long as `resolve.after` says. `cancelled`: its monitor
   * was cancelled. `rule`: the rule was removed, disabled or changed.
   */
  readonly reason: 'condition' | 'expired' | 'cancelled' | 'rule'
}

/** It is not known whether a condition holds, since events may be missing. An alert that fires continues; one that is pending does not fire. */
export interface AlertUnknown {
  readonly alert: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  /**
   * `lost`: the source cannot be reached. `gap`: entries or events were lost before they were read.
   * `incomplete`: events are still to come, and were waited for as long as `maxHold`. `keys`: the rule has too many keys, and this one is not watched.
   */
  readonly reason: 'lost' | 'gap' | 'incomplete' | 'keys'
  /** When it became unknown, in RFC 3339. */
  readonly since: string
}

/**
 * It is known again whether a condition holds. It also ends an `alert.unknown` whose monitor was cancelled or whose rule was removed. Not for
 * the reason `keys`, which lasts as long as the rules run.
 */
export interface AlertKnown {
  readonly alert: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
}

/**
 * Events came after the time to which their rule had evaluated. They do not count. There is one for each rule and key in a minute, which
 * reports all late events of that minute at its end.
 */
export interface AlertLate {
  readonly alert: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  /** The first late event. */
  readonly event: AlertCause
  /** Number of late events. */
  readonly count: number
  /** How late the latest of them was, in ms. */
  readonly by: number
  /** When the first one was recorded, in RFC 3339. */
  readonly since: string
}

/** An alert as it is now. */
export interface Alert extends Omit<AlertData, 'episode'> {
  /**
   * `pending`: the condition holds, for less than `for`. `firing`: its `alert.firing` is in the log. `resolved`: it has fired, and has
   * ended. `unknown`: it does not fire, and it is not known whether the condition holds.
   */
  readonly state: 'pending' | 'firing' | 'resolved' | 'unknown'
  /** When the condition began to hold, in RFC 3339; for `unknown`, when it became unknown. */
  readonly since: string
  /** See {@link AlertData}; null for `unknown`. */
  readonly episode: string | null
  /** Why a resolved alert is over; null for other alerts. */
  readonly resolved: AlertResolved['reason'] | null
  /** Why it is not known whether the condition holds, also for an alert that fires; null if it is known. */
  readonly unknown: AlertUnknown['reason'] | null
}
