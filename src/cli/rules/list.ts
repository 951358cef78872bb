import type { Command } from 'commander'
import type { RuleStatus } from 'rivulet/rules'
import { keyText } from '../event-line.ts'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output, Style } from '../output.ts'
import { oneLine } from '../plain.ts'

interface AlertListOptions extends CommonOptions {
  readonly log: string
  readonly name?: string
}

/** The longest name and key that are shown, in characters. */
const NAME_WIDTH = 40
const KEY_WIDTH = 60

type OpenAlert = RuleStatus['alerts'][number]

const STYLES: Readonly<Record<OpenAlert['state'], Style>> = {
  firing: 'red',
  pending: 'yellow',
  unknown: 'dim',
}

const EXAMPLES = `
It prints what "rivulet rules run" has committed last, whether it runs or not. An unknown alert is one of a source that may be silent
because it, or what records it, cannot be reached.

Examples:
  $ rivulet rules list --log rivulet.db
  $ rivulet rules list --log rivulet.db --json | jq '.alerts[] | select(.state == "firing")'`

/** `rivulet rules list`: the alerts that are pending and firing now. */
export function addList(group: Command, signal: AbortSignal): void {
  const command = group
    .command('list')
    .description('Print the alerts that are firing, pending or unknown now, and what rules have counted.')
    .requiredOption(...LOG_OPTION)
    .option('--name <name>', 'name of the process in the log (default: rules)')
  addCommonOptions(command, 'print the alerts and the counts as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action(async ({ log: file, name = 'rules', ...options }: AlertListOptions) => {
      await using opened = await openLogAt(file)
      const { ruleStatus } = await import('rivulet/rules')
      const status = await ruleStatus(opened.log, { name })
      const failed = await opened.log.deadLetters({ process: name }).count()
      const output = outputOf(options, signal)
      if (output.json) await output.value({ ...status, failed })
      else await printStatus(status, failed, output)
    })
}

async function printStatus(
  { alerts, isCut, rules }: RuleStatus,
  failed: number,
  output: Output,
): Promise<void> {
  if (alerts.length === 0) await output.line('No alert is firing, pending or unknown.')
  for (const alert of alerts) await output.line(alertLine(alert, output))
  if (isCut) await output.line('There are more of them.')
  for (const each of rules) {
    const counted = countedLine(each)
    if (counted !== undefined) await output.line(output.paint('dim', counted))
  }
  if (failed === 0) return
  const entries = failed === 1 ? '1 entry' : `${failed.toLocaleString('en')} entries`
  await output.line(
    output.paint('red', `A rule has failed at ${entries}: see the dead letters of the process.`),
  )
}

/** `firing   ErrorBurst  monitor=/v1/monitors/m  3  since 2026-01-01T00:00:00.000Z`. */
function alertLine({ alert, state, key, value, since, unknown }: OpenAlert, { paint }: Output): string {
  const parts = [
    paint(STYLES[state], state.padEnd(7)),
    oneLine(alert, NAME_WIDTH),
    oneLine(keyText(key), KEY_WIDTH),
    value === null ? '' : oneLine(String(value), NAME_WIDTH),
    `since ${since}`,
    unknown === null ? '' : paint('dim', `(${unknown})`),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

/** The counters of a rule that its author should know, as a line; undefined if all are 0. */
function countedLine({
  alert,
  missing,
  errors,
  cut,
  late,
  overflow,
}: RuleStatus['rules'][number]): string | undefined {
  const counts = [
    [missing, 'events without a field'],
    [errors, 'errors of conditions'],
    [cut, 'texts cut'],
    [late, 'late events'],
    [overflow, 'events dropped from full windows'],
  ] as const
  const parts = counts
    .filter(([count]) => count > 0)
    .map(([count, of]) => `${count.toLocaleString('en')} ${of}`)
  return parts.length === 0 ? undefined : `${oneLine(alert, NAME_WIDTH)}: ${parts.join(', ')}`
}
