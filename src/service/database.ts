import { chmodSync, existsSync } from 'node:fs'
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import { hasWalResetBug, walResetBugMessage } from '../protocol/wal-reset-bug.ts'
import { InUseError, LockedDatabase } from './locked-database.ts'
import { RivuletError } from '../protocol/rivulet-error.ts'

/** Version of the service's tables; a file with a newer version is refused. */
const SCHEMA_VERSION = 1

/** A row of a result, by the names of its columns. */
export type Row = Readonly<Record<string, SQLOutputValue>>

/** A file that cannot be used as the service's database. `cause` is SQLite's error, if there is one. */
export class DataFileError extends RivuletError {
  override readonly name = 'DataFileError'
  override readonly code = 'data_file'
  readonly file: string

  constructor(file: string, message: string, options?: ErrorOptions) {
    super(`${file} ${message}`, options)
    this.file = file
  }
}

/**
 * Opens the service's database: `:memory:`, or a file that only its owner can read and write. Each area creates its own
 * tables.
 *
 * @throws DataFileError when the file cannot be used, or not safely: see {@link hasWalResetBug}, also in memory; when another
 * service has it open.
 */
export function openDatabase(file: string): DatabaseSync {
  const { sqlite = 'unknown' } = process.versions
  if (hasWalResetBug(sqlite)) throw new DataFileError(file, walResetBugMessage(sqlite))
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
  // A killed process may have left deleted credentials in the write-ahead log.
  truncateLog(database)
  return database
}

function open(file: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new LockedDatabase(file)
    // Reads the file, so that a file of another format is refused unchanged.
    database.exec('PRAGMA schema_version')
    keepPrivate(database)
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON',
    )
    // Overwrites deleted data with zeros, such as the credentials of ended runs.
    database.exec('PRAGMA secure_delete = ON')
    // Page cache in KiB. A search reads all over the index, which does not fit the default of 2 MiB.
    database.exec('PRAGMA cache_size = -32768')
    return database
  } catch (error) {
    database?.close()
    if (error instanceof InUseError) throw new DataFileError(file, error.message, { cause: error.cause })
    const reason = error instanceof Error ? error.message : String(error)
    const message = `cannot be used as the service's data file (${reason}): name another one`
    throw new DataFileError(file, message, { cause: error })
  }
}

/** Restricts existing files. New `-wal` and `-shm` files get the mode of the database from SQLite. */
function keepPrivate(database: DatabaseSync): void {
  const file = database.location()
  if (file === null) return
  for (const path of [file, `${file}-wal`, `${file}-shm`]) {
    if (existsSync(path)) chmodSync(path, 0o600)
  }
}

/**
 * Checkpoints and truncates the write-ahead log, so that it holds no deleted data. Returns false, without waiting, when a
 * reader in another process prevents it.
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
 * Prepares a statement that returns rows as arrays. For many small rows, creating an object for each takes longer than
 * finding them.
 */
export function prepareArrays(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

/** The time after `now` that a statement selects as `at`, undefined if it selects none. `more` are its other parameters. */
export function nextTime(
  statement: StatementSync,
  now: number,
  ...more: SQLInputValue[]
): number | undefined {
  const at = statement.get(now, ...more)?.['at']
  return typeof at === 'number' ? at : undefined
}

/** Runs `work` in one transaction; joins the current one if there is one. */
export function transaction<T>(database: DatabaseSync, work: () => T): T {
  if (database.isTransaction) return work()
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // SQLite rolls back by itself after some errors, such as a full disk.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
