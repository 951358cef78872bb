import type { Command } from 'commander'
import type { ResearchClient, ResearchEvent, WatchOptions } from 'rivulet'
import { dedupe, deliver, DrainTimeoutError } from 'rivulet/operators'
import { concat, EMPTY, filter, firstValueFrom } from 'rxjs'
import type { Observable } from 'rxjs'
import { addBaseUrl, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { eventJson, eventLine } from './event-line.ts'
import { OutputClosed, UsageError } from './exit.ts'
import { addCommonOptions, collect, portNumber } from './options.ts'
import type { Output } from './output.ts'
import { mergeByTime } from './merge-by-time.ts'
import { createProgress } from './progress.ts'
import type { Progress } from './progress.ts'
import { openInbox, openPlace } from './state.ts'
import { openWebhookEndpoint } from './webhook-endpoint.ts'

interface WatchCommandOptions extends ConnectionOptions {
  readonly monitor?: readonly string[]
  readonly group?: readonly string[]
  readonly webhookPort?: number
  readonly webhookHost: string
  readonly state?: string
}

/** How long the line that is being printed has to get out when the command is to end, in ms. */
const DRAIN_TIMEOUT = 10_000

const EXAMPLES = `
It ends when every task group is done and there is no monitor or webhook to wait for. A monitor or a group that fails for
good is reported, the others go on, and the exit code is that of the failure.

Groups that are done already are printed first, in the order of time. All else is printed as it comes; so is everything
with --state.

With --state, started again, it goes on behind the last event that it printed, wherever it was stopped; where it was
killed, the line that it was printing may come again. Webhooks are stored before they are answered. One process at a
time uses a state file; the next one ends with exit code 6.

Ctrl-C or SIGTERM ends it when the line that it is printing is out, or after ${DRAIN_TIMEOUT / 1_000} s; a second one, at once.

Examples:
  $ rivulet watch --monitor monitor_123
  $ rivulet watch --group tgrp_1 --group tgrp_2 --json | jq -c 'select(.type == "task_run.state") | .data.output'
  $ rivulet watch --group tgrp_1 --json --state watch.db >> events.ndjson
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
    .option('--state <file>', 'SQLite file to keep the place in, so that it goes on where it stopped')
  addBaseUrl(command)
  addCommonOptions(command, 'print each event as it is, one a line')
    .addHelpText('after', EXAMPLES)
    .action(async (options: WatchCommandOptions) => {
      await watch(options, signal)
      signal.throwIfAborted()
    })
}

/** Resolves when all is closed: at the end of the events, and when the signal has aborted. */
async function watch(options: WatchCommandOptions, signal: AbortSignal): Promise<void> {
  const {
    monitor: monitors = [],
    group: taskGroups = [],
    webhookPort: port,
    webhookHost: host,
    state,
  } = options
  if (monitors.length === 0 && taskGroups.length === 0 && port === undefined) {
    throw new UsageError('what shall it watch? Name it with --monitor, --group or --webhook-port')
  }
  // Its output knows no signal: a line that is cut off would be printed twice.
  const { client, log, output } = connect(options)
  const secret = port === undefined ? '' : webhookSecret()

  const done = await doneGroups(client, monitors, taskGroups, signal)
  // Closed in the opposite order: what is saved last may still mark webhooks as done.
  using stored = state === undefined || port === undefined ? undefined : await openInbox(state)
  await using endpoint =
    port === undefined ? undefined : await openWebhookEndpoint(secret, { port, host, inbox: stored?.inbox })
  await using place = state === undefined ? undefined : await openPlace(state)
  if (endpoint !== undefined) log.info({ url: endpoint.url }, 'receiving webhooks')
  // The first event may be an hour away.
  if (monitors.length > 0 || taskGroups.length > 0)
    log.info(
      { ...(monitors.length > 0 && { monitors }), ...(taskGroups.length > 0 && { groups: taskGroups }) },
      'watching',
    )

  const webhooks = endpoint?.receiver
  const checkpoint = place?.checkpoint
  const saving = checkpoint !== undefined && { checkpoint }
  const progress = createProgress()
  let failure: Error | undefined
  const handle = (event: ResearchEvent) => {
    if (event.type === 'source.failed') failure ??= event.data.error
    return print(event, output, progress)
  }
  try {
    const watched = { monitors, taskGroups, ...(webhooks !== undefined && { webhooks }), ...saving }
    await (checkpoint === undefined ? doneFirst(client, watched, done) : client.watch(watched))
      .pipe(
        deliver(handle, {
          concurrency: 1,
          // What cannot be printed now cannot be printed later.
          retries: 0,
          signal,
          drainTimeout: DRAIN_TIMEOUT,
          ...saving,
        }),
      )
      .forEach(() => {})
  } catch (error) {
    if (error instanceof OutputClosed) return
    if (!(error instanceof DrainTimeoutError)) throw error
    log.warn('the last line was not taken: it may be cut off')
    // Without one it was the signal that ended it all.
    if (error.cause !== undefined) throw error.cause
  } finally {
    progress.stop()
  }
  // It was printed, and the others went on; the exit code says it, too.
  if (failure !== undefined) throw failure
}

/** Resolves once the event is written. */
async function print(event: ResearchEvent, output: Output, progress: Progress): Promise<void> {
  if (output.json) return output.value(eventJson(event))
  progress.take(event)
  await progress.aside(() => output.line(eventLine(event, output)))
}

/**
 * What the groups that are done have to say, in the order of time; then all else. A group that is done has a past only,
 * and each of its two streams sends a part of it.
 */
function doneFirst(
  client: ResearchClient,
  watched: Pick<WatchOptions, 'webhooks'> & Readonly<Record<'monitors' | 'taskGroups', readonly string[]>>,
  done: ReadonlySet<string>,
): Observable<ResearchEvent> {
  const past = [...done].flatMap((id) => [
    client.taskGroups.runs(id, { include_output: true }),
    // The runs stream has the same runs, with their outputs.
    client.taskGroups.events(id).pipe(filter(({ type }) => type !== 'task_run.state')),
  ])
  const taskGroups = watched.taskGroups.filter((id) => !done.has(id))
  const isAll = watched.monitors.length === 0 && taskGroups.length === 0 && watched.webhooks === undefined
  const rest = isAll ? EMPTY : client.watch({ ...watched, taskGroups })
  // A webhook may repeat what a group that is done has said.
  return past.length === 0 ? rest : concat(mergeByTime(past), rest).pipe(dedupe())
}

/**
 * The groups that are done. All that is to be watched is read once before: a stream tries for ever to reach a service that
 * is away; a command that was just typed shall rather say that the address is wrong.
 */
async function doneGroups(
  client: ResearchClient,
  monitors: readonly string[],
  groups: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const [found] = await Promise.all([
    Promise.all(groups.map((id) => firstValueFrom(client.taskGroups.get(id, { signal })))),
    Promise.all(monitors.map((id) => firstValueFrom(client.monitors.get(id, { signal })))),
  ])
  const done = found.filter(({ status }) => !status.is_active && status.num_task_runs > 0)
  return new Set(done.map(({ taskgroup_id }) => taskgroup_id))
}

function webhookSecret(): string {
  const secret = process.env['RIVULET_WEBHOOK_SECRET']
  if (secret !== undefined && secret !== '') return secret
  throw new UsageError('RIVULET_WEBHOOK_SECRET is not set: webhooks cannot be verified without it')
}
