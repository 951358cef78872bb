import type { ResearchEventType } from '../protocol/event.ts'
import type { TimeEventType } from '../protocol/event-types.ts'

/** A time span: `500ms`, `30s`, `10m`, `3h`, `2d` or `1w`, also several parts such as `1h30m`; in code also a number of ms. */
export type Duration = string | number

/** The types of events that rules read: all except alerts and those that only move event time. */
export type RuleEventType = Exclude<ResearchEventType, `alert.${string}` | TimeEventType>

/** A condition or a value in CEL, over the fields of an event. */
type Cel = string

/** Events that match, within a time. */
interface OverTime {
  /** Only events for which this holds, too. */
  readonly when?: Cel
  /** The window: events of the time (now − over, now]. */
  readonly over: Duration
}

/** A value that is computed from a number of each event, within bounds: at least `gte`, at most `lte`, or both. Not without a number. */
interface AggregateOverTime extends OverTime {
  readonly value: Cel
  readonly gte?: number
  readonly lte?: number
}

/**
 * A rule, as it stands in a rule file.
 *
 * It has at most one of `new`, `changed`, `absence` and `sequence`, or any of the other windows, which must hold at the same time.
 * Without any of them, each event for which `when` holds begins or prolongs the alert.
 */
export interface Rule {
  /** Name of the rule, and value of the label `alertname`: a letter or `_`, then letters, digits and `_`. Unique in a set of rules. */
  readonly alert: string
  /** The types of events that it reads. Default: all that have the fields it names. `absence` has its own. */
  readonly on?: readonly RuleEventType[]
  /** Only events for which this holds. `resolve.when` is evaluated for the others, too. */
  readonly when?: Cel
  /** At least `gte` events. */
  readonly count?: OverTime & { readonly gte: number }
  /** At least `gte` events in each `per`, on average. */
  readonly rate?: OverTime & { readonly per: Duration; readonly gte: number }
  /** At least `gte` different values. A list counts as its members. */
  readonly distinct?: OverTime & { readonly value: Cel; readonly gte: number }
  /** At least `factor` times the events of the window before, and at least `min`. `min` is `factor`, rounded up, by default. */
  readonly spike?: OverTime & { readonly factor: number; readonly min?: number }
  /** The sum of a number of each event. */
  readonly sum?: AggregateOverTime
  /** The average of a number of each event. */
  readonly avg?: AggregateOverTime
  /** The least number of all events. */
  readonly min?: AggregateOverTime
  /** The greatest number of all events. */
  readonly max?: AggregateOverTime
  /** A percentile of a number of each event, exact: the number with the rank `ceil(p * count / 100)`. `p` is from 0 to 100. */
  readonly percentile?: AggregateOverTime & { readonly p: number }
  /** A value that no event had within this time before. A list counts as its members, up to 100 of them. */
  readonly new?: { readonly when?: Cel; readonly value: Cel; readonly within: Duration }
  /** A value that the last event of the key did not have. The first event of a key is no change. */
  readonly changed?: { readonly when?: Cel; readonly value: Cel }
  /** A source has no events. `of`: ids of monitors, or sources; default: all sources that have had an event. Its key is the source. */
  readonly absence?: {
    readonly on?: readonly RuleEventType[]
    readonly within: Duration
    readonly of?: readonly string[]
  }
  /**
   * Events in this order, the last one at most `within` after the first; with `not_then`, no such event within that time after the last
   * one.
   */
  readonly sequence?: {
    readonly steps: readonly Cel[]
    readonly not_then?: Cel
    readonly within: Duration
  }
  /** The values that are watched separately: an alert for each of them. Each is a label. Default: none, all events together. */
  readonly key?: Readonly<Record<string, Cel>>
  /** `event`: each event that matches is a separate alert, with the labels `event`, its id, and `source`. */
  readonly per?: 'event'
  /** Text, which may have `${…}` with values of `key`. */
  readonly labels?: Readonly<Record<string, string>>
  /** Text, which may have `${…}` with fields of the event that changed the alert last, or with `key`, `value` and `labels`. */
  readonly annotations?: Readonly<Record<string, string>>
  /**
   * The end of the alert. `when`: an event of its key. `after`: this time after the last event that matched; default 1h, and 5m
   * with `per: event`. With a window, the alert also ends when the window no longer holds, and `after` is not allowed.
   */
  readonly resolve?: { readonly when?: Cel; readonly after?: Duration }
  /** How long the condition must hold. Default 0. */
  readonly for?: Duration
  /** How long the alert stays after its condition has ended. Default 0. */
  readonly keep_firing_for?: Duration
  /** How late an event may come. Default 0 for a rule whose order of events does not matter, otherwise 1m. */
  readonly lateness?: Duration
  /** Events of a first walk into the past: `ignore`, the default, or `place` by their `event_date`, else by their time. */
  readonly backfill?: 'ignore' | 'place'
  /** Default true. */
  readonly enabled?: boolean
}

/** Rules that share defaults: a rule's own settings win, labels and annotations are merged. */
export interface RuleGroup {
  readonly name: string
  readonly defaults?: Partial<
    Pick<
      Rule,
      | 'labels'
      | 'annotations'
      | 'for'
      | 'keep_firing_for'
      | 'lateness'
      | 'backfill'
      | 'resolve'
      | 'enabled'
      | 'on'
    >
  >
  readonly rules: readonly Rule[]
}

/** The content of a rule file. */
export interface RuleFile {
  readonly version: 1
  readonly groups?: readonly RuleGroup[]
  readonly rules?: readonly Rule[]
}
