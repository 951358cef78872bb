import { Option } from 'commander'
import type { Command } from 'commander'
import type { CreateMonitorRequest, Monitor, MonitorProcessor } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { invocation } from './invocation.ts'
import { jsonFile } from './json-file.ts'
import type { JsonObject } from './json-file.ts'
import { jsonText } from './json-text.ts'
import { collect, metadataEntry } from './options.ts'
import type { Output } from './output.ts'
import { oneLine } from './plain.ts'

interface MonitorCreateOptions extends ConnectionOptions {
  readonly query: string
  readonly frequency: string
  readonly processor?: MonitorProcessor
  readonly schema?: JsonObject
  readonly includeDomain?: readonly string[]
  readonly excludeDomain?: readonly string[]
  readonly backfill?: boolean
  readonly webhookUrl?: string
  readonly metadata?: readonly (readonly [string, string])[]
}

interface MonitorListOptions extends ConnectionOptions {
  readonly status?: Monitor['status']
}

const EXAMPLES = `
Examples:
  $ rivulet monitor create --query "solid state battery" --frequency 1d
  $ rivulet monitor list --status active
  $ rivulet watch --monitor monitor_123
  $ rivulet monitor trigger monitor_123
  $ rivulet monitor cancel monitor_123`

const CREATE_EXAMPLES = `
It prints the monitor, starting with its id. "rivulet watch --monitor ID" follows its events.

Examples:
  $ rivulet monitor create --query "solid state battery" --frequency 1d
  $ rivulet monitor create --query "rate decisions" --frequency 1h --processor core --include-domain .gov
  $ rivulet monitor create --query "new releases" --frequency 12h --webhook-url https://example.com/hooks --json`

/** `rivulet monitor`: creates, lists and ends monitors (§2.1, §4.2). */
export function addMonitor(program: Command, signal: AbortSignal): void {
  const monitor = program
    .command('monitor')
    .description('Create, list, run and cancel monitors.')
    .addHelpText('after', EXAMPLES)
  addCreate(monitor, signal)
  addList(monitor, signal)
  addGet(monitor, signal)
  addTrigger(monitor, signal)
  addCancel(monitor, signal)
}

function addCreate(monitor: Command, signal: AbortSignal): void {
  const command = monitor
    .command('create')
    .description('Create a monitor: it searches immediately, and then at its frequency.')
    .requiredOption('--query <text>', 'what it searches for')
    .requiredOption('--frequency <time>', 'how often: a number and h, d or w, from 1h to 30d')
    .addOption(
      new Option('--processor <name>', 'processor (default: lite)').choices(['lite', 'base', 'core']),
    )
    .option('--schema <file>', 'JSON Schema of its outputs', jsonFile)
    .option(
      '--include-domain <domain>',
      'only this domain, or suffix such as .edu; may be repeated',
      collect(String),
    )
    .option('--exclude-domain <domain>', 'not this domain or suffix; may be repeated', collect(String))
    .option('--backfill', 'the first execution also reports recent history')
    .option('--webhook-url <url>', 'where it posts its webhooks')
    .option('--metadata <name=value>', 'stored with it; may be repeated', collect(metadataEntry))
  addConnectionOptions(command, "print the service's response as one line of JSON")
    .addHelpText('after', CREATE_EXAMPLES)
    .action(async (options: MonitorCreateOptions) => {
      const { client, output } = connect(options, signal)
      const created = await client.monitors.create(createRequest(options), { signal })
      await printMonitor(created, output)
      if (!output.json) await output.hint(`Follow it: ${invocation()} watch --monitor ${created.monitor_id}`)
    })
}

function createRequest(options: MonitorCreateOptions): CreateMonitorRequest {
  const {
    query,
    frequency,
    processor,
    schema,
    includeDomain,
    excludeDomain,
    backfill,
    webhookUrl,
    metadata,
  } = options
  const source_policy = {
    ...(includeDomain !== undefined && { include_domains: includeDomain }),
    ...(excludeDomain !== undefined && { exclude_domains: excludeDomain }),
  }
  return {
    type: 'event_stream',
    frequency,
    settings: {
      query,
      ...(schema !== undefined && { output_schema: { type: 'json', json_schema: schema } }),
      ...(backfill === true && { include_backfill: true }),
      ...(Object.keys(source_policy).length > 0 && { advanced_settings: { source_policy } }),
    },
    ...(processor !== undefined && { processor }),
    ...(webhookUrl !== undefined && {
      webhook: { url: webhookUrl, event_types: ['monitor.event.detected'] },
    }),
    ...(metadata !== undefined && { metadata: Object.fromEntries(metadata) }),
  }
}

function addList(monitor: Command, signal: AbortSignal): void {
  const command = monitor
    .command('list')
    .description('List monitors.')
    .addOption(new Option('--status <status>', 'only with this status').choices(['active', 'cancelled']))
  addConnectionOptions(command, 'print each monitor as one line of JSON').action(
    async (options: MonitorListOptions) => {
      const { client, output } = connect(options, signal)
      const { status } = options
      let count = 0
      for await (const each of client.monitors.list({ ...(status !== undefined && { status }), signal })) {
        await printMonitor(each, output)
        count += 1
      }
      if (count === 0 && !output.json) await output.line('No monitors.')
    },
  )
}

function addGet(monitor: Command, signal: AbortSignal): void {
  const command = monitor.command('get').description('Show a monitor.').argument('<id>', "the monitor's id")
  addConnectionOptions(command, "print the service's response as one line of JSON").action(
    async (id: string, options: ConnectionOptions) => {
      const { client, output } = connect(options, signal)
      const found = await client.monitors.get(id, { signal })
      await printMonitor(found, output)
      if (!output.json) await printDetails(found, output)
    },
  )
}

function addTrigger(monitor: Command, signal: AbortSignal): void {
  const command = monitor
    .command('trigger')
    .description('Run a monitor now, without changing its schedule.')
    .argument('<id>', "the monitor's id")
  addConnectionOptions(command, 'print the id as one line of JSON').action(
    async (id: string, options: ConnectionOptions) => {
      const { client, output } = connect(options, signal)
      await client.monitors.trigger(id, { signal })
      if (output.json) await output.value({ triggered: id })
      else await output.line(`${id} is running now.`)
    },
  )
}

function addCancel(monitor: Command, signal: AbortSignal): void {
  const command = monitor
    .command('cancel')
    .description('Cancel a monitor permanently.')
    .argument('<id>', "the monitor's id")
  addConnectionOptions(command, "print the service's response as one line of JSON").action(
    async (id: string, options: ConnectionOptions) => {
      const { client, output } = connect(options, signal)
      await printMonitor(await client.monitors.cancel(id, { signal }), output)
    },
  )
}

/** Prints a monitor as one line: its id, status, frequency, processor and query. */
async function printMonitor(monitor: Monitor, output: Output): Promise<void> {
  if (output.json) return output.value(monitor)
  const { monitor_id, status, frequency, processor } = monitor
  const style = status === 'active' ? 'green' : 'dim'
  const columns = [status.padEnd(9), frequency.padEnd(3), processor.padEnd(4)]
  const left = output.width - monitor_id.length - columns.join('  ').length - 4
  const [first, ...others] = columns
  await output.line(
    `${monitor_id}  ${[output.paint(style, first ?? ''), ...others].join('  ')}  ${oneLine(subjectOf(monitor), left)}`,
  )
}

function subjectOf(monitor: Monitor): string {
  if (monitor.type === 'event_stream') return monitor.settings.query
  return `the output of ${monitor.settings.task_run_id}`
}

async function printDetails(monitor: Monitor, { line, paint, width }: Output): Promise<void> {
  const { created_at, last_run_at, webhook, metadata } = monitor
  const details = [
    ['created', created_at],
    ['last run', last_run_at ?? 'not yet'],
    ...(webhook == null ? [] : [['webhook', webhook.url]]),
    ...(metadata == null || Object.keys(metadata).length === 0 ? [] : [['metadata', jsonText(metadata)]]),
  ] as const
  for (const [name = '', value = ''] of details) {
    await line(`  ${paint('dim', name.padEnd(10))}${oneLine(value, width - 12)}`)
  }
}
