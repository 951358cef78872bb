import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { sqliteStore } from 'rivulet/log/sqlite'
import { detection, fillLog } from '../filled-log.ts'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately, perSecond } from '../rounds.ts'

const ENTRIES = 100_000
const KEYS = 1_000
/** Entries in a transaction: as many as a process reads at once. */
const BATCH = 500

/**
 * `process`: entries per second through a process that counts them by key, 1,000 keys, against the same statements by hand: pages of
 * 500 entries, `JSON.parse` of each, and one synced transaction for each page with the cursor and the state of each key that
 * changed.
 */
export const measure: Measure = async (folder) => {
  const filled = join(folder, 'filled.db')
  await fillLog(filled, ENTRIES, (number) => detection(number, `monitor_${number % KEYS}`))
  let files = 0
  const copied = () => {
    const file = join(folder, `${(files += 1)}.db`)
    copyFileSync(filled, file)
    return file
  }
  const ours = async () => {
    const log = await openLog(sqliteStore(copied()))
    const rate = await perSecond(ENTRIES, async () => {
      let seen = 0
      const all = Promise.withResolvers<void>()
      const counting = log.process('count', {
        version: 1,
        key: ({ source }) => source,
        init: () => ({ count: 0 }),
        event: ({ count }, _entry, context) => {
          context.set({ count: count + 1 })
          seen += 1
          if (seen === ENTRIES) all.resolve()
        },
      })
      await Promise.race([all.promise, counting.done])
      await counting.stop()
    })
    const { state } = await log.state<{ readonly count: number }>('count').snapshot()
    expectCount(
      [...state.values()].reduce((sum, { count }) => sum + count, 0),
      ENTRIES,
    )
    await log.close()
    return rate
  }
  const theirs = async () => {
    const database = new DatabaseSync(copied())
    const rate = await perSecond(ENTRIES, async () => expectCount(await countByHand(database), ENTRIES))
    database.close()
    return rate
  }
  const { ratio, ...details } = await alternately(ours, theirs, { rounds: 5, warmUp: 1 })
  return [result('process', ratio, { atLeast: 0.6 }, { ...details, unit: 'entries/s' })]
}

async function countByHand(database: DatabaseSync): Promise<number> {
  database.exec(`
    PRAGMA synchronous = FULL;
    CREATE TABLE state (key TEXT PRIMARY KEY, change INTEGER NOT NULL, state TEXT) WITHOUT ROWID, STRICT;
    CREATE INDEX state_by_change ON state (change);
    CREATE TABLE cursor (one INTEGER PRIMARY KEY, position INTEGER NOT NULL) STRICT;
  `)
  const read = database.prepare('SELECT * FROM rivulet_entry WHERE position > ? ORDER BY position LIMIT ?')
  const find = database.prepare('SELECT state FROM state WHERE key = ?')
  const save = database.prepare(
    'INSERT INTO state VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET change = excluded.change, state = excluded.state',
  )
  const move = database.prepare('INSERT OR REPLACE INTO cursor VALUES (1, ?)')
  let position = 0
  let change = 0
  let total = 0
  for (;;) {
    await turn()
    const rows = read.all(position, BATCH)
    if (rows.length === 0) return total
    const counts = new Map<string, number>()
    for (const row of rows) {
      const event: ResearchEvent = JSON.parse(String(row['event']))
      const { source } = event
      let count = counts.get(source)
      if (count === undefined) {
        const state: { readonly count: number } = JSON.parse(
          String(find.get(source)?.['state'] ?? '{"count":0}'),
        )
        ;({ count } = state)
      }
      counts.set(source, count + 1)
      total += 1
      position = Number(row['position'])
    }
    database.exec('BEGIN IMMEDIATE')
    for (const [key, count] of counts) save.run(key, (change += 1), JSON.stringify({ count }))
    move.run(position)
    database.exec('COMMIT')
  }
}
