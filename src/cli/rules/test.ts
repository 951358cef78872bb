import { Option } from 'commander'
import type { Command } from 'commander'
import type { RuleTestReport } from 'rivulet/rules'
import { ProblemsReported } from '../exit.ts'
import { addCommonOptions, outputOf, wholeNumber } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { printMessage } from '../output.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'
import { junitReport } from './junit.ts'

interface TestOptions extends CommonOptions {
  readonly junit?: boolean
  readonly coverage?: number
}

/** The longest line that is shown, in characters. */
const LINE = 500
/** The most lines of what happened in a test that failed. */
const HAPPENED = 20

const HELP = `
A test file names its rule files, and has tests: events at given times, and the alerts that are expected. Time is virtual:
a month takes milliseconds. Editors complete and check the files with this as the first line:
  # yaml-language-server: $schema=node_modules/rivulet/schema/rule-tests.json

It exits with 1 if a test fails or the coverage is too low, and with 2 if a file is not valid.

Examples:
  $ rivulet rules test rules.test.yaml
  $ rivulet rules test 'rules/*.test.yaml' --coverage 100
  $ rivulet rules test 'rules/*.test.yaml' --junit > report.xml`

/** `rivulet rules test`: runs tests of rules. */
export function addTest(group: Command, signal: AbortSignal): void {
  const command = group
    .command('test')
    .description('Run tests of rules: events at given times, and the alerts that they must cause.')
    .argument('<files...>', 'test files, or patterns in quotes, such as "rules/*.test.yaml"')
    .addOption(new Option('--junit', 'print the report as XML for a CI system').conflicts('json'))
    .option(
      '--coverage <percent>',
      'the least part of the rules that must fire in a test',
      wholeNumber(0, 100),
    )
  addCommonOptions(command, 'print the report as one line of JSON')
    .addHelpText('after', HELP)
    .action(async (files: readonly string[], options: TestOptions) => {
      const { junit = false, coverage: least = 0 } = options
      const output = outputOf(options, signal)
      const { testRules } = await import('rivulet/rules')
      const report = await testRules(files)
      const percent = coverageOf(report.coverage)
      if (output.json) await output.value({ ...report, coverage: { percent, rules: report.coverage } })
      else if (junit) await output.line(junitReport(report))
      else await printReport(report, output)
      if (percent < least) {
        const message = `${Math.floor(percent)} % of the rules fire in a test: at least ${least} % must`
        if (report.failed === 0) throw new Error(message)
        printMessage(`rivulet: ${message}`)
      }
      if (report.failed > 0) throw new ProblemsReported()
    })
}

/** The share of covered rules, in percent. */
function coverageOf(rules: RuleTestReport['coverage']): number {
  return rules.length === 0 ? 100 : (rules.filter(({ fired }) => fired > 0).length / rules.length) * 100
}

async function printReport(
  { tests, passed, failed, coverage, ms }: RuleTestReport,
  output: Output,
): Promise<void> {
  let file: string | undefined
  for (const test of tests) {
    if (test.file !== file) await output.line(output.paint('bold', oneLine(test.file, LINE)))
    file = test.file
    await printTest(test, output)
  }
  await output.line()
  const counts = [`${passed} passed`, ...(failed > 0 ? [output.paint('red', `${failed} failed`)] : [])]
  await output.line(`${counted(tests.length, 'test')}: ${counts.join(', ')} (${Math.round(ms)} ms)`)
  const silent = coverage.filter(({ fired }) => fired === 0)
  await output.line(`${coverage.length - silent.length} of ${counted(coverage.length, 'rule')} fired`)
  for (const { rule, file: of } of silent)
    await output.line(`  ${oneLine(rule, LINE)} never fired (${oneLine(of, LINE)})`)
}

async function printTest(test: RuleTestReport['tests'][number], output: Output): Promise<void> {
  const { name, passed, failures, happened, merged, file } = test
  const mark = passed ? output.paint('green', '✓') : output.paint('red', '✗')
  await output.line(`  ${mark} ${oneLine(name, LINE)}`)
  const placed = ({ line, column, message }: (typeof merged)[number]) => {
    const place = [file, line, column].filter((part) => part !== null).join(':')
    return `    ${oneLine(place, LINE)}: ${oneLine(message, LINE)}`
  }
  for (const failure of failures) {
    const { expected, got } = failure
    await output.line(placed(failure))
    await output.line(output.paint('green', `      expected  ${oneLine(expected, LINE)}`))
    for (const [index, text] of (got.length === 0 ? ['nothing'] : got).entries())
      await output.line(
        output.paint('red', `      ${index === 0 ? 'got     ' : '        '}  ${oneLine(text, LINE)}`),
      )
  }
  for (const events of merged.slice(0, HAPPENED)) await output.line(placed(events))
  if (merged.length > HAPPENED)
    await output.line(`    and ${merged.length - HAPPENED} more that are one event`)
  if (passed) return
  await output.line(`    What happened:${happened.length === 0 ? ' nothing' : ''}`)
  for (const text of happened.slice(0, HAPPENED)) await output.line(`      ${oneLine(text, LINE)}`)
  if (happened.length > HAPPENED) await output.line(`      and ${happened.length - HAPPENED} more`)
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
