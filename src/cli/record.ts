import type { Command } from 'commander'
import { RequestError } from 'rivulet'
import { LogInUseError } from 'rivulet/log'
import type { ResearchClient } from 'rivulet'
import type { EventLog, LogObserver } from 'rivulet/log'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { doneGroups } from './done-groups.ts'
import { RecordedElsewhere, UsageError } from './exit.ts'
import { invocation } from './invocation.ts'
import { LOG_OPTION, openLogAt } from './opened-log.ts'
import { errorFields } from './log.ts'
import type { Logger } from './log.ts'
import { byteSize, timeSpan } from './options.ts'
import { addSourceOptions, hasNoIds, sourceFields, watchedIds } from './source-options.ts'
import type { SourceOptions, WatchedIds } from './source-options.ts'
import { openWebhookEndpoint, webhookSecret } from './webhook-endpoint.ts'
import { createProgress } from './progress.ts'
import type { Progress } from './progress.ts'

interface RecordCommandOptions extends ConnectionOptions, SourceOptions {
  readonly log: string
  readonly webhooks?: boolean
  readonly wait?: boolean
  readonly share?: string
  readonly name?: string
  readonly maxAge?: number
  readonly maxSize?: number
}

/** How long the service may take to name the sources, in ms. After that, the recording begins without their names. */
const CHECK_TIMEOUT = 5_000

const EXAMPLES = `
The log is created if it is missing: a file, or streams of a NATS server. Each source resumes after its last recorded event, and nothing is recorded
twice. A run that has ended is recorded once. Any number of processes can read the log meanwhile, with "rivulet log" or with the library.

It ends when every task group is done and every run has ended, unless it also records monitors or webhooks. Webhooks are
stored in the log before they are answered. If a source fails permanently, it logs and records the failure, continues with the
others, and ends with the exit code of the failure. A service that cannot be reached is waited for, also at the start.

Only one process at a time can record a source into a log: another one ends with exit code 6, or waits with --wait. With
--share, processes that are given the same name and the same sources divide these among them, and run until they are stopped. The log of a
NATS server divides them evenly. In a file, one process records and the others stand by.

Processes that record different sources into one log need different names: --name. The log keeps under it how far the recording is, and
event time waits for a recording that has stopped: remove it with "rivulet log remove-reader --recording" if it does not come back.

Ctrl-C or SIGTERM ends it after the events that were received are stored; a second one ends it immediately.

Examples:
  $ rivulet record --log rivulet.db --monitor monitor_123
  $ rivulet record --log rivulet.db --group tgrp_1 --group tgrp_2
  $ rivulet record --log rivulet.db --run trun_1 --find-all findall_1
  $ rivulet record --log nats://localhost:4222/watch --monitor monitor_123
  $ rivulet record --log nats://localhost:4222/watch --share all --monitor monitor_1 --monitor monitor_2
  $ RIVULET_WEBHOOK_SECRET=… rivulet record --log rivulet.db --monitor monitor_123 --webhook-port 3000
  $ rivulet log tail --log rivulet.db`

/** `rivulet record`: monitors, task groups, single runs and FindAll runs into an event log. */
export function addRecord(program: Command, signal: AbortSignal): void {
  const command = program
    .command('record')
    .description('Record monitors, task groups, runs and FindAll runs into an event log, each event once.')
    .requiredOption(...LOG_OPTION)
  addSourceOptions(command, 'record')
    .option('--webhooks', 'record the webhooks that another process receives into the log')
    .option('--max-age <time>', 'delete older entries, such as 30d (default: none)', timeSpan)
    .option('--max-size <size>', 'delete the oldest entries above this size (default: 8 GiB)', byteSize)
    .option('--wait', 'wait while another process records one of them, instead of an error')
    .option('--share <name>', 'divide them with the other processes that have this name here')
    .option('--name <name>', 'the name of the recording in the log (default: that of --share, or main)')
  addConnectionOptions(command, 'print, at the end, the number of recorded entries as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: RecordCommandOptions) => {
      await record(options, signal)
      signal.throwIfAborted()
    })
}

/** Resolves when everything is stored and closed, after the last event or after the signal aborts. */
async function record(options: RecordCommandOptions, signal: AbortSignal): Promise<void> {
  const { log: file, wait = false, share, name, maxAge, maxSize } = options
  const ids = watchedIds(options)
  const { webhookPort: port, webhookHost: host, webhooks: areReceivedElsewhere = false } = options
  const hasWebhooks = port !== undefined || areReceivedElsewhere
  if (hasNoIds(ids) && !hasWebhooks) {
    throw new UsageError(
      'nothing to record: use --monitor, --group, --run, --find-all, --webhook-port or --webhooks',
    )
  }
  const secret = port === undefined ? '' : webhookSecret()
  // Without the signal for the output, since the last line is printed after it.
  const { client, log, output } = connect(options)
  await checkSources(client, ids, log, signal)
  await using opened = await openLogAt(file, {
    retention: {
      ...(maxAge !== undefined && { maxAge }),
      ...(maxSize !== undefined && { maxBytes: maxSize }),
    },
  })
  await using endpoint =
    port === undefined
      ? undefined
      : await openWebhookEndpoint(secret, { port, host, inbox: opened.log.inbox })
  if (endpoint !== undefined) log.info({ url: endpoint.url }, 'receiving webhooks')
  log.info({ log: file, ...sourceFields(ids) }, 'recording')
  const progress = createProgress()
  const counted = countEntries(opened.log, log, progress)
  const job = opened.log.record({
    client,
    ...(!hasNoIds(ids) && ids),
    ...(hasWebhooks && { webhooks: endpoint?.receiver ?? true }),
    ...(wait && { wait: signal }),
    ...(share !== undefined && { share }),
    ...(name !== undefined && { name }),
  })
  const stop = () => void job.stop().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    await job.done
  } catch (error) {
    throw error instanceof LogInUseError ? new RecordedElsewhere(error) : error
  } finally {
    signal.removeEventListener('abort', stop)
    progress.stop()
  }
  const { entries, duplicates, failure } = counted
  if (output.json) {
    await output.value({ entries, duplicates })
  } else {
    const known = duplicates === 0 ? '' : `, ${duplicates} were known`
    await output.line(`${entries} ${entries === 1 ? 'entry' : 'entries'} recorded${known}.`)
    await output.hint(`Read them: ${invocation()} log read --log ${file}`)
  }
  // Already logged; thrown for the exit code.
  if (failure !== undefined) throw failure
}

/**
 * A wrong key or id fails immediately, and creates no file. A service that cannot be reached does not: the recording waits for it,
 * and receives webhooks meanwhile.
 */
async function checkSources(
  client: ResearchClient,
  ids: WatchedIds,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const timeout = AbortSignal.timeout(CHECK_TIMEOUT)
  try {
    await doneGroups(client, ids, AbortSignal.any([signal, timeout]))
  } catch (error) {
    signal.throwIfAborted()
    const mayBeReachable = error instanceof RequestError && error.retryable
    if (!mayBeReachable && !timeout.aborted) throw error
    const problem = error instanceof RequestError ? errorFields(error) : { error: 'no answer' }
    log.warn(problem, 'recording begins when the service can be reached')
  }
}

interface Counted {
  readonly entries: number
  readonly duplicates: number
  /** Why the first source failed permanently. */
  readonly failure: Error | undefined
}

/** Counts the recorded entries, shows the progress of groups, and logs the sources that fail. */
function countEntries(recorded: EventLog, log: Logger, progress: Progress): Counted {
  const counted: { -readonly [Key in keyof Counted]: Counted[Key] } = {
    entries: 0,
    duplicates: 0,
    failure: undefined,
  }
  const observer: LogObserver = {
    async append(given, proceed) {
      const appended = await proceed()
      // What the clock of the log adds is nothing that was recorded.
      counted.entries += appended.entries - given.filter(({ event }) => event.type === 'log.tick').length
      counted.duplicates += appended.duplicates
      for (const { event } of given) {
        progress.take(event)
        if (event.type !== 'source.failed') continue
        counted.failure ??= event.data.error
        log.error({ source: event.source, ...errorFields(event.data.error) }, 'failed for good')
      }
      return appended
    },
  }
  recorded.observe(observer)
  return counted
}
