import { Option } from 'commander'
import type { Command } from 'commander'
import type { EventLog, LogReader, StoredDeadLetter } from 'rivulet/log'
import { resourceOf } from '../event-line.ts'
import { UsageError } from '../exit.ts'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'
import { knownReader, readerOf } from './known-reader.ts'

interface DeadLettersOptions extends CommonOptions {
  readonly log: string
  readonly consumer?: string
  readonly process?: string
  readonly redeliver?: string
  readonly remove?: string
}

const EXAMPLES = `
A dead letter is an entry that a consumer with the setting deadLetters: 'log', or a process with onError: 'dead-letter', could not
handle. --redeliver hands it to the consumer once more: at once where it runs, otherwise when it starts. A process is rebuilt
instead.

Examples:
  $ rivulet log dead-letters --log rivulet.db
  $ rivulet log dead-letters --log rivulet.db --consumer billing --json | jq .error
  $ rivulet log dead-letters --log rivulet.db --consumer billing --redeliver all`

/** `rivulet log dead-letters`: the entries that consumers and processes could not handle. */
export function addDeadLetters(group: Command, signal: AbortSignal): void {
  const command = group
    .command('dead-letters')
    .description(
      'Print the entries that consumers and processes could not handle, hand them out again, or remove them.',
    )
    .requiredOption(...LOG_OPTION)
    .option('--consumer <name>', 'only those of this consumer')
    .addOption(new Option('--process <name>', 'only those of this process').conflicts('consumer'))
    .option('--redeliver <which>', 'hand out again: the position of an entry, or all; needs --consumer')
    .addOption(
      new Option(
        '--remove <which>',
        'remove: the position of an entry, or all; needs --consumer or --process',
      ).conflicts('redeliver'),
    )
  addCommonOptions(command, 'print each dead letter, or the number of changed ones, as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: DeadLettersOptions) => deadLetters(options, signal))
}

async function deadLetters(options: DeadLettersOptions, signal: AbortSignal): Promise<void> {
  const { redeliver, remove } = options
  const change = redeliver === undefined ? 'remove' : 'redeliver'
  const which = redeliver ?? remove
  const reader = readerOf(options)
  if (redeliver !== undefined && options.consumer === undefined) {
    throw new UsageError('--redeliver needs --consumer: a process is rebuilt instead')
  }
  if (remove !== undefined && reader === undefined)
    throw new UsageError('--remove needs --consumer or --process')
  await using file = await openLogAt(options.log)
  const output = outputOf(options, signal)
  const { log } = file
  if (reader !== undefined) await knownReader(log, reader)
  if (which === undefined || reader === undefined) return await list(log, reader, output)
  const count = await log.deadLetters(reader)[change](which)
  if (output.json) return await output.value({ [change === 'remove' ? 'removed' : 'redelivered']: count })
  const letters = count === 1 ? '1 dead letter is' : `${count} dead letters are`
  await output.line(`${letters} ${change === 'remove' ? 'removed' : 'handed out again'}.`)
}

/** Prints the dead letters of one reader, or of all. */
async function list(log: EventLog, reader: LogReader | undefined, output: Output): Promise<void> {
  for (const each of reader === undefined ? await readersWithDeadLetters(log) : [reader]) {
    const { consumer, process: name } = each
    const title = consumer === undefined ? `process:${name}` : `consumer:${consumer}`
    for await (const letter of log.deadLetters(each).list()) await print(title, letter, output)
  }
}

async function readersWithDeadLetters(log: EventLog): Promise<readonly LogReader[]> {
  const { readers } = await log.stats()
  return readers
    .filter((reader) => reader.deadLetters > 0)
    .toSorted((a, b) => (a.kind + a.name < b.kind + b.name ? -1 : 1))
    .map(({ kind, name }) => (kind === 'process' ? { process: name } : { consumer: name }))
}

function print(reader: string, letter: StoredDeadLetter, output: Output): Promise<void> {
  return output.json ? output.value({ reader, ...letter }) : output.line(letterLine(reader, letter, output))
}

/** `consumer:billing  ✖ task_run.state  trun_1: TypeError: no such account  5 attempts  9f86d081884c7d65.42`. */
function letterLine(
  reader: string,
  { entry, error, attempts, isRedelivered }: StoredDeadLetter,
  { paint, width }: Pick<Output, 'paint' | 'width'>,
): string {
  const name = oneLine(reader, 40)
  const type = `${isRedelivered ? '↻' : '✖'} ${oneLine(entry.type, 24)}`
  const end = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}  ${oneLine(entry.position, 60)}`
  const left = width - name.length - type.length - end.length - 6
  const text = oneLine(`${resourceOf(entry)}: ${error.name}: ${error.message}`, Math.max(left, 20))
  return `${name}  ${paint(isRedelivered ? 'yellow' : 'red', type)}  ${text}  ${paint('dim', end)}`
}
