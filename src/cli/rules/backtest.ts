import { writeFile } from 'node:fs/promises'
import { Option } from 'commander'
import type { Command } from 'commander'
import type { ResearchEvent } from 'rivulet'
import type { BacktestEvents, BacktestReport, PlacedHistory } from 'rivulet/rules'
import { addConnectionOptions, connect } from '../connection.ts'
import type { ConnectionOptions } from '../connection.ts'
import { UsageError } from '../exit.ts'
import { openLogAt } from '../opened-log.ts'
import { collect, outputOf, timeSpan } from '../options.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'
import { logEntries } from '../log-entries.ts'
import { readRules } from './rule-files.ts'

interface BacktestCommandOptions extends ConnectionOptions {
  readonly rules: readonly string[]
  readonly log?: string
  readonly name?: string
  readonly monitor?: readonly string[]
  readonly since?: number
  readonly timeline?: string
}

/** The events of the past, and facts about them. */
interface Past {
  readonly events: BacktestEvents
  /** The end of the time that passes, in Unix ms. */
  readonly until?: number
  readonly placed?: PlacedHistory['placed']
  readonly title: string
}

const NAME_WIDTH = 40

const HELP = `
Over a log, it gives exactly what "rivulet rules run" did or would have done from its beginning. Over the history of a monitor, the
detections have no time: they are placed between the completions beside them, else by their event_date, and the output says how many.

Examples:
  $ rivulet rules backtest --log rivulet.db --rules rules.yaml
  $ rivulet rules backtest --monitor monitor_123 --since 90d --rules 'rules/*.yaml' --timeline timeline.html`

/** `rivulet rules backtest`: what rules would have done in the past. */
export function addBacktest(group: Command, signal: AbortSignal): void {
  const command = group
    .command('backtest')
    .description('Run rules over the past, in memory: what would have fired, when and how often.')
    .requiredOption('--rules <files...>', 'rule files, or patterns in quotes')
    .option('--log <file|url>', 'log: an SQLite file, or nats://host:4222/NAME')
    .option('--name <name>', 'with --log: name of the process that ran rules over it (default: rules)')
    .addOption(
      new Option('--monitor <id>', 'the history of this monitor; may be repeated')
        .argParser(collect(String))
        .conflicts('log'),
    )
    .addOption(
      new Option('--since <time>', 'with --monitor: how far back, such as 90d (default: all)')
        .argParser(timeSpan)
        .conflicts('log'),
    )
    .option('--timeline <file>', 'also write a timeline to this file, as HTML')
  addConnectionOptions(command, 'print each alert event, then the summary, as one line of JSON')
    .addHelpText('after', HELP)
    .action(async (options: BacktestCommandOptions) => {
      const output = outputOf(options, signal)
      const rules = await readRules(options.rules)
      if (options.log === undefined) {
        await run(rules, await historyOf(options, signal), options, output)
        return
      }
      await using file = await openLogAt(options.log)
      const events = logEntries(file.log, signal)
      await run(rules, { events, title: `Backtest over ${options.log}` }, options, output)
    })
}

async function run(
  rules: Awaited<ReturnType<typeof readRules>>,
  { events, until, placed, title }: Past,
  { timeline, name }: BacktestCommandOptions,
  output: Output,
): Promise<void> {
  const { backtest, timelineHtml } = await import('rivulet/rules')
  const lines = new Lines(output)
  const report = await backtest(rules, lines.before(events), {
    ...(output.json && { onAlert: (event) => lines.add(event) }),
    ...(until !== undefined && { until }),
    ...(name !== undefined && { name }),
  })
  await lines.flush()
  if (timeline !== undefined)
    await writeFile(timeline, timelineHtml(report, { title, ...(placed && { placed }) }))
  if (output.json) {
    const { episodes: _, counts: __, ...summary } = report
    await output.value({ summary: { ...summary, ...(placed && { placed }) } })
  } else {
    await printReport(report, placed, output)
    if (timeline !== undefined) await output.hint(`The timeline is in ${timeline}`)
  }
}

/** Values that are printed as soon as they are read, before the next event is evaluated. */
class Lines {
  readonly #output: Output
  #values: unknown[] = []

  constructor(output: Output) {
    this.#output = output
  }

  add(value: unknown): void {
    this.#values.push(value)
  }

  /** The events. Before each event, the output that earlier events have caused is printed. */
  async *before(events: BacktestEvents): AsyncGenerator<ResearchEvent> {
    if (!(Symbol.asyncIterator in events || Symbol.iterator in events)) return
    for await (const event of events) {
      if (this.#values.length > 0) await this.flush()
      yield event
    }
  }

  async flush(): Promise<void> {
    const values = this.#values
    this.#values = []
    for (const value of values) await this.#output.value(value)
  }
}

/** The histories of monitors, in the order of time. */
async function historyOf(options: BacktestCommandOptions, signal: AbortSignal): Promise<Past> {
  const { monitor: ids = [], since } = options
  if (ids.length === 0) throw new UsageError('a backtest needs --log FILE or --monitor ID')
  const { client } = connect(options, signal)
  const { placeHistory } = await import('rivulet/rules')
  let until = Date.now()
  const from = since === undefined ? -Infinity : until - since
  const placed = { time: 0, completion: 0, date: 0, unplaced: 0 }
  const all: ResearchEvent[] = []
  for (const id of ids) {
    const { frequency } = await client.monitors.get(id, { signal })
    const newestFirst: ResearchEvent[] = []
    for await (const event of client.monitors.events(id, { include_completions: true, signal })) {
      newestFirst.push(event)
      // One earlier event with a time, to place those after it.
      if (event.time !== null && Date.parse(event.time) < from) break
    }
    // The frequency comes from the service, so it may be anything.
    const known = /^[1-9]\d{0,5}[hdw]$/.test(frequency) ? { frequency } : {}
    const history = placeHistory(newestFirst, { ...known, since: from })
    until = Math.max(until, history.now)
    for (const event of history.events) all.push(event)
    placed.time += history.placed.time
    placed.completion += history.placed.completion
    placed.date += history.placed.date
    placed.unplaced += history.placed.unplaced
  }
  const events = all.toSorted((a, b) => Date.parse(a.received) - Date.parse(b.received))
  return { events, until, placed, title: `Backtest over ${ids.join(', ')}` }
}

async function printReport(
  { from, to, events, rules }: BacktestReport,
  placed: PlacedHistory['placed'] | undefined,
  output: Output,
): Promise<void> {
  if (from === null || to === null) {
    await output.line('There are no events.')
  } else {
    const [begin, end] = [from, to].map((at) => `${new Date(at).toISOString().slice(0, 16)}Z`)
    await output.line(`${events.toLocaleString('en')} events from ${begin} to ${end}`)
  }
  if (placed !== undefined) {
    const { placedText } = await import('rivulet/rules')
    await output.line(placedText(placed))
  }
  await output.line()
  const width = Math.min(NAME_WIDTH, Math.max(4, ...rules.map(({ rule }) => rule.length)))
  const heads = ['fired', 'resolved', 'firing', 'time firing', 'late', 'unknown']
  await output.line(
    output.paint(
      'bold',
      ['rule'.padEnd(width), ...heads.map((head) => head.padStart(head.length))].join('  '),
    ),
  )
  for (const rule of rules) await output.line(ruleLine(rule, width, heads, output))
}

function ruleLine(
  rule: BacktestReport['rules'][number],
  width: number,
  heads: readonly string[],
  { paint }: Output,
): string {
  const { fired, resolved, firing, duration, late, unknown } = rule
  const values = [fired, resolved, firing, durationText(duration), late, unknown]
  const cells = values.map((value, index) => String(value).padStart(heads[index]?.length ?? 0))
  const line = [oneLine(rule.rule, NAME_WIDTH).padEnd(width), ...cells].join('  ')
  return fired === 0 ? paint('dim', line) : line
}

/** `2d 3h`. */
function durationText(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  const [days, hours] = [Math.floor(minutes / 1_440), Math.floor(minutes / 60) % 24]
  if (days > 0) return hours > 0 ? `${days}d ${hours}h` : `${days}d`
  return hours > 0 ? `${hours}h ${minutes % 60}m` : `${minutes}m`
}
