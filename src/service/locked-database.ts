import { chmodSync, existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** How long a start waits for another start to fail, in ms. Two that start at once may block each other for a moment. */
const PATIENCE = 100

/** SQLite's primary result code for a lock of another connection. */
const BUSY = 5

/**
 * A database that is open only once: opening the same file again is refused, in this process, in another one, and in a container
 * that shares the folder of the file. Other programs may read the file.
 *
 * The lock is an open transaction on an empty side file, `FILE-lock`, since Node has no call for locks. The operating system
 * ends it with the process, also after SIGKILL. The side file is never removed: a process could then lock the removed file while another
 * process locks a new one. Only SQLite opens it: on POSIX systems, the close of any other descriptor of a file ends the locks that the
 * process has on it.
 */
export class LockedDatabase extends DatabaseSync {
  readonly #lock: DatabaseSync | undefined

  /** @throws {@link InUseError} while the database is open elsewhere. Nothing was written to the file. */
  constructor(file: string) {
    super(file)
    try {
      // Links are resolved. `null` is a database in memory.
      const path = this.location()
      this.#lock = path === null ? undefined : lock(path)
    } catch (error) {
      super.close()
      throw error
    }
  }

  override close(): void {
    try {
      super.close()
    } finally {
      if (this.#lock?.isOpen === true) this.#lock.close()
    }
  }

  override [Symbol.dispose](): void {
    if (this.isOpen) this.close()
  }
}

/** The file cannot be opened, since it has another owner. */
export class InUseError extends Error {
  override readonly name = 'InUseError'
}

function lock(path: string): DatabaseSync {
  // SQLite names the write-ahead log after the file: two names would have two logs, and lose data.
  if (statSync(path).nlink > 1) throw new InUseError('has several names (hard links): keep one of them')
  const file = `${path}-lock`
  let database: DatabaseSync | undefined
  try {
    const isNew = !existsSync(file)
    database = new DatabaseSync(file, { timeout: PATIENCE })
    if (isNew) chmodSync(file, 0o600)
    // A journal in memory, since SQLite would create a file for it at once.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return database
  } catch (error) {
    database?.close()
    if (!isBusy(error)) throw error
    throw new InUseError('is in use by another research service: close that one, or name another file', {
      cause: error,
    })
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === BUSY
}
