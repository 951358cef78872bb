import type { Rule, RuleGroup } from '../rule.ts'
import type { Complain } from './check-shape.ts'

/** A rule while it is checked. */
export interface Draft {
  readonly group: string | null
  /** Its own settings and those of its group, without properties that have a problem. */
  readonly rule: Rule
  /** The properties that have a problem, as they were given. */
  readonly broken: Readonly<Record<string, unknown>>
  /** Whether it has this property itself, also one with a problem. */
  has(property: keyof Rule): boolean
  /** Whether a time span must have a unit. */
  readonly needsUnits: boolean
  /** Paths are relative to the rule. A problem of a setting of the group is reported there. */
  readonly complain: Complain
}

export type Defaults = NonNullable<RuleGroup['defaults']>

/** The rule with the defaults of its group. */
export function withDefaults(rule: Rule, defaults: Defaults): Rule {
  // These properties have their own types or their own end.
  const { on, resolve, ...others } = defaults
  const hasOwnEnd = LEVELS.some((level) => rule[level] !== undefined) || rule.absence !== undefined
  const inherited = { ...others, ...(rule.absence === undefined && { on }), ...(!hasOwnEnd && { resolve }) }
  return {
    ...inherited,
    ...rule,
    labels: { ...defaults.labels, ...rule.labels },
    annotations: { ...defaults.annotations, ...rule.annotations },
  }
}

/** Windows over a number of each event. */
export const AGGREGATES = ['sum', 'avg', 'min', 'max', 'percentile'] as const
/** Windows that hold as long as their events are enough. They end by themselves. */
export const LEVELS = ['count', 'rate', 'distinct', 'spike', ...AGGREGATES] as const
/** Windows that stand alone. */
export const SINGLES = ['new', 'changed', 'absence', 'sequence'] as const
