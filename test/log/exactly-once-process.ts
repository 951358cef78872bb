/**
 * A consumer with its effects in a database, several entries or batches prepared at once and ready in any order. Sends the number of effects
 * that it has begun, and `done` once so many are stored.
 */
import { flushCompileCache } from 'node:module'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from 'rivulet/log'
import type { Entry } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'

const [file = '', effects = '', expected = '', mode = ''] = process.argv.slice(2)
const database = new DatabaseSync(effects)
database.exec('PRAGMA journal_mode = WAL')
// Nothing in the table keeps a second effect of one entry out.
database.exec('CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL, revision INTEGER NOT NULL)')
const insert = database.prepare('INSERT INTO effect VALUES (?, ?)')
database.exec(`
  PRAGMA foreign_keys = ON;
  CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS booking (account TEXT REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED);
`)
const book = database.prepare('INSERT INTO booking VALUES (?)')
const count = database.prepare('SELECT COUNT(*) AS count FROM effect')
const log = await openLog(sqliteStore(file))
// It may be killed before its end, where Node would store this.
flushCompileCache()

const continued = new Promise<void>((resolve) => process.on('message', () => resolve()))
let applied = 0
let isChecking = false
const check = () => {
  isChecking = false
  if (Number(count.get()?.['count']) >= Number(expected)) process.send?.({ done: true })
}
/** The effect of one entry. */
const applyOne = ({ id, revision }: { readonly id: string; readonly revision: number }) => {
  insert.run(id, revision)
  process.send?.({ applied: (applied += 1) })
  if (!isChecking) setImmediate(check)
  isChecking = true
  // Each tenth fails for good at first, at once or at the commit, and is handed out again later.
  if (mode === 'violating' && id.endsWith('7')) book.run(id)
  if (mode.endsWith('failing') && id.endsWith('7'))
    throw Object.assign(new Error('not yet'), { retryable: false })
}
const inBatches = () =>
  exactlyOnce(database, {
    prepare: async (entries: readonly Entry[]) => {
      for (let turns = (entries.length * 7) % 5; turns > 0; turns--) await nextTurn()
    },
    effect: (entries: readonly Entry[]) => entries.forEach(applyOne),
  })
const handler = exactlyOnce(database, {
  prepare: async ({ id }: { readonly id: string }) => {
    if (mode === 'suspended') {
      process.send?.({ prepared: id })
      await continued
    }
    for (let turns = (id.length * 7) % 5; turns > 0; turns--) await nextTurn()
  },
  effect: applyOne,
})
const options = { deadLetters: 'log', retries: 0 } as const
const job = mode.startsWith('batches')
  ? log.consume(
      'ledger',
      { ...options, batch: { size: 40, wait: 5, key: ({ source }) => source } },
      inBatches(),
    )
  : log.consume('ledger', options, handler)
job.done.catch((error: Error) => {
  process.send?.({ failed: error.name })
  process.disconnect?.()
})
