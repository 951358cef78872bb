import type { Expression, Template } from './cel/expression.ts'

/** The condition of a rule over time. Times in ms. */
export type Window =
  | {
      readonly kind: 'count'
      readonly when?: Expression | undefined
      readonly over: number
      readonly gte: number
    }
  | {
      readonly kind: 'rate'
      readonly when?: Expression | undefined
      readonly over: number
      readonly per: number
      readonly gte: number
    }
  | {
      readonly kind: 'distinct'
      readonly when?: Expression | undefined
      readonly value: Expression
      readonly over: number
      readonly gte: number
    }
  | {
      readonly kind: 'spike'
      readonly when?: Expression | undefined
      readonly over: number
      readonly factor: number
      readonly min: number
    }
  | {
      readonly kind: 'new'
      readonly when?: Expression | undefined
      readonly value: Expression
      readonly within: number
    }
  | { readonly kind: 'changed'; readonly when?: Expression | undefined; readonly value: Expression }
  | {
      readonly kind: 'absence'
      readonly within: number
      /** Sources; undefined for all. */
      readonly of?: ReadonlySet<string> | undefined
    }
  | {
      readonly kind: 'sequence'
      readonly steps: readonly Expression[]
      readonly notThen?: Expression | undefined
      readonly within: number
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
