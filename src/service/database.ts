import { chmodSync, existsSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { hasWalResetBug, walResetBugMessage } from '../protocol/wal-reset-bug.ts'

/** The layout of the service's tables; a file with a newer one is refused. */
const SCHEMA_VERSION = 1

/** A file that cannot be the service's database. `cause` is SQLite's error, where it is one. */
export class DataFileError extends Error {
  override readonly name = 'DataFileError'
  readonly file: string

  constructor(file: string, message: string, options?: ErrorOptions) {
    super(`${file} ${message}`, options)
    this.file = file
  }
}

/**
 * Opens the service's one database, `:memory:` or a file, which its owner alone can read and write then. Each area creates
 * the tables that it owns.
 *
 * @throws DataFileError when the file cannot be used, or not safely: see {@link hasWalResetBug}.
 */
export function openDatabase(file: string): DatabaseSync {
  const { sqlite = 'unknown' } = process.versions
  if (file !== ':memory:' && hasWalResetBug(sqlite)) throw new DataFileError(file, walResetBugMessage(sqlite))
  const database = open(file)
  const found = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
  if (found > SCHEMA_VERSION) {
    database.close()
    throw new DataFileError(
      file,
      `was written by a newer version of the service (layout ${found}, this one knows ${SCHEMA_VERSION}): ` +
        'use that version, or another file',
    )
  }
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
  // A process that was killed can have left credentials in its log that were deleted since.
  truncateLog(database)
  return database
}

function open(file: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file)
    // Reads the file, so that one of another kind is refused and stays as it is.
    database.exec('PRAGMA schema_version')
    keepPrivate(database)
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON',
    )
    // What is deleted is written over with zeros: the credentials of ended runs among it.
    database.exec('PRAGMA secure_delete = ON')
    // KiB of pages that are kept in memory. A search looks all over the index, which the 2 MiB of the default hardly hold.
    database.exec('PRAGMA cache_size = -32768')
    return database
  } catch (error) {
    database?.close()
    const reason = error instanceof Error ? error.message : String(error)
    const message = `cannot be used as the service's data file (${reason}): name another one`
    throw new DataFileError(file, message, { cause: error })
  }
}

/** Its log and the index of that, where they are not there yet, get the mode of the file from SQLite. */
function keepPrivate(database: DatabaseSync): void {
  const file = database.location()
  if (file === null) return
  for (const path of [file, `${file}-wal`, `${file}-shm`]) {
    if (existsSync(path)) chmodSync(path, 0o600)
  }
}

/**
 * Carries the write-ahead log over into the file and empties it, so that what was deleted is in neither. False where a
 * reader in another process keeps it from doing so; it is not waited for.
 */
export function truncateLog(database: DatabaseSync): boolean {
  database.exec('PRAGMA busy_timeout = 0')
  try {
    return database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] !== 1
  } finally {
    database.exec('PRAGMA busy_timeout = 5000')
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
