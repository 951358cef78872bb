import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import { checkList, checkText } from '../protocol/check.ts'
import { RuleSet } from './rule-set.ts'

/** Rules that were checked. */
export function checkRuleSet(rules: unknown): void {
  if (!(rules instanceof RuleSet))
    throw new ArgumentError('rules', 'a RuleSet, of loadRules, parseRules or defineRules', hidden(rules))
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
