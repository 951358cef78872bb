import { Option } from 'commander'
import type { Command } from 'commander'
import type { Entry, Page, Position, StartAt } from 'rivulet/log'
import { eventLine } from '../event-line.ts'
import { createLog } from '../log.ts'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, collect, outputOf, startAt, wholeNumber } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output } from '../output.ts'

interface EntriesOptions extends CommonOptions {
  readonly log: string
  readonly type?: readonly string[]
  readonly from?: StartAt
  readonly after?: Position
}

interface ReadCommandOptions extends EntriesOptions {
  readonly limit?: number
}

/** Maximum number of entries that are read at once. */
const PAGE = 500

const READ_EXAMPLES = `
An entry of --json has its position, for --after.

Examples:
  $ rivulet log read --log rivulet.db --from 2026-01-31T12:00:00Z --limit 100
  $ rivulet log read --log rivulet.db --type task_run.state --json > runs.ndjson`

const TAIL_EXAMPLES = `
It follows the log, also what other processes record, until Ctrl-C or SIGTERM.

Examples:
  $ rivulet log tail --log rivulet.db
  $ rivulet log tail --log rivulet.db --from start --type monitor.event_stream --json`

/** `rivulet log read`: a part of the log. */
export function addRead(group: Command, signal: AbortSignal): void {
  const command = group.command('read').description('Print the entries of a log, oldest first, and end.')
  addEntriesOptions(command, 'start')
    .option('--limit <number>', 'the most entries to print (default: all)', wholeNumber(1))
    .addHelpText('after', READ_EXAMPLES)
    .action((options: ReadCommandOptions) => read(options, signal))
}

/** `rivulet log tail`: the log, then entries as they are added. */
export function addTail(group: Command, signal: AbortSignal): void {
  const command = group.command('tail').description('Print new entries of a log as they are recorded.')
  addEntriesOptions(command, 'end')
    .addHelpText('after', TAIL_EXAMPLES)
    .action((options: EntriesOptions) => tail(options, signal))
}

function addEntriesOptions(command: Command, begin: 'start' | 'end'): Command {
  const described = command
    .requiredOption(...LOG_OPTION)
    .option('--type <type>', 'only entries of this type; may be repeated', collect(String))
    .option('--from <time>', `start, end, or the time of recording to begin at (default: ${begin})`, startAt)
    .addOption(new Option('--after <position>', 'begin after the entry of this position').conflicts('from'))
  return addCommonOptions(described, 'print each entry as one line of JSON')
}

async function read(
  { limit = Infinity, ...options }: ReadCommandOptions,
  signal: AbortSignal,
): Promise<void> {
  await using file = await openLogAt(options.log)
  const output = outputOf(options, signal)
  const { log } = file
  let position = options.after ?? (await log.positionAt(options.from ?? 'start'))
  let left = limit
  while (left > 0) {
    const page = await log.read(position, { limit: Math.min(PAGE, left), types: options.type })
    await printEntries(page, output, signal)
    if (page.isEnd) return
    position = page.position
    left -= page.entries.length
  }
}

async function tail(options: EntriesOptions, signal: AbortSignal): Promise<void> {
  await using file = await openLogAt(options.log)
  const output = outputOf(options, signal)
  const { log } = file
  let position = options.after ?? (await log.positionAt(options.from ?? 'end'))
  createLog(options).debug({ log: options.log, after: position }, 'following')
  for (;;) {
    const page = await log.read(position, { limit: PAGE, types: options.type })
    await printEntries(page, output, signal)
    position = page.position
    if (page.isEnd) await log.wait(position, signal)
  }
}

async function printEntries({ entries }: Page, output: Output, signal: AbortSignal): Promise<void> {
  for (const entry of entries) await printEntry(entry, output)
  // A page of other types prints nothing.
  signal.throwIfAborted()
}

function printEntry(entry: Entry, output: Output): Promise<void> {
  return output.json ? output.value(entry) : output.line(eventLine(entry, output))
}
