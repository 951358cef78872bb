/**
 * A service that appends its orders from the first one at each start, stores them in batches exactly once, and posts each entry. Arguments:
 * the log's file, the file of the effects, the URL, and the number of orders. It runs until it is killed, or gets a message.
 */
import { flushCompileCache } from 'node:module'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { httpSink } from 'rivulet/webhooks'

const [file = '', effects = '', url = '', orders = ''] = process.argv.slice(2)
const log = await openLog(sqliteStore(file))
// It may be killed before its end, where Node would store this.
flushCompileCache()

const database = new DatabaseSync(effects, { timeout: 5_000 })
database.exec('PRAGMA journal_mode = WAL')
// Nothing in the table keeps a second row of an order out.
database.exec('CREATE TABLE IF NOT EXISTS stored (id TEXT NOT NULL)')
const insert = database.prepare('INSERT INTO stored VALUES (?)')

const settings = {
  initialDelay: 1,
  maxDelay: 10,
  deadLetters: 'log',
  wait: new AbortController().signal,
} as const
const rows = log.consume(
  'rows',
  {
    where: ({ source }) => source.startsWith('/orders/'),
    batch: { size: 8, wait: 5 },
    retries: 1,
    ...settings,
  },
  exactlyOnce(database, {
    effect: (entries) => {
      for (const { id } of entries) {
        insert.run(id)
        if (id.startsWith('bad')) throw new Error('a wrong order')
      }
    },
  }),
)
const posts = log.consume(
  'http',
  // A process that lives for more than a second records `log.tick` too.
  { where: ({ type }) => type !== 'log.tick', retries: Infinity, ...settings },
  httpSink({ url, secrets: 'secret of the sink' }),
)
const stopped = once(process, 'message')
const CHUNK = 3
for (let n = 0; n < Number(orders); n += CHUNK) {
  const events = Array.from({ length: CHUNK }, (_, i) => ({
    id: `${(n + i) % 30 === 7 ? 'bad' : 'good'}${n + i}`,
    source: `/orders/${(n + i) % 5}`,
    type: 'order.placed',
    data: { number: n + i },
  }))
  await log.append(events)
}
await stopped
await Promise.all([rows.stop(), posts.stop()])
await log.close()
process.disconnect()
