/**
 * Receives webhooks in one of four ways, `webhook-receiver.ts {way} {folder}`: `inbox` and `inbox-by-hand` store them in a file, `memory` and
 * `memory-by-hand` deliver them. `GET /?sender={url}` measures it once, and returns how many there were for each second of processor time.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import { receiveWebhooksByHand } from '../by-hand/webhooks.ts'
import { expectCount } from '../expect-count.ts'
import { perProcessorSecond } from '../rounds.ts'
import { listen } from '../server.ts'

const WEBHOOKS = 6_000
const SECRET = 'whsec_of_the_bench'

/** One in so many is sent again to the receivers in memory. */
const AGAIN = 10

/** Receives webhooks and stores them in a file. */
interface Receiver {
  readonly listener: RequestListener
  /** The table of the inbox in the file. */
  readonly table: string
  close(): void | Promise<void>
}

type OpenReceiver = (file: string) => Receiver | Promise<Receiver>

/** Receives webhooks in memory, and calls `onDelivery` with the id of each. */
type OpenInMemory = (onDelivery: (id: string) => void) => RequestListener

const [way, folder = ''] = process.argv.slice(2)
let files = 0

/** Measures this way of receiving once. */
const WAYS: Readonly<Record<string, (sender: string) => Promise<number>>> = {
  inbox: (sender) => stored(openReceiver, sender),
  'inbox-by-hand': (sender) => stored(openBareReceiver, sender),
  memory: (sender) =>
    delivered((onDelivery) => {
      const receiver = createWebhookReceiver({ secrets: SECRET })
      receiver.deliveries.subscribe(({ id }) => onDelivery(id))
      return nodeListener(receiver)
    }, sender),
  'memory-by-hand': (sender) =>
    delivered((onDelivery) => receiveWebhooksByHand(SECRET, ({ id }) => onDelivery(id)), sender),
}

const measure = WAYS[way ?? '']
if (measure === undefined) throw new Error(`there is no way ${way}`)
listen(
  createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://localhost')
    measure(searchParams.get('sender') ?? '').then(
      (rate) => response.end(String(rate)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  }),
)

/** Each time with a new file. */
async function stored(open: OpenReceiver, sender: string): Promise<number> {
  files += 1
  const file = join(folder, `${way}-${files}.db`)
  const { listener, table, close } = await open(file)
  const rate = await sendTo(listener, sender)
  await close()
  expectCount(storedIn(file, table), WEBHOOKS, 'webhooks')
  return rate
}

async function delivered(open: OpenInMemory, sender: string): Promise<number> {
  const ids: string[] = []
  const rate = await sendTo(
    open((id) => ids.push(id)),
    sender,
    AGAIN,
  )
  expectCount(ids.length, WEBHOOKS, 'deliveries')
  expectCount(new Set(ids).size, WEBHOOKS, 'webhooks')
  return rate
}

/** The rate of a receiver. One in `again` is sent twice. */
async function sendTo(listener: RequestListener, sender: string, again = Infinity): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const rate = await perProcessorSecond(WEBHOOKS, async () => {
    const query = `port=${port}&webhooks=${WEBHOOKS}&again=${again}&secret=${SECRET}`
    const response = await fetch(`${sender}/?${query}`)
    if (!response.ok) throw new Error(await response.text())
    await response.text()
  })
  server.closeAllConnections()
  server.close()
  return rate
}

function storedIn(file: string, table: string): number {
  using database = new DatabaseSync(file)
  return Number(
    database.prepare(`SELECT count(*) AS rows FROM ${table} WHERE json_valid(payload)`).get()?.['rows'],
  )
}

async function openReceiver(file: string): Promise<Receiver> {
  const log = await openLog(sqliteStore(file))
  const receiver = createWebhookReceiver({ secrets: SECRET, inbox: log.inbox })
  return {
    listener: nodeListener(receiver),
    table: 'rivulet_webhook',
    close() {
      receiver.close()
      return log.close()
    },
  }
}

/** As in a log: the longest delay of a commit while webhooks keep arriving, in ms. */
const MAX_GATHERING = 5

interface Waiting {
  readonly id: string
  readonly timestamp: number
  readonly payload: string
  readonly response: ServerResponse
}

function openBareReceiver(file: string): Receiver {
  const database = new DatabaseSync(file)
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE inbox (seq INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, payload TEXT NOT NULL) STRICT;
    CREATE TABLE inbox_id (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, received INTEGER NOT NULL) STRICT;
  `)
  const insert = database.prepare('INSERT INTO inbox VALUES (?, ?, ?)')
  const insertId = database.prepare('INSERT INTO inbox_id VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING')
  let seq = 0
  let waiting: Waiting[] = []

  const commit = () => {
    const burst = waiting
    waiting = []
    const now = Date.now()
    database.exec('BEGIN IMMEDIATE')
    for (const { id, timestamp, payload } of burst) {
      seq += 1
      if (insertId.run(seq, id, now).changes === 1) insert.run(seq, timestamp, payload)
    }
    database.exec('COMMIT')
    for (const { response } of burst) response.writeHead(204).end()
  }
  const commitSoon = () => {
    const latest = performance.now() + MAX_GATHERING
    const gather = (known: number) => {
      if (waiting.length === known || performance.now() >= latest) commit()
      else setImmediate(gather, waiting.length)
    }
    setImmediate(gather, 0)
  }

  return {
    table: 'inbox',
    close: () => database.close(),
    listener(request, response) {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks)
        const {
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': claimed,
        } = request.headers
        const hmac = createHmac('sha256', SECRET)
          .update(`${String(id)}.${String(timestamp)}.`)
          .update(body)
        const signature = Buffer.from(`v1,${hmac.digest('base64')}`)
        if (!timingSafeEqual(signature, Buffer.from(String(claimed)))) return response.writeHead(401).end()
        const entry = { id: String(id), timestamp: Number(timestamp), payload: body.toString(), response }
        if (waiting.push(entry) === 1) commitSoon()
      })
    },
  }
}
