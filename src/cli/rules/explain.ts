import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import type { ResearchEvent } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import type { RuleExplanation } from 'rivulet/rules'
import { UsageError } from '../exit.ts'
import { eventLine, keyText } from '../event-line.ts'
import { isJsonObject } from '../json-file.ts'
import { jsonText } from '../json-text.ts'
import { logEntries } from '../log-entries.ts'
import { openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output } from '../output.ts'
import { oneLine } from '../plain.ts'
import { readRules } from './rule-files.ts'

interface ExplainOptions extends CommonOptions {
  readonly rules: readonly string[]
  readonly event: string
  readonly log?: string
  readonly file?: string
}

/** The longest value that is shown, in characters. */
const VALUE_WIDTH = 200

const ALERTS = ['alert.firing', 'alert.resolved', 'alert.late'] as const

const EXAMPLES = `
The event is found by its id: in a log, with what came of it there, or in a file of events, one as JSON on each line, as
"rivulet log read --json" prints them. Where several have the id, as revisions have, the last one counts.

Examples:
  $ rivulet rules explain ErrorBurst --event mevt_1 --log rivulet.db --rules rules.yaml
  $ rivulet rules explain ErrorBurst --event mevt_1 --file events.ndjson --rules rules.yaml --json`

/** `rivulet rules explain`: how a rule evaluates an event. */
export function addExplain(group: Command, signal: AbortSignal): void {
  const command = group
    .command('explain')
    .description('Print each part of the conditions of a rule with its value for an event.')
    .argument('<rule>', 'the name of the rule')
    .requiredOption('--event <id>', 'the id of the event')
    .requiredOption('--rules <files...>', 'rule files, or patterns in quotes')
    .option('--log <file|url>', 'log that has the event: an SQLite file, or nats://host:4222/NAME')
    .option('--file <path>', 'file of events, one as JSON on each line')
  addCommonOptions(command, 'print the parts, their values and the alerts as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((rule: string, options: ExplainOptions) => explain(rule, options, signal))
}

async function explain(rule: string, options: ExplainOptions, signal: AbortSignal): Promise<void> {
  const { rules: files, event: id, log, file } = options
  if ((log === undefined) === (file === undefined)) throw new UsageError('use --log or --file')
  const rules = await readRules(files)
  const output = outputOf(options, signal)
  await using opened = log === undefined ? undefined : await openLogAt(log)
  const event =
    opened === undefined ? await eventOfFile(file ?? '', id) : await eventOfLog(opened.log, id, signal)
  if (event === undefined) throw new UsageError(`there is no event ${JSON.stringify(id)} in ${log ?? file}`)
  const { explainRule } = await import('rivulet/rules')
  const explanation = explainRule(rules, rule, event)
  const alerts = opened === undefined ? [] : await alertsOf(opened.log, rule, event, signal)
  if (output.json) await output.value({ ...explanation, alerts })
  else await print(explanation, event, alerts, output)
}

async function eventOfLog(log: EventLog, id: string, signal: AbortSignal): Promise<Entry | undefined> {
  let found: Entry | undefined
  for await (const entry of logEntries(log, signal)) if (entry.id === id) found = entry
  return found
}

/** The alerts of the rule to which the event contributed. */
async function alertsOf(
  log: EventLog,
  rule: string,
  { source, id }: ResearchEvent,
  signal: AbortSignal,
): Promise<readonly Entry[]> {
  const found: Entry[] = []
  for await (const entry of logEntries(log, signal, { types: ALERTS })) {
    if (entry.type !== 'alert.firing' && entry.type !== 'alert.resolved' && entry.type !== 'alert.late')
      continue
    const causes = entry.type === 'alert.late' ? [entry.data.event] : entry.data.events
    if (entry.data.alert === rule && causes.some((cause) => cause.source === source && cause.id === id))
      found.push(entry)
  }
  return found
}

async function eventOfFile(file: string, id: string): Promise<ResearchEvent | undefined> {
  let found: ResearchEvent | undefined
  let number = 0
  try {
    for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
      number++
      if (line.trim() === '') continue
      const event: unknown = JSON.parse(line)
      if (!isEvent(event)) throw new UsageError(`${file}:${number}: this is no event`)
      if (event.id === id) found = event
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw new UsageError(`${file}:${number}: ${error.message}`)
    if (error instanceof Error && 'code' in error) throw new UsageError(error.message)
    throw error
  }
  return found
}

/** Rules accept everything else: an absent property is a missing field. */
function isEvent(value: unknown): value is ResearchEvent {
  if (!isJsonObject(value)) return false
  const { id, source, type, time = null } = value
  const isPlaced = time === null || typeof time === 'string'
  return [id, source, type].every((field) => typeof field === 'string') && isPlaced
}

const IGNORED = {
  type: 'The rule does not read events of this type.',
  backfill: 'The rule leaves out events of a first walk into the past (backfill: ignore).',
  key: 'A value of the key is missing, or is no text, number or boolean: the event does not count.',
} as const

async function print(
  { alert, at, ignored, key, matches, resolves, expressions }: RuleExplanation,
  event: ResearchEvent,
  alerts: readonly Entry[],
  output: Output,
): Promise<void> {
  const { paint } = output
  await output.line(eventLine(event, output))
  await output.line()
  for (const { name, part } of expressions) {
    await output.line(paint('bold', name))
    await printParts(part, 1, output)
  }
  await output.line()
  if (ignored !== null) await output.line(paint('yellow', IGNORED[ignored]))
  await output.line(
    `matches   ${matches}${matches === 'if changed' ? ': it depends on the last event of the key' : ''}`,
  )
  if (resolves) await output.line('resolves  yes')
  await output.line(`placed    ${at}`)
  if (key !== null)
    await output.line(`key       ${oneLine(keyText(key), VALUE_WIDTH) || '(one for all events)'}`)
  for (const entry of alerts) await output.line(eventLine(entry, output))
  if (alerts.length === 0)
    await output.line(paint('dim', `No alert of ${alert} in the log names this event.`))
}

async function printParts(
  { text, value, problem, parts }: RuleExplanation['expressions'][number]['part'],
  depth: number,
  output: Output,
): Promise<void> {
  const shown =
    problem === null
      ? oneLine(jsonText(value), VALUE_WIDTH)
      : output.paint('yellow', oneLine(`(${problem.kind}: ${problem.detail})`, VALUE_WIDTH))
  const name = output.paint('cyan', oneLine(text, VALUE_WIDTH))
  await output.line(`${'  '.repeat(depth)}${name} = ${shown}`)
  for (const part of parts) await printParts(part, depth + 1, output)
}
