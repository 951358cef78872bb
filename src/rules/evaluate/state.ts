/**
 * The state of a rule for one key, as JSON. A field that is not needed is absent, since the state is stored at each change. Times are Unix ms.
 */
export interface RuleState {
  /** The values of the key, by name. */
  key?: Readonly<Record<string, string>>
  /** The time up to which the key is evaluated: an earlier event is late. */
  evaluatedUntil?: number
  /** A state for each window of the rule. */
  windows?: WindowState[]
  /** The last pulse, while it holds. */
  lastPulse?: number
  /** The text of the last value of `new` or `changed`. */
  lastValue?: string
  /** The latest events that contributed, oldest first. */
  causes?: Cause[]
  /** For windows that hold: when each of `causes` leaves the last of them. */
  causesEndAt?: number[]
  /** The parts of the annotations, of the latest one of them. */
  annotationParts?: Parts
  /** Hashes of the identities that counted, oldest first, if an event can come in several revisions. */
  counted?: string[]
  /** Hashes of the values that `changed()` compares with; null for none yet. */
  previousHashes?: (string | null)[]
  /** The time until which the state is kept for `evaluatedUntil`, `counted` and `previousHashes` alone. */
  keptUntil?: number
  /** When the level became true: the alert is pending or firing. */
  trueSince?: number
  /** The alert's data when it began to fire. */
  fired?: Fired
  /** What was last said of the alert while it does not fire: it is pending, or it is not known whether its condition holds. */
  announced?: Announced
  /** When the level became false, while `keep_firing_for` keeps the alert. */
  falseSince?: number
  /** Whether `resolve.after` ended the level. */
  isExpired?: true
  /** When its timer is due. */
  due?: number
  /** Number of late events. */
  lateEvents?: number
  /** The late events that are not reported yet. */
  late?: Late
  /** When the last gap of the source was recorded, while it matters. */
  gap?: number
  /** For a rule about absence: the last report. */
  lastReport?: number
  /** For a rule about absence: when the source is absent, unless it reports. */
  absentAt?: number
  /** Why it is not known whether the condition holds. In the state of a rule about absence as a whole: of any source. */
  unknown?: 'lost' | 'gap' | 'incomplete'
  /** When it is looked at again whether all events have come, if events may be missing. */
  undecidedUntil?: number
  /** For a rule about absence: `lost` while the source cannot be reached; `cancelled` after its monitor was cancelled. */
  sourceStatus?: 'lost' | 'cancelled'
  /** The counters of the rule; in the state of a rule as a whole. */
  counts?: Counts
  /** For a rule about absence, in its state as a whole: when the last of the entries that were deleted unread was recorded. */
  lastGap?: number
}

/** The state of a window. Each kind uses some of the fields. */
export interface WindowState {
  /** Times, in order. */
  times: number[]
  /** Hashes of values, one for each time. */
  hashes?: string[]
  /** Numbers, one for each time. */
  numbers?: number[]
  /** How often something was dropped since there was no room. */
  dropped?: number
  /** The time of the last event that was dropped. */
  lastDropped?: number
  /** For a sequence: for each step, the events that lead to it. */
  chains?: (Chain | null)[]
  /** For a sequence: a completion that waits for `not_then`. */
  completed?: Chain | null
}

/** What an alert names of the events that contributed. */
export interface Contribution {
  readonly causes: readonly Cause[]
  /** The parts of the annotations, of the last one. */
  readonly annotationParts?: Parts
}

/** Events that match steps of a sequence, in order. */
export interface Chain extends Contribution {
  /** The times of the first and the last one. */
  readonly span: readonly [first: number, last: number]
}

/** For each annotation, the parts that depend on an event. */
export type Parts = readonly (readonly string[])[]

/** An event that contributed: source, id, type, time as text. */
export type Cause = readonly [source: string, id: string, type: string, time: string | null]

/**
 * The data that a window keeps of a matching event: the hashes of its values for `distinct`; the hash and the text of its value for
 * `changed`; the hash and the text for each of its values for `new`; a bit for each step for `sequence` (then one for `not_then`);
 * the number for `sum`, `avg`, `min`, `max` and `percentile`; otherwise 1.
 */
export type WindowMatch = number | readonly string[]

/** The result of evaluating an event for a rule. */
export interface MatchResult {
  /** For each window, whether the event matches, and how. Null if it does not match the rule. */
  readonly matches: readonly (WindowMatch | null)[] | null
  /** Whether the event resolves the alert. */
  readonly resolves?: true
}

/** An event, evaluated for one key of a rule. */
export interface MatchedEvent {
  /** The time at which it is placed. */
  readonly time: number
  readonly cause: Cause
  /** One result, or one for each combination of the values of `changed()`: bit i stands for the i-th value. */
  readonly results: readonly MatchResult[]
  /** Hashes of the values that `changed()` watches; null for a missing one. */
  readonly watchedHashes?: readonly (string | null)[]
  /** The parts of the annotations. */
  readonly annotationParts?: Parts
  /** The hash of its identity, if it can come in several revisions. */
  readonly identity?: string
}

/** The data of an alert when it began to fire. Needed when the alert ends after its rule was removed. */
export interface Fired {
  readonly group: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly value: number | string | null
  /** Set if events of its windows may have been missing. */
  readonly complete?: false
}

/** The data of an alert when it became pending, or unknown. Needed when that ends after its rule was removed. */
export interface Announced extends Fired {
  /** When it became so, Unix ms. */
  readonly since: number
}

/** Late events that will be reported together. */
interface Late {
  readonly first: Cause
  /** When the first one was recorded, Unix ms. */
  readonly since: number
  count: number
  /** The greatest lateness, in ms. */
  by: number
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
