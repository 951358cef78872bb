import { Option } from 'commander'
import type { Command } from 'commander'
import type { EventLog } from 'rivulet/log'
import type { Output } from '../output.ts'
import { UsageError } from '../exit.ts'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { oneLine } from '../plain.ts'
import { knownReader, readerOf, unknownName } from './known-reader.ts'

interface RemoveReaderOptions extends CommonOptions {
  readonly log: string
  readonly consumer?: string
  readonly process?: string
  readonly recording?: string
}

const EXAMPLES = `
It deletes the position of the reader, its dead letters, and the state of a process. Retention does not wait for it any more. A reader that
runs is not removed: end it first. The name begins anew where it is used again.

Event time waits for a recording that has stopped. When it is removed, it no longer does; what was recorded stays.

Examples:
  $ rivulet log remove-reader --log rivulet.db --consumer "an old report"
  $ rivulet log remove-reader --log rivulet.db --process view:groups
  $ rivulet log remove-reader --log rivulet.db --recording second`

/** `rivulet log remove-reader`: deletes a consumer or a process that no longer exists. */
export function addRemoveReader(group: Command, signal: AbortSignal): void {
  const command = group
    .command('remove-reader')
    .description(
      'Delete a consumer, a process or a recording that is no longer used, so that the log keeps nothing for it.',
    )
    .requiredOption(...LOG_OPTION)
    .option('--consumer <name>', 'the consumer to delete')
    .addOption(new Option('--process <name>', 'the process to delete').conflicts('consumer'))
    .addOption(new Option('--recording <name>', 'the recording to delete').conflicts(['consumer', 'process']))
  addCommonOptions(command, 'print what was deleted as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: RemoveReaderOptions) => removeReader(options, signal))
}

async function removeReader(options: RemoveReaderOptions, signal: AbortSignal): Promise<void> {
  const reader = readerOf(options)
  const { recording } = options
  if (reader === undefined && recording === undefined)
    throw new UsageError('remove-reader needs --consumer, --process or --recording')
  await using file = await openLogAt(options.log)
  if (reader === undefined) return await removeRecording(file.log, recording ?? '', outputOf(options, signal))
  const { kind, name, lag, deadLetters } = await knownReader(file.log, reader)
  await file.log.remove(reader)
  const output = outputOf(options, signal)
  if (output.json) return await output.value({ removed: { kind, name, behind: lag.entries, deadLetters } })
  const behind = `It was ${counted(lag.entries, 'entry', 'entries')} behind`
  const letters = `had ${counted(deadLetters, 'dead letter', 'dead letters')}`
  await output.line(`The ${kind} ${oneLine(name, 200)} is removed. ${behind} and ${letters}.`)
}

async function removeRecording(log: EventLog, name: string, output: Output): Promise<void> {
  const { time } = await log.stats()
  const isKnown = time.recordings.some((each) => each.name === name)
  if (!isKnown) throw unknownName('recording', name, time.recordings)
  await log.remove({ recording: name })
  if (output.json) return await output.value({ removed: { kind: 'recording', name } })
  await output.line(`The recording ${oneLine(name, 200)} is removed. Event time no longer waits for it.`)
}

function counted(count: number, one: string, several: string): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : several}`
}
