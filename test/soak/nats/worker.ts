/**
 * Runs what every worker of a log on NATS runs: receives webhooks, records all resources together with the others, shares a consumer with
 * them, and stands by for another consumer and a process.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { Entry, EventLog, LogJob, ProcessOptions, RecordOptions } from 'rivulet/log'
import { exactlyOnce } from 'rivulet/log/sqlite'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { natsStore } from '../../../src/log/nats/index.ts'
import { isCounted } from '../facts.ts'
import { openEffects } from '../open-effects.ts'
import { REPORTED, SOURCE_FAILED } from './messages.ts'
import type { StrikeOrder, WorkerReport, WorkerSettings, Write } from './messages.ts'
import { rollingHash } from './rolling-hash.ts'
import type { Totals } from './totals.ts'
import { HASH_BASIS, keyOfTotals, OUTPUT_EVERY } from './totals.ts'

type JobName = 'recording' | 'billing' | 'ledger' | 'totals'

// Without its supervisor it has nothing to do.
process.once('disconnect', () => process.exit())
const settings: WorkerSettings = JSON.parse(process.env['SOAK_WORKER'] ?? '')
const stopping = once(process, 'SIGTERM')
const send = (report: WorkerReport) => process.send?.(report)

/** How long a job waits that has failed, in ms. */
const PAUSE = 100

/** The jobs that run. */
const jobs = new Map<JobName, LogJob>()
const ended = new AbortController()

try {
  const { servers, lease, owner, maxAge } = settings
  const store = watched(natsStore({ servers, name: settings.log, lease, owner }))
  const log = await openLog(store, { retention: { maxAge } })
  const receiver = createWebhookReceiver({ secrets: settings.webhookSecret, inbox: log.inbox })
  const server = createServer(nodeListener(receiver)).listen(settings.port, '127.0.0.1')
  const failed = once(server, 'error').then(([error]) => Promise.reject(error))
  const running = jobsOf(log, receiver).map(([name, start]) => keepRunning(name, start))
  send({ what: 'started' })
  // The next process comes up sooner for it; this one may not live to write it at its end.
  flushCompileCache()
  await Promise.race([stopping, failed])
  ended.abort()
  receiver.close()
  server.close()
  server.closeAllConnections()
  for (const job of jobs.values()) void job.stop().catch(() => {})
  await Promise.all(running)
  await log.close()
  process.disconnect?.()
} catch (error) {
  // The server is down, so that the log cannot be opened, or not be closed.
  process.send?.(failureOf(error), () => process.exit(REPORTED))
}

/** Starts a job again when it has failed, until the worker is stopped. */
async function keepRunning(name: JobName, start: () => LogJob): Promise<void> {
  while (!ended.signal.aborted) {
    const job = start()
    jobs.set(name, job)
    try {
      await job.done
    } catch (error) {
      send(failureOf(error))
      await sleep(PAUSE)
    }
  }
}

function failureOf(error: unknown): WorkerReport {
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  return { what: 'failed', error: name, message }
}

/** What every worker runs: a recording and a consumer that are divided, a consumer and a process of which all but one stand by. */
function jobsOf(log: EventLog, receiver: WebhookReceiver): readonly (readonly [JobName, () => LogJob])[] {
  const { baseUrl, apiKey, groups, monitors, includeOutput, folder, slowest, slowEvery } = settings
  const { signal: wait } = new AbortController()
  const where = ({ type }: { readonly type: string }) => isCounted(type)

  const client = createClient({
    baseUrl,
    apiKey,
    initialDelay: 20,
    maxDelay: 500,
    timeouts: { silence: 1_000 },
  })
  const recordingOptions: RecordOptions = {
    taskGroups: groups.map((id) => ({ id, include_output: includeOutput })),
    monitors: monitors.map((id) => ({ id, pollInterval: 300 })),
    webhooks: receiver,
    tick: 1_000,
    share: 'soak',
    client,
  }

  const billing = openEffects(folder, 'billing')
  const called = billing.prepare('INSERT INTO calls (source, id, revision) VALUES (?, ?, ?)')
  const billed = billing.prepare('INSERT INTO effects (source, id, revision) VALUES (?, ?, ?)')
  const bill = async (entry: Entry) => {
    const { source, id, revision } = entry
    const hash = rollingHash(HASH_BASIS, entry)
    called.run(source, id, revision)
    await sleep(hash % slowEvery === 0 ? slowest : hash % 16)
    billed.run(source, id, revision)
  }

  const ledger = openEffects(folder, 'ledger')
  const booked = ledger.prepare('INSERT INTO effects (source, id, revision) VALUES (?, ?, ?)')
  const effect = ({ source, id, revision }: Entry) => void booked.run(source, id, revision)

  const totals: ProcessOptions<Totals> = {
    version: 1,
    where,
    key: keyOfTotals,
    init: () => ({ entries: 0, events: 0, hash: HASH_BASIS }),
    event(before, entry, context) {
      const entries = before.entries + 1
      const events = before.events + (entry.revision === 1 ? 1 : 0)
      const after = { entries, events, hash: rollingHash(before.hash, entry) }
      context.set(after)
      if (entries % OUTPUT_EVERY === 0)
        context.append({ type: 'unknown', data: { key: context.key, ...after } })
    },
    wait,
  }
  return [
    ['recording', () => log.record(recordingOptions)],
    ['billing', () => log.consume('billing', { where, concurrency: 8, share: true }, bill)],
    ['ledger', () => log.consume('ledger', { where, wait }, exactlyOnce(ledger, { effect }))],
    ['totals', () => log.process('totals', totals)],
  ]
}

/** The store, whose appends are counted, and within whose writes the worker is killed or suspended when it is ordered to. */
function watched(store: LogStore): LogStore {
  let order: StrikeOrder | undefined
  process.on('message', (message: StrikeOrder) => (order = message))
  const strike = (write: Write) => {
    if (order?.within !== write) return
    const { delay, signal, until } = order
    order = undefined
    const isDue = () => Date.now() < until
    if (isDue()) setTimeout(() => isDue() && process.kill(process.pid, signal), delay)
  }
  const append = store.append.bind(store)
  const commit = store.commit.bind(store)
  store.append = async (appends, done) => {
    strike('append')
    const appended = await append(appends, done)
    send({ what: 'appended', entries: appended.entries, duplicates: appended.duplicates })
    // Such a source is given up: with the next recording it is tried again.
    const failure = appends
      .flatMap(({ entries }) => entries)
      .find(({ event }) => event.type === 'source.failed')
    if (failure !== undefined) {
      send({ what: 'failed', error: SOURCE_FAILED, message: failure.event.source })
      void jobs
        .get('recording')
        ?.stop()
        .catch(() => {})
    }
    return appended
  }
  store.commit = (...of) => {
    strike('commit')
    return commit(...of)
  }
  return store
}
