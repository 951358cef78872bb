import type { Command } from 'commander'
import { addBacktest } from './rules/backtest.ts'
import { addCheck } from './rules/check.ts'
import { addExplain } from './rules/explain.ts'
import { addList } from './rules/list.ts'
import { addRun } from './rules/run.ts'
import { addTest } from './rules/test.ts'

const EXAMPLES = `
A rule file is YAML. Editors complete and check it by its JSON Schema, with this as its first line:
  # yaml-language-server: $schema=node_modules/rivulet/schema/rules.json

Examples:
  $ rivulet rules check rules.yaml
  $ rivulet rules check 'rules/*.yaml' --github
  $ rivulet rules test 'rules/*.test.yaml'
  $ rivulet rules backtest --log rivulet.db --rules rules.yaml
  $ rivulet rules run --log rivulet.db --rules rules.yaml
  $ rivulet rules list --log rivulet.db`

/** `rivulet rules`: alert rules. */
export function addRules(program: Command, signal: AbortSignal): void {
  const group = program
    .command('rules')
    .description('Check, test and run rules that turn events into alerts.')
    .addHelpText('after', EXAMPLES)
  addCheck(group, signal)
  addTest(group, signal)
  addBacktest(group, signal)
  addRun(group, signal)
  addList(group, signal)
  addExplain(group, signal)
}
