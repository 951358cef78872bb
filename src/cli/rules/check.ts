import { Option } from 'commander'
import type { Command } from 'commander'
import type { RuleProblem, RuleSet } from 'rivulet/rules'
import { ProblemsReported } from '../exit.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'

interface CheckOptions extends CommonOptions {
  readonly github?: boolean
}

/** The longest message that is shown, in characters. */
const MESSAGE_WIDTH = 2_000

/** `rivulet rules check`: the problems of rule files. */
export function addCheck(group: Command, signal: AbortSignal): void {
  const command = group
    .command('check')
    .description('Check rule files and print all of their problems, with file, line and column.')
    .argument('<files...>', 'rule files, or patterns in quotes, such as "rules/*.yaml"')
    .addOption(
      new Option('--github', 'print the problems as annotations of a pull request on GitHub').conflicts(
        'json',
      ),
    )
  addCommonOptions(command, 'print the names of the rules and all problems as one line of JSON')
    .addHelpText(
      'after',
      '\nIt exits with 1 if there is a problem.\n\nExamples:\n  $ rivulet rules check rules.yaml',
    )
    .action(async (files: readonly string[], { github = false, ...options }: CheckOptions) => {
      const output = outputOf(options, signal)
      const { loadRules, RuleError } = await import('rivulet/rules')
      try {
        await printRules(await loadRules(files), output)
      } catch (error) {
        if (!(error instanceof RuleError)) throw error
        await printProblems(error.problems, github, output)
        throw new ProblemsReported()
      }
    })
}

async function printRules({ names, disabled }: RuleSet, output: Output): Promise<void> {
  if (output.json) return output.value({ rules: names, disabled, problems: [] })
  const others = disabled.length === 0 ? '' : `, and ${disabled.length} disabled`
  await output.line(`${counted(names.length, 'rule')}${others}: no problems`)
}

async function printProblems(
  problems: readonly RuleProblem[],
  github: boolean,
  output: Output,
): Promise<void> {
  if (output.json) return output.value({ rules: [], disabled: [], problems })
  for (const problem of problems) await output.line(github ? annotation(problem) : textLine(problem, output))
  await output.line(counted(problems.length, 'problem'))
}

/** `rules.yaml:12:7: ErrorBurst: count.gte must be …`, which editors and terminals turn into links. */
function textLine({ file, line, column, rule, message }: RuleProblem, { paint }: Output): string {
  const place = [file, line, column].filter((part) => part !== null).join(':')
  const name = rule === null ? '' : `${oneLine(rule, 100)}: `
  return `${paint('bold', oneLine(place, 1_000))}: ${name}${oneLine(message, MESSAGE_WIDTH)}`
}

/** A workflow command of GitHub. */
function annotation({ file, line, column, rule, message }: RuleProblem): string {
  const places = [
    ['file', file],
    ['line', line],
    ['col', column],
  ] as const
  const properties = places.flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${property(String(value))}`],
  )
  const text = rule === null ? message : `${rule}: ${message}`
  return `::error ${properties.join(',')}::${data(oneLine(text, MESSAGE_WIDTH))}`
}

function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
