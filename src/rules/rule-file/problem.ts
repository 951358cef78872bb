import { RivuletError } from '../../protocol/rivulet-error.ts'

/** Something in a rule that must be changed. */
export interface RuleProblem {
  /** The path of the file as it was given; null for rules that are not from a file. */
  readonly file: string | null
  /** Line in the file, from 1; null if the problem has no position in a text, such as a file that does not exist. */
  readonly line: number | null
  /** Column, from 1, in UTF-16 code units; null if `line` is null. */
  readonly column: number | null
  /** Which property, such as `rules[3].count.when`; empty for the whole. */
  readonly path: string
  /** The name of the rule; null if it belongs to none, or to one without a name. */
  readonly rule: string | null
  /** A description of the problem, and what to write instead. */
  readonly message: string
}

/** The most problems in the message of a {@link RuleError}. */
const SHOWN = 50

/**
 * Rules that cannot be used. It has all of their problems, in the order of the files.
 *
 * @example
 * ```ts
 * import { loadRules, RuleError } from 'rivulet/rules'
 *
 * try {
 *   await loadRules('rules/*.yaml')
 * } catch (error) {
 *   if (!(error instanceof RuleError)) throw error
 *   for (const { file, line, message } of error.problems) console.error(`${file}:${line} ${message}`)
 * }
 * ```
 */
export class RuleError extends RivuletError {
  override readonly name = 'RuleError'
  override readonly code = 'rule'
  readonly problems: readonly RuleProblem[]

  constructor(problems: readonly RuleProblem[]) {
    super(messageOf(problems))
    this.problems = problems
  }
}

function messageOf(problems: readonly RuleProblem[]): string {
  const [first] = problems
  if (problems.length === 1 && first !== undefined) return lineOf(first)
  const more = problems.length > SHOWN ? [`and ${problems.length - SHOWN} more`] : []
  const lines = [...problems.slice(0, SHOWN).map(lineOf), ...more]
  return `the rules have ${problems.length} problems:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

/** `rules.yaml:12:7: TooMany: count.gte must be …`. */
function lineOf({ file, line, column, path, rule, message }: RuleProblem): string {
  const position = [file, line, column].filter((part) => part !== null).join(':')
  const place = position === '' ? path : position
  return [place, rule, message].filter((part) => part !== null && part !== '').join(': ')
}
