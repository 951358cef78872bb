import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from 'rivulet'
import { sqliteLog } from 'rivulet/log/sqlite'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately } from '../rounds.ts'
import { startServer } from '../server.ts'

const REQUESTS = 6_000
const SECRET = 'whsec_of_the_bench'

/** Receives webhooks and stores them in a file. */
interface Receiver {
  readonly listener: RequestListener
  /** The table of the inbox in the file. */
  readonly table: string
  close(): void | Promise<void>
}

type OpenReceiver = (file: string) => Receiver | Promise<Receiver>

/**
 * Webhooks per second, of 500 bytes: received, verified, stored in the inbox of a log in a file, then answered.
 * `createWebhookReceiver` with `log.inbox` behind `nodeListener`, against a `node:http` server with the same HMAC, rows and SQLite
 * settings, which groups commits by the same rule but does not parse the body or check the timestamp.
 *
 * Another process sends requests that are already signed, with unique ids, over 64 connections. Each round has a new file.
 */
export const measure: Measure = async (folder) => {
  await using sender = await startServer('webhook-sender')
  let files = 0
  const side = (open: OpenReceiver) => () => {
    files += 1
    return webhooksPerSecond(sender.url, open, join(folder, `${files}.db`))
  }
  const { ratio, ...details } = await alternately(side(openReceiver), side(openBareReceiver))
  return [result('webhooks', ratio, { atLeast: 0.85 }, { ...details, unit: 'webhooks/s' })]
}

async function webhooksPerSecond(sender: string, open: OpenReceiver, file: string): Promise<number> {
  const { listener, table, close } = await open(file)
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const response = await fetch(`${sender}/?port=${port}&requests=${REQUESTS}&secret=${SECRET}`)
  const answer = await response.text()
  if (!response.ok) throw new Error(answer)
  server.closeAllConnections()
  server.close()
  await close()
  expectCount(storedIn(file, table), REQUESTS, 'webhooks')
  return REQUESTS / Number(answer)
}

function storedIn(file: string, table: string): number {
  using database = new DatabaseSync(file)
  return Number(
    database.prepare(`SELECT count(*) AS rows FROM ${table} WHERE json_valid(payload)`).get()?.['rows'],
  )
}

async function openReceiver(file: string): Promise<Receiver> {
  const log = await openLog(sqliteLog(file))
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
