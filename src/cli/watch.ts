import type { Command } from 'commander'
import type { ResearchClient } from 'rivulet'
import { firstValueFrom } from 'rxjs'
import { eventLine } from './event-line.ts'
import { UsageError } from './exit.ts'
import { createLog, logDiagnostic } from './log.ts'
import { addBaseUrl, addCommonOptions, collect, connect, portNumber } from './options.ts'
import type { CommonOptions } from './options.ts'
import { createOutput } from './output.ts'
import { createProgress } from './progress.ts'
import { openWebhookEndpoint } from './webhook-endpoint.ts'

interface WatchOptions extends CommonOptions {
  readonly baseUrl?: string
  readonly monitor?: readonly string[]
  readonly group?: readonly string[]
  readonly webhookPort?: number
  readonly webhookHost: string
}

const EXAMPLES = `
It ends when every task group is done and there is no monitor or webhook to wait for.

Examples:
  $ rivulet watch --monitor monitor_123
  $ rivulet watch --group tgrp_1 --group tgrp_2 --json | jq -c 'select(.type == "task_run.state") | .data.output'
  $ RIVULET_WEBHOOK_SECRET=… rivulet watch --monitor monitor_123 --webhook-port 3000`

/** `rivulet watch`: monitors, task groups and webhooks as one stream of events. */
export function addWatch(program: Command, signal: AbortSignal): void {
  const command = program
    .command('watch')
    .description('Follow monitors, task groups and webhooks as one stream of events, each once.')
    .option('--monitor <id>', 'a monitor to follow; may be repeated', collect(String))
    .option('--group <id>', 'a task group to follow until it is done; may be repeated', collect(String))
    .option(
      '--webhook-port <number>',
      'receive webhooks on this port; needs RIVULET_WEBHOOK_SECRET',
      portNumber,
    )
    .option('--webhook-host <address>', 'address to receive webhooks on', '127.0.0.1')
  addBaseUrl(command)
  addCommonOptions(command, 'print each event as it is, one a line')
    .addHelpText('after', EXAMPLES)
    .action((options: WatchOptions) => watch(options, signal))
}

async function watch(options: WatchOptions, signal: AbortSignal): Promise<void> {
  const { monitor: monitors = [], group: taskGroups = [], webhookPort, webhookHost } = options
  if (monitors.length === 0 && taskGroups.length === 0 && webhookPort === undefined) {
    throw new UsageError('what shall it watch? Name it with --monitor, --group or --webhook-port')
  }
  const log = createLog(options)
  const output = createOutput(process.stdout, { json: options.json === true, signal })
  const client = connect(options.baseUrl)
  client.diagnostics.subscribe((diagnostic) => logDiagnostic(log, diagnostic))

  await checkPresence(client, monitors, taskGroups, signal)
  await using endpoint =
    webhookPort === undefined
      ? undefined
      : await openWebhookEndpoint(webhookSecret(), { port: webhookPort, host: webhookHost })
  if (endpoint !== undefined) log.info({ url: endpoint.url }, 'receiving webhooks')

  const webhooks = endpoint?.receiver
  const events = client.watch({ monitors, taskGroups, ...(webhooks !== undefined && { webhooks }), signal })
  if (output.json) {
    for await (const event of events) await output.value(event)
    return
  }
  const progress = createProgress()
  try {
    for await (const event of events) {
      progress.take(event)
      await progress.aside(() => output.line(eventLine(event, new Date(), output)))
    }
  } finally {
    progress.stop()
  }
}

/**
 * Reads everything once before it is watched. A stream tries for ever to reach a service that is away; a command that
 * was just typed shall rather say that the address is wrong.
 */
async function checkPresence(
  client: ResearchClient,
  monitors: readonly string[],
  groups: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all([
    ...monitors.map((id) => firstValueFrom(client.monitors.get(id, { signal }))),
    ...groups.map((id) => firstValueFrom(client.taskGroups.get(id, { signal }))),
  ])
}

function webhookSecret(): string {
  const secret = process.env['RIVULET_WEBHOOK_SECRET']
  if (secret !== undefined && secret !== '') return secret
  throw new UsageError('RIVULET_WEBHOOK_SECRET is not set: webhooks cannot be verified without it')
}
