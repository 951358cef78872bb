import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { ArgumentError } from '../protocol/argument-error.ts'
import { hasWalResetBug, walResetBugMessage } from '../protocol/wal-reset-bug.ts'
import { StateFileError } from './errors.ts'

/** One kind of state in a file: several kinds live side by side, and in a database of the user's own. */
export interface StateLayout {
  /** What it is, for messages. */
  readonly part: string
  /** Grows with each change of the tables that older versions cannot read. */
  readonly version: number
  readonly tables: readonly string[]
  /** Creates the tables. */
  readonly schema: string
  /** Turns the tables of an older version into the next one's, by the older one's number. */
  readonly upgrades?: Readonly<Record<number, string>>
  /** Throws where the tables may not be changed, since somebody works with them. */
  readonly checkUpgrade?: (database: DatabaseSync, file: string) => void
}

/** Settings of a {@link StateFile}. */
export interface StateFileOptions {
  /** How surely a commit survives a power cut, for a file that is opened here. */
  readonly synchronous: 'NORMAL' | 'FULL'
}

/** What each kind of state in this file was written by. Its name keeps clear of the user's own tables. */
const VERSIONS = `
  CREATE TABLE IF NOT EXISTS rivulet_state (part TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID, STRICT
`

/** How long another connection's write is waited for, in ms. The process stands still for that time. */
const BUSY_TIMEOUT = 5_000

/**
 * Pages of the write-ahead log, of 4 kB each, after which SQLite carries them over into the file. That takes two syncs, for
 * which the process stands still: where commits take none, and with SQLite's own 1,000, they took longer than all the rest
 * of saving. Where each commit is synced, a log that is soon written over is worth more, since one that grows has its size
 * synced as well.
 */
const LOG_PAGES = { NORMAL: 4_000, FULL: 1_000 }

/**
 * A SQLite file that holds state: opened and checked, with its tables in place. Whatever is wrong with it is told before
 * anything is written, as a {@link StateFileError} that says what to do. No memory is mapped (`mmap_size`): with it, a fault
 * of the log could damage the file.
 */
export class StateFile {
  readonly database: DatabaseSync
  /** The path, or `:memory:`. */
  readonly name: string
  readonly #owned: boolean

  /**
   * @param target A path, `:memory:`, or an open database. The settings of an open database are left alone, and it is left
   * open.
   */
  constructor(target: string | DatabaseSync, layout: StateLayout, options: StateFileOptions) {
    if (!(target instanceof DatabaseSync) && (typeof target !== 'string' || target.trim() === '')) {
      throw new ArgumentError('file', 'a path, ":memory:" or a DatabaseSync', target)
    }
    this.#owned = typeof target === 'string'
    this.name = typeof target === 'string' ? target : (target.location() ?? ':memory:')
    if (this.#owned) checkSqlite(this.name)
    this.database = typeof target === 'string' ? openDatabase(target) : target
    try {
      if (this.#isLogged()) checkSqlite(this.name)
      this.#check(layout)
      if (this.#owned) {
        this.database.exec(
          `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.synchronous}; ` +
            `PRAGMA wal_autocheckpoint = ${LOG_PAGES[options.synchronous]}`,
        )
      }
      this.#create(layout)
    } catch (error) {
      this.close()
      throw stateFileError(this.name, error)
    }
  }

  /**
   * Runs the work in one transaction that no other connection can write into: all of it is stored, or nothing. What the
   * work throws passes through.
   *
   * @throws {StateFileError} where the transaction cannot begin or be committed.
   */
  transaction<T>(work: () => T): T {
    if (this.attempt(() => this.database.isTransaction)) {
      throw new StateFileError(
        this.name,
        'has a transaction open on this connection: a transaction must end in the turn of the event loop in which it ' +
          'began, or have a connection of its own',
      )
    }
    this.#exec('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.#exec('COMMIT')
      return result
    } catch (error) {
      // SQLite has already rolled back by itself after some errors, a full disk among them.
      if (this.database.isTransaction) this.database.exec('ROLLBACK')
      throw error
    }
  }

  /** Runs statements on the state's own tables. What SQLite fails with becomes a {@link StateFileError}. */
  attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw this.explain(error)
    }
  }

  /** What SQLite failed with as a {@link StateFileError}; any other error as it is. */
  explain(error: unknown): unknown {
    return stateFileError(this.name, error)
  }

  /** Sets how surely commits survive a power cut from now on, where the connection is not the user's. */
  synchronize(how: 'NORMAL' | 'FULL'): void {
    if (this.#owned && !this.database.isTransaction) this.#exec(`PRAGMA synchronous = ${how}`)
  }

  /** Closes the file, unless it was given as an open database. */
  close(): void {
    if (this.#owned && this.database.isOpen) this.database.close()
  }

  /** Whether the database has a write-ahead log: one of the user's own may do without. */
  #isLogged(): boolean {
    return this.database.prepare('PRAGMA journal_mode').get()?.['journal_mode'] === 'wal'
  }

  #exec(sql: string): void {
    this.attempt(() => this.database.exec(sql))
  }

  /** Reads only: a file that is refused stays as it is. */
  #check({ part, version, tables }: StateLayout): void {
    const present = new Set(
      this.database
        .prepare(
          "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'rivulet\\_%' ESCAPE '\\'",
        )
        .all()
        .map(({ name }) => name),
    )
    if (!present.has('rivulet_state')) return
    const found = this.database.prepare('SELECT version FROM rivulet_state WHERE part = ?').get(part)?.[
      'version'
    ]
    if (found !== undefined && (typeof found !== 'number' || found > version)) {
      throw new StateFileError(
        this.name,
        `keeps its ${part} in the layout of a newer version (${String(found)}, this one knows ${version}): use that ` +
          'version of rivulet, or another file',
      )
    }
    for (const table of tables.filter((name) => present.has(name))) {
      const verdict = this.database.prepare(`PRAGMA quick_check('${table}')`).get()?.['quick_check']
      if (verdict !== 'ok') throw damaged(this.name, String(verdict))
    }
  }

  #create({ part, version, schema, upgrades = {}, checkUpgrade }: StateLayout): void {
    this.transaction(() => {
      this.database.exec(VERSIONS)
      const found = this.database.prepare('SELECT version FROM rivulet_state WHERE part = ?').get(part)
      const present = Number(found?.['version'] ?? version)
      if (present < version) checkUpgrade?.(this.database, this.name)
      for (let older = present; older < version; older++) {
        this.database.exec(upgrades[older] ?? '')
      }
      this.database.exec(schema)
      // Written at each opening, so that a file without write permission is found out now and not at the first event.
      this.database
        .prepare(
          'INSERT INTO rivulet_state VALUES (?, ?) ON CONFLICT DO UPDATE SET version = excluded.version',
        )
        .run(part, version)
    })
  }
}

/** Refuses a file where SQLite can lose what is committed to it. */
function checkSqlite(file: string): void {
  const { sqlite = 'unknown' } = process.versions
  if (file !== ':memory:' && hasWalResetBug(sqlite))
    throw new StateFileError(file, walResetBugMessage(sqlite))
}

function openDatabase(file: string): DatabaseSync {
  if (file !== ':memory:' && isFolder(file)) throw new StateFileError(file, 'is a folder: name a file in it')
  try {
    return new DatabaseSync(file, { timeout: BUSY_TIMEOUT })
  } catch (error) {
    throw stateFileError(file, error)
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    // Missing or out of reach: SQLite tells which.
    return false
  }
}

/** By SQLite's primary result code: what happened, and what to do. */
const CODES: Readonly<Record<number, string>> = {
  5: 'is locked by another program: find out which, and let it end its transaction',
  6: 'is locked by another statement of this connection: end it first',
  8: 'cannot be written: give this process write permission to the file and its folder',
  10: 'could not be read or written, since its disk failed: look at the disk',
  13: 'could not be written, since the disk is full: make room',
  14: 'cannot be opened: create its folder, and give this process permission to it',
}

/** SQLite's error as one that names the file; any other as it is. */
function stateFileError(file: string, error: unknown): unknown {
  if (isClosed(error)) {
    return new StateFileError(file, 'is closed: close the database after what uses it', { cause: error })
  }
  if (!isSqliteError(error)) return error
  const code = error.errcode & 0xff
  if (code === 11 || code === 26) return damaged(file, error.message, error)
  const known = CODES[code]
  return new StateFileError(file, known ?? `cannot be used: ${error.message}`, { cause: error })
}

function damaged(file: string, verdict: string, cause?: unknown): StateFileError {
  const reason = verdict.replaceAll(/\s+/g, ' ')
  return new StateFileError(
    file,
    `is damaged or no SQLite database (${reason}): restore it from a copy, or move it away together with its -wal ` +
      'and -shm files to begin anew, or name another file. It was left as it is',
    { cause },
  )
}

/** Node's word for a database that is closed, and for the statements that went with it. */
function isClosed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE'
}

function isSqliteError(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}
