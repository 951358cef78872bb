import { setTimeout as delay } from 'node:timers/promises'
import { LogFileError } from '../errors.ts'
import { isOfSource, isWebhookOfSource } from '../state/of-source.ts'
import type { LogFile } from './log-file.ts'
import type { Transactions } from './open-log.ts'

/** How many rows one step looks at, and the size of the texts after which it ends, in bytes. */
const STEP_ROWS = 2_000
const STEP_BYTES = 2 * 1024 * 1024

/** How many rows one transaction deletes. */
const DELETED_AT_ONCE = 300

/** The size of what is written over free space at once, in bytes, and how often in one transaction. */
const LARGE_FILL = 256 * 1024
const SMALL_FILL = 3_500
const FILLS = 8

/** How often the write-ahead log is tried to be emptied, and how long between two attempts, in ms. */
const ATTEMPTS = 100
const ATTEMPT_INTERVAL = 50

/**
 * Number of passes over the entries. Before an entry is deleted, a process may append because of it, and another process because of
 * that output: each pass finds one more process of such a chain. A log allows 16 of them.
 */
const MAX_PASSES = 18

/** A table whose rows may be of a source. */
interface Table {
  readonly name: string
  readonly key: string
  readonly text: string
  /** Whether the text is the JSON that this library has made of an event. */
  readonly isEvent: boolean
}

const ENTRIES: Table = { name: 'rivulet_entry', key: 'position', text: 'event', isEvent: true }
const OTHERS: readonly Table[] = [
  { name: 'rivulet_dead_letter', key: 'rowid', text: 'event', isEvent: true },
  { name: 'rivulet_webhook', key: 'number', text: 'payload', isEvent: false },
]

/** Deletes what the log has of a source, so that its text is no longer in the file. Returns the number of entries. */
export async function forget(transactions: Transactions, source: string): Promise<number> {
  const entries = await forgetEntries(transactions, source)
  for (const table of OTHERS) await forgetIn(transactions, table, source)
  while (await transactions.write('NORMAL', ({ file }) => overwriting(file, fillFreeSpace)));
  while (await transactions.write('NORMAL', ({ file }) => overwriting(file, freeFilledSpace)));
  await emptyWal(transactions)
  return entries
}

async function forgetEntries(transactions: Transactions, source: string): Promise<number> {
  let entries = 0
  let behind = -1
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const { deleted, last } = await forgetIn(transactions, ENTRIES, source, behind)
    entries += deleted
    behind = last
    // From now on, nothing can be appended because of a deleted entry.
    if (deleted === 0) break
  }
  return entries
}

/** Deletes rows of the source. Returns their number, and the last row that was looked at. */
async function forgetIn(transactions: Transactions, table: Table, source: string, behind = -1) {
  let deleted = 0
  let after = behind
  // Entries that are appended meanwhile are left out: a recorder that goes on would keep this from ending.
  const last = await transactions.read(({ file }) => lastOf(file, table))
  while (after < last) {
    const { bound, keys } = await transactions.read(({ file }) => find(file, table, source, after))
    for (let from = 0; from < keys.length; from += DELETED_AT_ONCE) {
      const some = keys.slice(from, from + DELETED_AT_ONCE)
      // Synced, so that deleted entries do not come back with a power cut once the deletion was reported.
      deleted += await transactions.write('FULL', ({ file }) => remove(file, table, some))
    }
    after = bound ?? last
  }
  return { deleted, last: Math.max(last, behind) }
}

function lastOf({ database }: LogFile, { name, key }: Table): number {
  return Number(database.prepare(`SELECT coalesce(max(${key}), -1) AS last FROM ${name}`).get()?.['last'])
}

/** The rows of the source among the next ones, and the last one that was looked at; undefined at the end. */
function find({ database }: LogFile, { name, key, text, isEvent }: Table, source: string, after: number) {
  const sizes = database
    .prepare(
      `SELECT ${key} AS key, octet_length(${text}) AS bytes FROM ${name} WHERE ${key} > ? ORDER BY ${key} LIMIT ?`,
    )
    .iterate(after, STEP_ROWS)
  let bytes = 0
  let bound: number | undefined
  for (const row of sizes) {
    if (bound !== undefined && bytes + Number(row['bytes']) > STEP_BYTES) break
    bytes += Number(row['bytes'])
    bound = Number(row['key'])
  }
  // As `JSON.stringify` has written it. So most rows are not parsed.
  const part = isEvent ? JSON.stringify(source) : ''
  const rows = database
    .prepare(
      `SELECT ${key} AS key, ${text} AS text FROM ${name} WHERE ${key} > ? AND ${key} <= ? AND instr(${text}, ?) > 0`,
    )
    .all(after, bound ?? after, part)
  const isWanted = isEvent ? isOfSource : isWebhookOfSource
  return {
    bound,
    keys: rows.filter((row) => isWanted(String(row['text']), source)).map((row) => Number(row['key'])),
  }
}

function remove(file: LogFile, { name, key, text }: Table, keys: readonly number[]): number {
  return overwriting(file, ({ database }) => {
    const isDeadLetter = name === 'rivulet_dead_letter'
    if (isDeadLetter) {
      const mark = database.prepare(
        `DELETE FROM rivulet_redelivery WHERE (reader, position) IN
         (SELECT reader, position FROM rivulet_dead_letter WHERE rowid = ?)`,
      )
      for (const each of keys) mark.run(each)
    }
    const statement = database.prepare(
      `DELETE FROM ${name} WHERE ${key} = ? RETURNING octet_length(${text}) AS bytes`,
    )
    const sizes = keys.flatMap((each) => statement.all(each)).map((row) => Number(row['bytes']))
    if (name === 'rivulet_entry') {
      database.prepare('UPDATE rivulet_log SET entries = entries - ?').run(sizes.length)
    }
    if (name === 'rivulet_webhook') {
      const bytes = sizes.reduce((sum, each) => sum + each, 0)
      database
        .prepare('UPDATE rivulet_inbox SET pending = pending - ?, bytes = bytes - ?')
        .run(sizes.length, bytes)
    }
    return sizes.length
  })
}

/** Fills some of the free space with zeros. Returns whether there is more. */
function fillFreeSpace({ database }: LogFile): boolean {
  const free = database.prepare('PRAGMA freelist_count')
  const size = database.prepare('PRAGMA page_size').get()
  const fill = database.prepare('INSERT INTO rivulet_fill VALUES (zeroblob(?))')
  for (let fills = 0; fills < FILLS; fills++) {
    const pages = Number(free.get()?.['freelist_count'])
    if (pages === 0) return false
    fill.run(pages * Number(size?.['page_size']) > 2 * LARGE_FILL ? LARGE_FILL : SMALL_FILL)
  }
  return true
}

/** Returns whether there is more. */
function freeFilledSpace({ database }: LogFile): boolean {
  const { changes } = database
    .prepare('DELETE FROM rivulet_fill WHERE rowid IN (SELECT rowid FROM rivulet_fill LIMIT ?)')
    .run(FILLS)
  return Number(changes) > 0
}

/** Runs work during which SQLite overwrites deleted text and free space with zeros, at the cost of more writes. */
function overwriting<Result>(file: LogFile, work: (file: LogFile) => Result): Result {
  file.database.exec('PRAGMA secure_delete = ON')
  try {
    return work(file)
  } finally {
    file.database.exec('PRAGMA secure_delete = FAST')
  }
}

/** The write-ahead log has the text until it is empty. */
async function emptyWal(transactions: Transactions): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (await transactions.alone(({ file }) => file.emptyWal())) return
    await delay(ATTEMPT_INTERVAL)
  }
  const name = await transactions.alone(({ file }) => file.name)
  throw new LogFileError(
    name,
    'has no more entries of the source, but its -wal file still has their text, since another program reads it: end that, and ' +
      'call forget again',
    { retryable: true },
  )
}
