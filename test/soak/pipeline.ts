/** The process that is killed: everything that `watch` can do, into a file and a transactional sink. */
import { openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, openCheckpoint } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { deliver } from 'rivulet/operators'
import { sqliteCheckpointStore, sqliteInbox } from 'rivulet/state/sqlite'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import { tap } from 'rxjs'
import { isCounted } from './audit.ts'
import type { PipelineReport, PipelineSettings } from './messages.ts'

const settings: PipelineSettings = JSON.parse(process.env['SOAK_PIPELINE'] ?? '')
const { baseUrl, apiKey, webhookSecret, group, monitor, state, handled, port, concurrency } = settings

const database = new DatabaseSync(state, { timeout: 5_000 })
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
// No constraint keeps a second effect of the same event out: it is to be seen.
database.exec(
  'CREATE TABLE IF NOT EXISTS effects (id TEXT NOT NULL, source TEXT NOT NULL, type TEXT NOT NULL) STRICT',
)
const insert = database.prepare('INSERT INTO effects VALUES (?, ?, ?)')

const store = sqliteCheckpointStore(database)
const checkpoint = await openCheckpoint(store)
const receiver = createWebhookReceiver({ secrets: webhookSecret, inbox: sqliteInbox(database) })
const server = createServer(nodeListener(receiver)).listen(port, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))

const file = openSync(handled, 'a')
const note = ({ id, source, type }: ResearchEvent) => writeSync(file, `${type} ${source} ${id}\n`)
const effect = ({ id, source, type }: ResearchEvent) => insert.run(id, source, type)
// By the event, so that a run can be repeated: several are in flight at once and end in another order than they began.
const patience = ({ id }: ResearchEvent) => {
  const last = id.codePointAt(id.length - 12) ?? 0
  return last % 16 === 0 ? 60 : last % 8
}

function carefulHandler() {
  const effectOnce = store.exactlyOnce(effect)
  return async (event: ResearchEvent) => {
    note(event)
    await sleep(patience(event))
    effectOnce(event)
  }
}

function carelessHandler() {
  return (event: ResearchEvent) => {
    note(event)
    setTimeout(() => effect(event), 500)
  }
}

const client = createClient({
  baseUrl,
  apiKey,
  initialDelay: 20,
  maxDelay: 500,
  timeouts: { silence: 1_000 },
})
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())
let count = 0
const report = () =>
  process.send?.({ count, rssMb: process.resourceUsage().maxRSS / 1024 } satisfies PipelineReport)
const reporting = setInterval(report, 20)
// The next process comes up sooner for it; this one may not live to write it at its end.
flushCompileCache()

client
  .watch({
    taskGroups: [group],
    monitors: [{ id: monitor, pollInterval: 100 }],
    webhooks: receiver,
    checkpoint,
  })
  .pipe(
    tap((event) => {
      // A source that failed is for the supervisor: with the next process it is tried again.
      if (event.type === 'source.failed') throw event.data.error
    }),
    deliver(settings.careless ? carelessHandler() : carefulHandler(), {
      concurrency,
      checkpoint,
      signal: stopping.signal,
    }),
  )
  .subscribe({
    next({ type }) {
      if (!isCounted(type)) return
      count += 1
      if (count % 50 === 0) report()
    },
    error(error: unknown) {
      process.stderr.write(`the pipeline ended: ${String(error)}\n`)
      process.exit(1)
    },
    complete() {
      clearInterval(reporting)
      receiver.close()
      server.close()
      server.closeAllConnections()
      void checkpoint.close().then(() => process.disconnect?.())
    },
  })
