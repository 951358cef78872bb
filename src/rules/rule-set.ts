import type { CompiledRule } from './compiled-rule.ts'

/** Creates a rule set. Not public, as the next one. */
export let createRuleSet: (compiled: readonly CompiledRule[], disabled: readonly string[]) => RuleSet

/** The rules of a set, for those that evaluate them. */
export let compiledRules: (set: RuleSet) => readonly CompiledRule[]

/**
 * Rules that were checked, with different names. `loadRules`, `parseRules` and `defineRules` create it.
 *
 * @example
 * ```ts
 * import { loadRules } from 'rivulet/rules'
 *
 * const rules = await loadRules('rules/*.yaml')
 * console.log(`${rules.size} rules: ${rules.names.join(', ')}`)
 * ```
 */
export class RuleSet {
  /** The names of the rules, in the order of the files. */
  readonly names: readonly string[]
  /** The names of the rules with `enabled: false`. They were checked, and are not used. */
  readonly disabled: readonly string[]
  readonly #compiled: readonly CompiledRule[]

  private constructor(compiled: readonly CompiledRule[], disabled: readonly string[]) {
    this.#compiled = compiled
    this.names = compiled.map(({ name }) => name)
    this.disabled = disabled
  }

  /** The number of rules, without the rules of {@link disabled}. */
  get size(): number {
    return this.names.length
  }

  static {
    createRuleSet = (compiled, disabled) => new RuleSet(compiled, disabled)
    compiledRules = (set) => set.#compiled
  }
}
