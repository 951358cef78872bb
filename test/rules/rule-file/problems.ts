import { parseRules, RuleError } from 'rivulet/rules'
import type { RuleProblem, RuleSet } from 'rivulet/rules'

/** The problems of a function that must throw a {@link RuleError}. */
export function problemsOf(check: () => RuleSet): readonly RuleProblem[] {
  try {
    check()
  } catch (error) {
    if (error instanceof RuleError) return error.problems
    throw error
  }
  return []
}

/** `line:column message` of each problem of a text. */
export function problemsIn(text: string): string[] {
  return problemsOf(() => parseRules(text)).map(({ line, column, message }) => `${line}:${column} ${message}`)
}

/** A file with these lines of a rule, from line 3. */
export function ruleOf(...lines: readonly string[]): string {
  return [
    'version: 1',
    'rules:',
    ...lines.map((line, index) => `${index === 0 ? '  - ' : '    '}${line}`),
  ].join('\n')
}
