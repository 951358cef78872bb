import { DatabaseSync, type StatementSync } from 'node:sqlite'

/** The layout of the service's tables; a file with a newer one is refused. */
const SCHEMA_VERSION = 1

/**
 * Opens the service's one database, `:memory:` or a file. Each area creates the tables that it owns.
 *
 * @throws Error that names the file, when it cannot be used.
 */
export function openDatabase(file: string): DatabaseSync {
  const database = open(file)
  const found = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
  if (found > SCHEMA_VERSION) {
    database.close()
    throw new Error(
      `${file} was written by a newer version of the service (layout ${found}, this one knows ${SCHEMA_VERSION}): ` +
        'use that version, or another file',
    )
  }
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
  return database
}

function open(file: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file)
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON',
    )
    // KiB of pages that are kept in memory. A search looks all over the index, which the 2 MiB of the default hardly hold.
    database.exec('PRAGMA cache_size = -32768')
    return database
  } catch (error) {
    database?.close()
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${file} cannot be used as the service's data file (${reason}): name another one`, {
      cause: error,
    })
  }
}

/**
 * Prepares a statement whose rows are arrays, `row[0]` being the first column. For many small rows: to make an object of
 * each takes longer than to find them.
 */
export function prepareArrays(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

/** Runs the work in one transaction: all of it is stored, or none. */
export function transaction<T>(database: DatabaseSync, work: () => T): T {
  if (database.isTransaction) return work()
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // SQLite has already rolled back by itself after some errors, a full disk among them.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
