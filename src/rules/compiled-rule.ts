import type { Expression, Template } from './cel/expression.ts'

/** The condition of events that a window counts. */
interface Condition {
  readonly when?: Expression | undefined
}

/** A value that is computed from a number of each event, and its bounds. At least one of them is set. */
interface Aggregate extends Condition {
  readonly value: Expression
  readonly over: number
  readonly gte: number | undefined
  readonly lte: number | undefined
}

/** Settings of the windows of a rule, by their kind. Times in ms. */
export interface WindowSettings {
  readonly count: Condition & { readonly over: number; readonly gte: number }
  readonly rate: Condition & { readonly over: number; readonly per: number; readonly gte: number }
  readonly distinct: Condition & {
    readonly value: Expression
    readonly over: number
    readonly gte: number
  }
  readonly spike: Condition & { readonly over: number; readonly factor: number; readonly min: number }
  readonly sum: Aggregate
  readonly avg: Aggregate
  readonly min: Aggregate
  readonly max: Aggregate
  readonly percentile: Aggregate & { readonly p: number }
  readonly new: Condition & { readonly value: Expression; readonly within: number }
  readonly changed: Condition & { readonly value: Expression }
  readonly absence: {
    readonly within: number
    /** Sources; undefined for all. */
    readonly of?: ReadonlySet<string> | undefined
  }
  readonly sequence: {
    readonly steps: readonly Expression[]
    readonly notThen?: Expression | undefined
    readonly within: number
  }
}

/** The condition of a rule over time. */
export type Window<Kind extends keyof WindowSettings = keyof WindowSettings> = {
  [Each in Kind]: { readonly kind: Each } & WindowSettings[Each]
}[Kind]

/** The expressions of a window, with their names in the rule, such as `count.when` or `sequence.steps[0]`. */
export function* windowExpressions(
  window: Window,
): Iterable<readonly [name: string, expression: Expression]> {
  const { kind, ...settings } = window
  for (const [setting, value] of Object.entries(settings)) {
    const name = `${kind}.${setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
    if (isExpression(value)) yield [name, value]
    if (!Array.isArray(value)) continue
    for (const [index, each] of value.entries()) if (isExpression(each)) yield [`${name}[${index}]`, each]
  }
}

/** Whether a setting of a window is an expression. */
export function isExpression(setting: unknown): setting is Expression {
  return typeof setting === 'object' && setting !== null && 'evaluate' in setting
}

/** A rule that was checked, with its defaults. Times in ms. */
export interface CompiledRule {
  readonly name: string
  readonly group: string | null
  /** The types of entries that it reads; undefined for all but `alert.*`, `log.*` and `source.*`. */
  readonly types?: ReadonlySet<string> | undefined
  /** Version of the parts that the rule's state depends on, 8 characters. With another version, the state begins anew. */
  readonly version: string
  /** The condition of events that its windows count. */
  readonly when?: Expression | undefined
  /** Empty for a rule in which each event that matches begins or prolongs the alert. */
  readonly windows: readonly Window[]
  readonly key: readonly { readonly name: string; readonly value: Expression }[]
  readonly isPerEvent: boolean
  readonly labels: ReadonlyMap<string, Template>
  readonly annotations: ReadonlyMap<string, Template>
  readonly resolve: { readonly when?: Expression | undefined; readonly after: number }
  readonly for: number
  readonly keepFiringFor: number
  readonly lateness: number
  readonly backfill: 'ignore' | 'place'
}
