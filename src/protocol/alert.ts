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
  /** When the condition began to hold, in RFC 3339. The same in the event that ends the episode. */
  readonly since: string
  /** Events that made the condition hold, the latest ones, oldest first. At most 20. */
  readonly events: readonly AlertCause[]
  /** Id of this alert from `alert.firing` to `alert.resolved`: the same text for one rule, key and `since`, in each run. */
  readonly episode: string
}

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

/** It is not known whether a condition holds, since events may be missing. The state of the alert does not change. */
export interface AlertUnknown {
  readonly alert: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  /**
   * `lost`: the source cannot be reached. `downtime`: nothing was recorded. `gap`: entries or events were lost before they were read.
   * `keys`: the rule has too many keys, and this one is not watched.
   */
  readonly reason: 'lost' | 'downtime' | 'gap' | 'keys'
  /** When it became unknown, in RFC 3339. */
  readonly since: string
}

/** An event came after the time to which its rule had evaluated. It does not count. */
export interface AlertLate {
  readonly alert: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly event: AlertCause
  /** How late it was, in ms. */
  readonly by: number
}
