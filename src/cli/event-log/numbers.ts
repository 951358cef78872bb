import type { Command } from 'commander'
import type { LogStats } from 'rivulet/log'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'

interface LogFileOptions extends CommonOptions {
  readonly log: string
}

/** The longest name that is shown, in characters. */
const NAME_WIDTH = 40

/** `rivulet log stats`: the numbers of a log. */
export function addStats(group: Command, signal: AbortSignal): void {
  addNumbers(group, signal, 'stats', {
    description: 'Print the size of a log, its readers and the streams that it was recorded from.',
    json: 'print the numbers as one line of JSON',
    print: printStats,
  })
}

/** `rivulet log consumers`: how far consumers are behind. */
export function addConsumers(group: Command, signal: AbortSignal): void {
  addNumbers(group, signal, 'consumers', {
    description: 'Print how far each consumer of a log is behind.',
    json: 'print each consumer as one line of JSON',
    print: (stats, output) => printReaders(stats, 'consumer', output),
  })
}

/** `rivulet log processes`: how far processes are behind. */
export function addProcesses(group: Command, signal: AbortSignal): void {
  addNumbers(group, signal, 'processes', {
    description: 'Print how far each process of a log is behind.',
    json: 'print each process as one line of JSON',
    print: (stats, output) => printReaders(stats, 'process', output),
  })
}

function addNumbers(
  group: Command,
  signal: AbortSignal,
  name: string,
  {
    description,
    json,
    print,
  }: {
    readonly description: string
    readonly json: string
    readonly print: (stats: LogStats, output: Output) => Promise<void>
  },
): void {
  const command = group
    .command(name)
    .description(description)
    .requiredOption(...LOG_OPTION)
  addCommonOptions(command, json)
    .addHelpText('after', `\nExamples:\n  $ rivulet log ${name} --log rivulet.db`)
    .action(async (options: LogFileOptions) => {
      await using file = await openLogAt(options.log)
      const output = outputOf(options, signal)
      await print(await file.log.stats(), output)
    })
}

async function printStats(stats: LogStats, output: Output): Promise<void> {
  if (output.json) return output.value(stats)
  const { entries, oldest, newest, bytes, walBytes, inbox, pausedBy, readers, streams, time: clock } = stats
  const range = oldest === null || newest === null ? '' : `, ${time(oldest)} to ${time(newest)}`
  await output.line(`${label('entries')}${count(entries)}${range}`)
  await output.line(`${label('size')}${size(bytes)}, and ${size(walBytes)} of write-ahead log`)
  await output.line(`${label('inbox')}${count(inbox.pending)} webhooks, ${size(inbox.bytes)}`)
  await output.line(`${label('time')}${eventTime(clock, output)}`)
  if (pausedBy !== null) {
    const reader = oneLine(pausedBy, NAME_WIDTH)
    await output.line(`${label('paused')}${output.paint('yellow', `until ${reader} has read more`)}`)
  }
  for (const reader of readers) await output.line(readerLine(reader, output))
  for (const stream of streams) await output.line(streamLine(stream))
}

async function printReaders(
  { readers }: LogStats,
  kind: LogStats['readers'][number]['kind'],
  output: Output,
): Promise<void> {
  for (const reader of readers.filter((each) => each.kind === kind)) {
    await (output.json ? output.value(reader) : output.line(readerLine(reader, output)))
  }
}

/** `event time 12 s behind; waits for recording main; 2 sources are away alone`. */
function eventTime(
  { now, through, complete, recordings }: LogStats['time'],
  { paint }: Pick<Output, 'paint'>,
): string {
  const delay =
    through === null
      ? 'event time not known yet'
      : `event time ${duration(Math.max(0, now - through) / 1_000)} behind`
  const away = recordings.reduce((sum, { behind }) => sum + behind, 0)
  const alone = `${count(away)} ${away === 1 ? 'source is' : 'sources are'} away alone`
  const rest = away === 0 ? '' : `; ${paint('yellow', alone)}`
  const awaited = recordings.filter(({ isAwaited }) => isAwaited).map(({ name }) => oneLine(name, NAME_WIDTH))
  if (awaited.length === 0) return `${delay}${rest}`
  const names = `${awaited.length === 1 ? 'recording' : 'recordings'} ${awaited.join(', ')}`
  return complete
    ? `${delay}; waits for ${names}${rest}`
    : `${delay}; ${paint('yellow', `goes on without ${names}`)}${rest}`
}

/** `consumer    billing  3 behind, 12 s  1 dead letter  runs in process 42 on vm`. */
function readerLine(
  { kind, name, lag, watermark, deadLetters, holdsRetention, isPaused, owner }: LogStats['readers'][number],
  { paint }: Pick<Output, 'paint'>,
) {
  const parts = [
    `${label(kind)}${oneLine(name, NAME_WIDTH)}`,
    lag.entries === 0 ? 'up to date' : `${count(lag.entries)} behind, ${duration(lag.seconds)}`,
    ...(watermark === null ? [] : [`watermark ${time(watermark)}`]),
    ...(deadLetters === 0
      ? []
      : [paint('red', `${count(deadLetters)} ${deadLetters === 1 ? 'dead letter' : 'dead letters'}`)]),
    ...(isPaused ? [paint('yellow', 'waits until the log is smaller')] : []),
    ...(holdsRetention ? [] : [paint('dim', 'retention does not wait')]),
    paint('dim', owner === null ? 'not running' : `runs in ${oneLine(owner, NAME_WIDTH)}`),
  ]
  return parts.join('  ')
}

/** `stream      monitors/monitor_1  recorded by process 42 on vm`. */
function streamLine({ name, owner }: LogStats['streams'][number]): string {
  const by = owner === null ? 'not being recorded' : `recorded by ${oneLine(owner, NAME_WIDTH)}`
  return `${label('stream')}${oneLine(name, 2 * NAME_WIDTH)}  ${by}`
}

const label = (text: string) => text.padEnd(10)

const count = (value: number) => value.toLocaleString('en')

function time(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** `12.3 MB`. */
function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(Math.max(0, Math.floor(Math.log10(Math.max(bytes, 1)) / 3)), units.length - 1)
  const value = bytes / 1_000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`
}

/** `12 s`, `3 min`, `2.5 h`, `4 d`. */
function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${(seconds / 3_600).toFixed(1)} h`
  return `${Math.round(seconds / 86_400)} d`
}
