import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkText } from '../../protocol/check.ts'
import { checkedFiles } from '../check-arguments.ts'
import type { Rule, RuleFile } from '../rule.ts'
import type { RuleSet } from '../rule-set.ts'
import { checkRules } from './check-rules.ts'
import { isRuleFile, pathsOf, readText } from './files.ts'
import type { RuleProblem } from './problem.ts'
import { objectSource } from './source.ts'
import type { Source } from './source.ts'
import { yamlSource } from './yaml-source.ts'

/**
 * Reads and checks rule files. Their names must be unique over all files.
 *
 * @param files Paths, or patterns such as `rules/*.yaml`. A pattern must match at least one file. It does not match tests of rules,
 *   `*.test.yaml`.
 * @throws {RuleError} With all problems of all files, also those that cannot be read.
 *
 * @example
 * ```ts
 * import { loadRules } from 'rivulet/rules'
 *
 * const rules = await loadRules(['rules/*.yaml', 'more-rules.yaml'])
 * ```
 */
export async function loadRules(files: string | readonly string[]): Promise<RuleSet> {
  const problems: RuleProblem[] = []
  const paths = await pathsOf(checkedFiles(files), problems, isRuleFile)
  const sources: Source[] = []
  for (const path of paths) {
    const text = await readText(path, problems)
    const source = text === undefined ? undefined : yamlSource(text, path, problems)
    if (source !== undefined) sources.push(source)
  }
  return checkRules(sources, problems)
}

/**
 * Checks the text of a rule file, in YAML or JSON.
 *
 * @param options.file The name of the file in problems. Default: none.
 * @throws {RuleError} With all problems.
 *
 * @example
 * ```ts
 * import { parseRules } from 'rivulet/rules'
 *
 * const rules = parseRules(`
 * version: 1
 * rules:
 *   - alert: MonitorFailed
 *     on: [monitor.error]
 *     key: { monitor: source }
 * `)
 * ```
 */
export function parseRules(text: string, options: { readonly file?: string } = {}): RuleSet {
  if (typeof text !== 'string') throw new ArgumentError('text', 'the text of a rule file', text)
  checkOptions('options', options, ['file'])
  if (options.file !== undefined) checkText('options.file', options.file)
  const problems: RuleProblem[] = []
  const source = yamlSource(text, options.file ?? null, problems)
  return checkRules(source === undefined ? [] : [source], problems)
}

/**
 * Checks rules that are written in TypeScript: rules, or the content of a rule file. A problem has a path such as
 * `rules[3].when` instead of a line.
 *
 * @throws {RuleError} With all problems.
 *
 * @example
 * ```ts
 * import { defineRules } from 'rivulet/rules'
 *
 * const rules = defineRules([
 *   {
 *     alert: 'ErrorBurst',
 *     count: { when: "type == 'monitor.error'", over: '1h', gte: 3 },
 *     key: { monitor: 'source' },
 *     annotations: { summary: '${value} errors of ${key.monitor} in an hour' },
 *   },
 * ])
 * ```
 */
export function defineRules(rules: readonly Rule[] | RuleFile): RuleSet {
  return checkRules([objectSource(Array.isArray(rules) ? { version: 1, rules } : rules)], [])
}
