import { ArgumentError } from '../protocol/argument-error.ts'
import { checkList, checkText } from '../protocol/check.ts'
import { isObject } from '../protocol/json.ts'
import { RuleSet } from './rule-set.ts'

/** An open log. */
export function checkLog(log: unknown): void {
  if (!isObject(log) || typeof log['consume'] !== 'function')
    throw new ArgumentError('log', 'an open log, of openLog', log)
}

/** Rules that were checked. */
export function checkRuleSet(rules: unknown): void {
  if (!(rules instanceof RuleSet))
    throw new ArgumentError('rules', 'a RuleSet, of loadRules, parseRules or defineRules', rules)
}

/** One path or pattern, or a list of at least one. */
export function checkedFiles(files: unknown): readonly string[] {
  const list = typeof files === 'string' ? [files] : files
  checkList('files', list)
  return list.map((file) => {
    checkText('files', file)
    return file
  })
}
