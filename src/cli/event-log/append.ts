import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { ArgumentError } from 'rivulet'
import { LogValueError } from 'rivulet/log'
import type { AppEvent, EventLog } from 'rivulet/log'
import { UsageError } from '../exit.ts'
import { isJsonObject } from '../json-file.ts'
import { LOG_OPTION, openLogToAppend } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { linesOf } from '../text-lines.ts'
import type { TextLine } from '../text-lines.ts'

interface AppendOptions extends CommonOptions {
  readonly log: string
}

/** An event and the number of its line. */
interface LineEvent {
  readonly number: number
  readonly event: AppEvent
}

const EXAMPLES = `
Each line is a CloudEvent in JSON: "specversion" is "1.0", "id", "source" and "type" are texts, "data" is any JSON value, and "time" may be
missing. Other attributes are not stored. The type is one of your own, such as invoice.sent, and so is the source, such as /invoices/42.

An event that the log has, by its source and id, is not appended again: after a failure, give the same lines once more. A line that is
refused ends the command, with its number. The lines before it are appended.

Examples:
  $ rivulet log append --log rivulet.db invoices.ndjson
  $ billing --events | rivulet log append --log nats://localhost:4222/watch`

/** `rivulet log append`: events of an application, from a file or standard input. */
export function addAppend(group: Command, signal: AbortSignal): void {
  const command = group
    .command('append')
    .description('Append events of your own to a log, to be read beside those that were recorded.')
    .argument('[file]', 'events, one per line; - or none is standard input')
    .requiredOption(...LOG_OPTION)
  addCommonOptions(command, 'print the number of new and of known events as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((file: string | undefined, options: AppendOptions) => append(file ?? '-', options, signal))
}

async function append(file: string, options: AppendOptions, signal: AbortSignal): Promise<void> {
  const { stdin } = process
  if (file === '-' && stdin.isTTY) {
    throw new UsageError('no events: name a file, or give them on standard input')
  }
  await using opened = await openLogToAppend(options.log)
  const name = file === '-' ? 'standard input' : file
  const appending = new Appending(opened.log, name, signal)
  const input = file === '-' ? stdin : createReadStream(file)
  for await (const lines of linesOf(input, name, signal)) await appending.add(lines)
  const { entries, duplicates } = appending
  const output = outputOf(options, signal)
  if (output.json) return await output.value({ appended: { entries, duplicates } })
  const known = duplicates === 0 ? '' : `, ${duplicates.toLocaleString('en')} were known`
  const events = entries === 1 ? '1 event is' : `${entries.toLocaleString('en')} events are`
  await output.line(`${events} appended${known}.`)
}

/** Appends lines, and counts. */
class Appending {
  entries = 0
  duplicates = 0
  readonly #log: EventLog
  readonly #name: string
  readonly #signal: AbortSignal

  constructor(log: EventLog, name: string, signal: AbortSignal) {
    this.#log = log
    this.#name = name
    this.#signal = signal
  }

  /** @throws {UsageError} for a line that is refused. Those before it are appended. */
  async add(lines: readonly TextLine[]): Promise<void> {
    const events: LineEvent[] = []
    let refused: UsageError | undefined
    for (const line of lines) {
      const { number } = line
      if ('text' in line && line.text.trim() === '') continue
      const parsed = 'text' in line ? cloudEvent(line.text) : line.problem
      if (typeof parsed === 'string') {
        refused = this.#refused(number, parsed)
        break
      }
      events.push({ number, event: parsed })
    }
    await this.#append(events)
    if (refused !== undefined) throw refused
  }

  async #append(events: readonly LineEvent[]): Promise<void> {
    const [first, ...others] = events
    if (first === undefined) return
    try {
      const given = others.length === 0 ? first.event : events.map(({ event }) => event)
      const { entries, duplicates } = await this.#log.append(given, { signal: this.#signal })
      this.entries += entries
      this.duplicates += duplicates
    } catch (error) {
      if (!(error instanceof ArgumentError || error instanceof LogValueError)) throw error
      if (others.length === 0) throw this.#refused(first.number, error.message)
      // Nothing of it was appended: one by one, up to the one at fault.
      for (const event of events) await this.#append([event])
    }
  }

  #refused(line: number, problem: string): UsageError {
    return new UsageError(`${this.#name}, line ${line}: ${problem}`)
  }
}

/** The event of a line, or what is wrong with it. The log checks the rest. */
function cloudEvent(line: string): AppEvent | string {
  let parsed: unknown
  try {
    parsed = JSON.parse(line)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  if (!isJsonObject(parsed) || parsed['specversion'] !== '1.0') {
    return 'expected a CloudEvent: an object of JSON with "specversion": "1.0"'
  }
  const { id, source, type, time, data } = parsed
  if (typeof id !== 'string' || typeof source !== 'string' || typeof type !== 'string') {
    return 'expected "id", "source" and "type", as texts'
  }
  if (time !== undefined && typeof time !== 'string') return 'expected "time" to be a text, or missing'
  if (data === undefined) return 'expected "data"'
  return { id, source, type, data, ...(time !== undefined && { time }) }
}
