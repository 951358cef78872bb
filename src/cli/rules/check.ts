import { Option } from 'commander'
import type { Command } from 'commander'
import type { RuleProblem, RuleSet } from 'rivulet/rules'
import { ProblemsReported } from '../exit.ts'
import { createOutput } from '../output.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'

const FORMATS = ['text', 'json', 'github'] as const
type Format = (typeof FORMATS)[number]

/** The longest message that is shown, in characters. */
const MESSAGE_WIDTH = 2_000

/** `rivulet rules check`: the problems of rule files. */
export function addCheck(group: Command, signal: AbortSignal): void {
  group
    .command('check')
    .description('Check rule files and print all of their problems, with file, line and column.')
    .argument('<files...>', 'rule files, or patterns in quotes, such as "rules/*.yaml"')
    .addOption(
      new Option(
        '--format <format>',
        'text, json (all as one line of JSON) or github (annotations of a pull request)',
      )
        .choices(FORMATS)
        .default('text'),
    )
    .addHelpText(
      'after',
      '\nIt exits with 1 where there is a problem.\n\nExamples:\n  $ rivulet rules check rules.yaml',
    )
    .action(async (files: readonly string[], { format }: { readonly format: Format }) => {
      const output = createOutput(process.stdout, { json: format === 'json', signal })
      const { loadRules, RuleError } = await import('rivulet/rules')
      try {
        await printRules(await loadRules(files), format, output)
      } catch (error) {
        if (!(error instanceof RuleError)) throw error
        await printProblems(error.problems, format, output)
        throw new ProblemsReported()
      }
    })
}

async function printRules({ names, disabled }: RuleSet, format: Format, output: Output): Promise<void> {
  if (format === 'json') return output.value({ rules: names, disabled, problems: [] })
  const others = disabled.length === 0 ? '' : `, and ${disabled.length} disabled`
  await output.line(`${counted(names.length, 'rule')}${others}: no problems`)
}

async function printProblems(
  problems: readonly RuleProblem[],
  format: Format,
  output: Output,
): Promise<void> {
  if (format === 'json') return output.value({ rules: [], disabled: [], problems })
  for (const problem of problems)
    await output.line(format === 'github' ? annotation(problem) : textLine(problem, output))
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
