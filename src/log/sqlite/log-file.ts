import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { hasWalResetBug, walResetBugMessage } from '../../protocol/wal-reset-bug.ts'
import { LogFileError } from '../errors.ts'
import {
  anotherPathOf,
  createPrivateFile,
  FileIdentity,
  hasWal,
  isFolder,
  networkFileSystemOf,
  ONE_PATH,
  writeAgain,
} from './file-system.ts'
import { CHECKED_TABLES, IDENTIFY, problemOfHeader, SCHEMA } from './schema.ts'
import { damaged, isBusy, isUndone } from './sqlite-error.ts'

/** How surely a commit survives a power cut: `FULL` syncs it before it becomes visible. */
export type Durability = 'NORMAL' | 'FULL'

/** A row of a result, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>

/** Opens a connection. Tests limit it. */
export type Connect = (file: string) => DatabaseSync

/**
 * Pages of the write-ahead log, 4 kB each, after which SQLite copies them into the file. Identities are spread over their whole
 * table, so a page that several appends write is copied once. With SQLite's own 1,000, appends took 10 % more CPU time, and one
 * in a hundred took twice as long.
 */
const CHECKPOINT_PAGES = 4_000

/** The size of the -wal file, in bytes, above which it is truncated. */
const MAX_WAL_BYTES = 64 * 1024 * 1024

/** The log files that are open in this process. */
const openFiles = new Set<LogFile>()

/** The log files at a path, as SQLite names it, that are open in this process: a user's connection may write there too. */
export function openFilesAt(path: string | null): readonly LogFile[] {
  return path === null ? [] : [...openFiles].filter((file) => file.path === path)
}

/** A connection without SQLite's own waiting, which would block the event loop. */
export const connect: Connect = (file) => new DatabaseSync(file, { timeout: 0 })

/**
 * An SQLite file that has a log: opened, checked, and with its tables. All of a transaction runs in one turn of the event loop, and
 * no iterator is held over a turn.
 *
 * Errors of SQLite pass through unchanged, so that a caller can check `isBusy`.
 */
export class LogFile {
  readonly database: DatabaseSync
  /** The path as the user knows it, for messages. */
  readonly name: string
  /** The path with links resolved, as SQLite names the files beside it. */
  readonly path: string
  readonly epoch: string
  readonly #present: FileIdentity
  readonly #wal: FileIdentity
  #durability: Durability | undefined
  /** Whether all of the -wal file that this log has found is on the disk. */
  #isWalSynced = false
  /** Why nothing more is written. */
  #failure: unknown

  /**
   * @param create Whether a missing log is created.
   * @throws {LogFileError} for a file that cannot be a log. It was left as it is.
   */
  constructor(name: string, open: Connect = connect, create = true) {
    this.name = name
    checkPlace(name)
    if (create) createPrivateFile(name)
    else if (!existsSync(name)) throw new LogFileError(name, 'does not exist: name the file of a log')
    if (hasWal(name)) this.#checkUntouched(create)
    this.database = open(name)
    try {
      this.path = this.database.location() ?? name
      // Deleted text is overwritten where its page is written anyway: `forget` finds it in free pages only. No `auto_vacuum`: it would move
      // pages and maintain a map of them with each append, for a file that grows again.
      this.database.exec('PRAGMA secure_delete = FAST')
      // Mapped memory is off: with it, a fault of a disk kills the process.
      this.database.exec(
        `PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`,
      )
      const isNew = this.#check(this.database, create)
      this.#useWal()
      if (isNew) this.#create()
      else this.#checkWritable()
      const epoch = this.database.prepare('SELECT epoch FROM rivulet_log').get()?.['epoch']
      if (typeof epoch !== 'string') throw damaged(name, 'it has no epoch')
      this.epoch = epoch
      // Both stay the same files while a connection is open.
      this.#present = new FileIdentity(this.path)
      this.#wal = new FileIdentity(this.walPath)
      openFiles.add(this)
    } catch (error) {
      this.database.close()
      throw error
    }
  }

  get walPath(): string {
    return `${this.path}-wal`
  }

  /**
   * Runs the work in one transaction that no other connection can write into: all of it is stored, or nothing.
   *
   * @throws {LogFileError} if the file was removed or replaced, or an earlier commit has failed.
   */
  write<Result>(durability: Durability, work: () => Result): Result {
    this.checkPresent()
    this.checkSound()
    if (this.#durability !== durability) {
      this.database.exec(`PRAGMA synchronous = ${durability}`)
      // SQLite ignores it when its own checkpoint after a commit fails. After a synced commit, the sync of that checkpoint has nothing to lose.
      const pages = durability === 'FULL' ? CHECKPOINT_PAGES : 0
      this.database.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
      this.#durability = durability
    }
    const result = this.#transaction('BEGIN IMMEDIATE', () => {
      if (durability === 'FULL') this.#syncWal()
      return work()
    })
    this.#truncateWal()
    return result
  }

  /** Runs the work on one snapshot of the file. */
  read<Result>(work: () => Result): Result {
    this.checkPresent()
    return this.#transaction('BEGIN', work)
  }

  /**
   * SQLite does not notice in WAL mode that its file was removed or replaced. It would write on into a file without a name.
   *
   * @throws {LogFileError} if that happened.
   */
  checkPresent(): void {
    if (this.#present.size() !== undefined && this.#wal.size() !== undefined) return
    throw new LogFileError(
      this.name,
      'was removed or replaced while it was open, or its -wal file was: put them back, or end this process to start a new ' +
        'log. Nothing more is written',
    )
  }

  /**
   * Refuses to write after a commit that has failed otherwise than for want of space or a lock. The system takes what it could not sync for synced.
   * Commits that were not synced may be missing there, and a recovery would end before all that is committed behind them.
   *
   * @throws {LogFileError} if that happened.
   */
  checkSound(): void {
    if (this.#failure === undefined) return
    throw new LogFileError(
      this.name,
      'is no longer written, since its disk failed in an earlier commit or checkpoint: check the disk, close the log, and open it again',
      { cause: this.#failure },
    )
  }

  /** Takes note of the error of a commit to the file: see {@link checkSound}. */
  commitFailed(error: unknown): void {
    if (!isUndone(error)) this.#failure ??= error
  }

  close(): void {
    openFiles.delete(this)
    if (this.database.isOpen) this.database.close()
  }

  #transaction<Result>(begin: string, work: () => Result): Result {
    this.database.exec(begin)
    try {
      const result = work()
      this.#commit()
      return result
    } catch (error) {
      // After some errors, such as a full disk, SQLite has already rolled back.
      if (this.database.isTransaction) this.database.exec('ROLLBACK')
      throw error
    }
  }

  #commit(): void {
    try {
      this.database.exec('COMMIT')
    } catch (error) {
      this.commitFailed(error)
      throw error
    }
  }

  /**
   * Within a write transaction: makes durable what this log has found in the -wal file, once. A sync of it may have failed in an earlier process.
   * A checkpoint would do too, if it could begin the -wal file anew; that takes a moment without readers.
   */
  #syncWal(): void {
    if (this.#isWalSynced) return
    try {
      writeAgain(this.walPath)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      throw new LogFileError(this.name, `cannot sync its -wal file (${problem}): check the disk`, {
        cause: error,
      })
    }
    this.#isWalSynced = true
  }

  /** The size of the -wal file, in bytes. */
  get walBytes(): number {
    return this.#wal.size() ?? 0
  }

  /**
   * Copies the -wal file into the file and makes it empty. Returns whether that was possible: another connection may read it.
   */
  emptyWal(): boolean {
    try {
      return this.database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0
    } catch (error) {
      // It syncs the -wal file first.
      this.commitFailed(error)
      throw error
    }
  }

  /** A reader that held an old snapshot made the WAL grow. Checkpoints alone write it over, they do not shorten it. */
  #truncateWal(): void {
    if (this.walBytes <= MAX_WAL_BYTES) return
    try {
      // Without effect while there is a reader; the next commit tries again.
      this.emptyWal()
    } catch {
      // The transaction is committed nevertheless. The next one reports what is wrong.
    }
  }

  /** A connection that may write copies the -wal file into the file when it is closed, also that of another program. */
  #checkUntouched(create: boolean): void {
    const database = new DatabaseSync(this.name, { readOnly: true, timeout: 0 })
    try {
      this.#check(database, create)
    } finally {
      database.close()
    }
  }

  /** Reads only: a file that is refused stays as it is. Returns whether the log has to be created. */
  #check(database: DatabaseSync, create: boolean): boolean {
    const isNew =
      database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'rivulet_log'").get() === undefined
    const header = {
      application: Number(database.prepare('PRAGMA application_id').get()?.['application_id']),
      layout: Number(database.prepare('PRAGMA user_version').get()?.['user_version']),
    }
    const problem = problemOfHeader(header, !isNew)
    if (problem !== undefined) throw new LogFileError(this.name, problem)
    if (isNew && !create) throw new LogFileError(this.name, 'has no log: name the file of a log')
    if (isNew) return true
    for (const table of CHECKED_TABLES) {
      const verdict = database.prepare(`PRAGMA quick_check('${table}')`).get()?.['quick_check']
      if (verdict !== 'ok') throw damaged(this.name, String(verdict))
    }
    return false
  }

  #useWal(): void {
    const mode = this.database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
    if (mode === 'wal') return
    throw new LogFileError(
      this.name,
      'cannot have a write-ahead log: its file system has no shared memory. Use a file on a local disk',
    )
  }

  #create(): void {
    this.database.exec('PRAGMA synchronous = FULL')
    this.#transaction('BEGIN IMMEDIATE', () => {
      // Another process may have been faster.
      if (!this.#check(this.database, true)) return
      this.database.exec(SCHEMA + IDENTIFY)
      this.database
        .prepare('INSERT INTO rivulet_log (one, epoch, last_position, last_recorded) VALUES (1, ?, 0, 0)')
        .run(randomBytes(8).toString('hex'))
    })
  }

  /** A file without write permission is reported when it is opened, not by the first append. */
  #checkWritable(): void {
    try {
      this.#transaction('BEGIN IMMEDIATE', () => {})
    } catch (error) {
      // Another writer is at work. That it is slow, or suspended, does not keep readers out.
      if (!isBusy(error)) throw error
    }
  }
}

/** Refuses a file where SQLite could lose what is committed to it. */
export function checkPlace(file: string): void {
  const { sqlite = 'unknown' } = process.versions
  if (hasWalResetBug(sqlite)) throw new LogFileError(file, walResetBugMessage(sqlite))
  if (isFolder(file)) throw new LogFileError(file, 'is a folder: name a file in it')
  const another = anotherPathOf(file)
  if (another !== undefined) throw new LogFileError(file, `${another}. ${ONE_PATH}`)
  const network = networkFileSystemOf(file)
  if (network === undefined) return
  throw new LogFileError(
    file,
    `is on a network file system (${network}: ${dirname(file)}), where the locks and the shared memory of SQLite are not ` +
      'reliable: use a file on a local disk',
  )
}
