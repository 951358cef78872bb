import type { Command } from 'commander'
import type { ResearchClient, ResearchEvent, WatchOptions } from 'rivulet'
import { dedupe, deliver, DrainTimeoutError } from 'rivulet/operators'
import { concat, EMPTY, filter } from 'rxjs'
import type { Observable } from 'rxjs'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { eventJson, eventLine } from './event-line.ts'
import { OutputClosed, UsageError } from './exit.ts'
import { doneGroups } from './done-groups.ts'
import type { Output } from './output.ts'
import { mergeByTime } from './merge-by-time.ts'
import { createProgress } from './progress.ts'
import type { Progress } from './progress.ts'
import { addSourceOptions, hasNoIds, sourceFields, watchedIds } from './source-options.ts'
import type { SourceOptions, WatchedIds } from './source-options.ts'
import { openWebhookEndpoint, webhookSecret } from './webhook-endpoint.ts'

interface WatchCommandOptions extends ConnectionOptions, SourceOptions {}

/** How long the current line may take to print when the command is ending, in ms. */
const DRAIN_TIMEOUT = 10_000

const EXAMPLES = `
It ends when every task group is done and every run has ended, unless it also watches monitors or webhooks. If one of them
fails permanently, it prints the failure, continues with the others, and ends with the exit code of the failure.

Groups that are already done are printed first, in the order of time. Other events are printed as they arrive. Nothing is
stored: the next start prints the same events again. To resume, use rivulet record --log, and read the log.

Ctrl-C or SIGTERM ends it after the current line, or after ${DRAIN_TIMEOUT / 1_000} s; a second one ends it immediately.

Examples:
  $ rivulet watch --monitor monitor_123
  $ rivulet watch --group tgrp_1 --group tgrp_2 --json | jq -c 'select(.type == "task_run.state") | .data.output'
  $ rivulet watch --run trun_1 --find-all findall_1
  $ RIVULET_WEBHOOK_SECRET=… rivulet watch --monitor monitor_123 --webhook-port 3000`

/** `rivulet watch`: monitors, task groups, single runs, FindAll runs and webhooks as one stream of events. */
export function addWatch(program: Command, signal: AbortSignal): void {
  const command = program
    .command('watch')
    .description(
      'Follow monitors, task groups, runs, FindAll runs and webhooks as one stream of events, each once.',
    )
  addConnectionOptions(addSourceOptions(command, 'follow'), 'print each event as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: WatchCommandOptions) => {
      await watch(options, signal)
      signal.throwIfAborted()
    })
}

/** Resolves when everything is closed, after the last event or after the signal aborts. */
async function watch(options: WatchCommandOptions, signal: AbortSignal): Promise<void> {
  const { webhookPort: port, webhookHost: host } = options
  const ids = watchedIds(options)
  if (hasNoIds(ids) && port === undefined) {
    throw new UsageError('nothing to watch: use --monitor, --group, --run, --find-all or --webhook-port')
  }
  // Without the signal for the output: the current line is written to its end.
  const { client, log, output } = connect(options)
  const secret = port === undefined ? '' : webhookSecret()

  const done = await doneGroups(client, ids, signal)
  await using endpoint = port === undefined ? undefined : await openWebhookEndpoint(secret, { port, host })
  if (endpoint !== undefined) log.info({ url: endpoint.url }, 'receiving webhooks')
  // Logged, since the first event may take an hour.
  if (!hasNoIds(ids)) log.info(sourceFields(ids), 'watching')

  const webhooks = endpoint?.receiver
  const progress = createProgress()
  let failure: Error | undefined
  const handle = (event: ResearchEvent) => {
    if (event.type === 'source.failed') failure ??= event.data.error
    return print(event, output, progress)
  }
  try {
    const watched = { ...ids, ...(webhooks !== undefined && { webhooks }) }
    await doneFirst(client, watched, done)
      .pipe(
        deliver(handle, {
          concurrency: 1,
          // A failed print is not retryable.
          retries: 0,
          signal,
          drainTimeout: DRAIN_TIMEOUT,
        }),
      )
      .forEach(() => {})
  } catch (error) {
    if (error instanceof OutputClosed) return
    if (!(error instanceof DrainTimeoutError)) throw error
    log.warn('the last line was not written: it may be truncated')
    // The error without a cause is due to the signal.
    if (error.cause !== undefined) throw error.cause
  } finally {
    progress.stop()
  }
  // Already printed; thrown for the exit code.
  if (failure !== undefined) throw failure
}

/** Resolves once the event is written. */
async function print(event: ResearchEvent, output: Output, progress: Progress): Promise<void> {
  if (output.json) return output.value(eventJson(event))
  progress.take(event)
  await progress.aside(() => output.line(eventLine(event, output)))
}

/** Emits the events of done groups in the order of time, then all others. A done group has its events in two finite streams. */
function doneFirst(
  client: ResearchClient,
  watched: Pick<WatchOptions, 'webhooks'> & WatchedIds,
  done: ReadonlySet<string>,
): Observable<ResearchEvent> {
  const past = [...done].flatMap((id) => [
    client.taskGroups.runs(id, { include_output: true }),
    // The runs stream has the same runs, with their outputs.
    client.taskGroups.events(id).pipe(filter(({ type }) => type !== 'task_run.state')),
  ])
  const taskGroups = watched.taskGroups.filter((id) => !done.has(id))
  const open = { ...watched, taskGroups }
  const { webhooks, ...ids } = open
  const rest = hasNoIds(ids) && webhooks === undefined ? EMPTY : client.watch(open)
  // A webhook may duplicate an event of a done group.
  return past.length === 0 ? rest : concat(mergeByTime(past), rest).pipe(dedupe())
}
