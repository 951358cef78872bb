/**
 * Runs what every worker of a log on NATS runs: receives webhooks, records all resources together with the others, and stands by for two
 * consumers and a process. It ends when a job fails; its supervisor starts it again.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, openLog } from 'rivulet'
import type { Entry, EventLog, LogJob } from 'rivulet'
import { exactlyOnce } from 'rivulet/log/sqlite'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { natsLog } from '../../../src/log/nats-log.ts'
import { isCounted } from '../facts.ts'
import { openEffects } from '../open-effects.ts'
import type { StrikeOrder, WorkerReport, WorkerSettings, Write } from './messages.ts'
import { rollingHash } from './rolling-hash.ts'
import type { Totals } from './totals.ts'
import { HASH_BASIS, keyOfTotals, OUTPUT_EVERY } from './totals.ts'

const settings: WorkerSettings = JSON.parse(process.env['SOAK_WORKER'] ?? '')
const stopping = once(process, 'SIGTERM')
const send = (report: WorkerReport) => process.send?.(report)
const failed = Promise.withResolvers<never>()

/** By its name, the supervisor sees that it is a failure that the service was to cause. */
class SourceFailed extends Error {
  override readonly name = 'SourceFailed'
}

const { servers, lease, owner } = settings
let opened: EventLog | undefined
try {
  const log = await openLog(watched(natsLog({ servers, name: settings.log, lease, owner })))
  opened = log
  const receiver = createWebhookReceiver({ secrets: settings.webhookSecret, inbox: log.inbox })
  const server = createServer(nodeListener(receiver)).listen(settings.port, '127.0.0.1')
  server.once('error', failed.reject)
  const jobs = jobsOf(log, receiver)
  for (const { done } of jobs) done.catch(failed.reject)
  send({ what: 'started' })
  // The next process comes up sooner for it; this one may not live to write it at its end.
  flushCompileCache()
  await Promise.race([stopping, failed.promise])
  receiver.close()
  server.close()
  server.closeAllConnections()
  await Promise.all(jobs.map((job) => job.stop()))
  await log.close()
  process.disconnect?.()
} catch (error) {
  // What it cannot save, it has not acknowledged.
  await opened?.close().catch(() => {})
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  process.send?.({ what: 'failed', error: name, message } satisfies WorkerReport, () => process.exit(1))
}

/** What every worker runs. */
function jobsOf(log: EventLog, receiver: WebhookReceiver): readonly LogJob[] {
  const { baseUrl, apiKey, groups, monitors, includeOutput, folder } = settings
  const { signal: wait } = new AbortController()
  const where = ({ type }: { readonly type: string }) => isCounted(type)

  const client = createClient({
    baseUrl,
    apiKey,
    initialDelay: 20,
    maxDelay: 500,
    timeouts: { silence: 1_000 },
  })
  const recording = client.record({
    taskGroups: groups.map((id) => ({ id, include_output: includeOutput })),
    monitors: monitors.map((id) => ({ id, pollInterval: 300 })),
    webhooks: receiver,
    tick: 1_000,
    share: 'soak',
    log,
  })

  const billing = openEffects(folder, 'billing')
  const called = billing.prepare('INSERT INTO calls (source, id, revision) VALUES (?, ?, ?)')
  const billed = billing.prepare('INSERT INTO effects (source, id, revision) VALUES (?, ?, ?)')
  const atLeastOnce = log.consume(
    'billing',
    { where, concurrency: 8, wait },
    async ({ source, id, revision }) => {
      called.run(source, id, revision)
      await sleep((id.codePointAt(id.length - 12) ?? 0) % 16)
      billed.run(source, id, revision)
    },
  )

  const ledger = openEffects(folder, 'ledger')
  const booked = ledger.prepare('INSERT INTO effects (source, id, revision) VALUES (?, ?, ?)')
  const effect = ({ source, id, revision }: Entry) => void booked.run(source, id, revision)
  const exactly = log.consume('ledger', { where, wait }, exactlyOnce(ledger, { effect }))

  const totals = log.process<Totals>('totals', {
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
  })
  return [recording, atLeastOnce, exactly, totals]
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
    // A source that failed is for the supervisor: with the next process it is tried again.
    const failure = appends
      .flatMap(({ entries }) => entries)
      .find(({ event }) => event.type === 'source.failed')
    if (failure !== undefined) failed.reject(new SourceFailed(failure.event.source))
    return appended
  }
  store.commit = (...of) => {
    strike('commit')
    return commit(...of)
  }
  return store
}
