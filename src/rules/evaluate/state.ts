/**
 * The state of a rule for one key, as JSON. Names are short, since it is stored at each change. A field that is not needed is absent. Times
 * are Unix ms.
 */
export interface RuleState {
  /** The values of the key, by name. */
  k?: Readonly<Record<string, string>>
  /** The time up to which the key is evaluated: an earlier event is late. */
  u?: number
  /** Events that are held until none can come before them, in order. */
  h?: Fact[]
  /** A state for each window of the rule. */
  w?: WindowState[]
  /** The last pulse, while it holds. */
  p?: number
  /** The text of the last value of `new` or `changed`. */
  v?: string
  /** The latest events that contributed, oldest first. */
  e?: Cause[]
  /** For windows that hold: when each of `e` leaves the last of them. */
  i?: number[]
  /** The parts of the annotations, of the latest one of them. */
  a?: Parts
  /** Hashes of the identities that counted, oldest first, if an event can come in several revisions. */
  c?: string[]
  /** Hashes of the values that `changed()` compares with; null for none yet. */
  l?: (string | null)[]
  /** The time until which the state is kept for `u`, `c` and `l` alone. */
  g?: number
  /** When the level became true: the alert is pending or firing. */
  s?: number
  /** The alert's data when it began to fire. */
  f?: Fired
  /** When the level became false, while `keep_firing_for` keeps the alert. */
  q?: number
  /** 1 if `resolve.after` ended the level. */
  x?: 1
  /** When its timer is due. */
  d?: number
  /** Number of late events. */
  n?: number
  /** Number of events that were not held since there was no room. */
  b?: number
  /** For a rule about absence: the last report. */
  o?: number
  /** For a rule about absence: when the source is absent, unless it reports. */
  j?: number
  /** For a rule about absence: why it is not known whether the source reports. */
  y?: 'lost' | 'downtime' | 'gap'
  /** For a rule about absence: 1 while the source cannot be reached; 2 after its monitor was cancelled. */
  z?: 1 | 2
  /** The counters of the rule; in the state of a rule as a whole. */
  r?: Counts
  /** For a rule about absence, in its state as a whole: when the last of the entries that were deleted unread was recorded. */
  m?: number
}

/** The state of a window. Each kind uses some of the fields. */
export interface WindowState {
  /** Times, in order. */
  t: number[]
  /** Hashes of values, one for each time. */
  v?: string[]
  /** How often something was dropped since there was no room. */
  x?: number
  /** The time of the last event that was dropped. */
  o?: number
  /** For a sequence: for each step, the events that lead to it. */
  c?: (Chain | null)[]
  /** For a sequence: a completion that waits for `not_then`. */
  p?: Chain | null
}

/** Events that match steps of a sequence, in order. */
export interface Chain {
  /** The times of the first and the last one. */
  readonly t: readonly [first: number, last: number]
  readonly e: readonly Cause[]
  /** The parts of the annotations, of the last one. */
  readonly a?: Parts
}

/** For each annotation, the parts that depend on an event. */
export type Parts = readonly (readonly string[])[]

/** An event that contributed: source, id, type, time as text. */
export type Cause = readonly [source: string, id: string, type: string, time: string | null]

/**
 * The data that a window keeps of a matching event: the hashes of its values for `distinct`, the hash and the text of its value for
 * `changed`, the hash and the text for each of its values for `new`, a bit for each step for `sequence` (then one for `not_then`),
 * otherwise 1.
 */
export type WindowMatch = number | readonly string[]

/** The result of evaluating an event for a rule. */
export interface Outcome {
  /** For each window, whether the event matches, and how. Null if it does not match the rule. */
  readonly m: readonly (WindowMatch | null)[] | null
  /** 1 if the event resolves the alert. */
  readonly r?: 1
}

/** An event, evaluated for one key of a rule. */
export interface Fact {
  /** The time at which it is placed. */
  readonly t: number
  readonly e: Cause
  /** One result, or one for each combination of the values of `changed()`: bit i stands for the i-th value. */
  readonly o: readonly Outcome[]
  /** Hashes of the values that `changed()` watches; null for a missing one. */
  readonly l?: readonly (string | null)[]
  /** The parts of the annotations. */
  readonly a?: Parts
  /** The hash of its identity, if it can come in several revisions. */
  readonly c?: string
}

/** The data of an alert when it began to fire. Needed when the alert ends after its rule was removed. */
export interface Fired {
  readonly group: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly value: number | string | null
}

/** The counters of a rule's evaluation. */
export interface Counts {
  /** Events without a field that an expression needs. */
  readonly missing: number
  /** Expressions that failed. */
  readonly errors: number
  /** Events of which a text was cut. */
  readonly cut: number
}
