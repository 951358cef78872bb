import { chmodSync, existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { LogFileError } from '../errors.ts'
import { isBusy, logFileError } from './sqlite-error.ts'

/** More open logs than any machine has. */
const MAX_SLOTS = 10_000

/** The lock of one open log. */
export interface Slot {
  readonly number: number
  /** Gives the lock up. */
  close(): void
}

/**
 * Numbered locks of the operating system, one for each open log that claims names: a process that died has given up its lock,
 * one that is suspended has not.
 *
 * Each lock is an open transaction on an empty side file of its own, `FILE-lock-0`, since Node has no call for locks. The file
 * is never read, written or removed, and only SQLite opens it: on POSIX systems, the close of any other descriptor of the file gives up
 * all locks that the process has on it. SQLite keeps its own connections from doing that to each other.
 *
 * A lock shows whether an owner is alive, and nothing rests on it alone: fences make it safe. If the side
 * file of a live owner is removed, another one can take over its claims, and the owner is fenced.
 */
export class Slots {
  readonly #path: string

  /** @param path The path of the log. */
  constructor(path: string) {
    this.#path = path
  }

  /** Takes the first free lock. */
  take(): Slot {
    for (let number = 0; number < MAX_SLOTS; number++) {
      const database = this.#lock(number)
      // The object must stay reachable: the lock ends when it is collected.
      if (database !== undefined) return { number, close: () => database.close() }
    }
    throw new LogFileError(this.#path, `is open ${MAX_SLOTS} times: close some of these logs`)
  }

  /**
   * Whether an open log has this lock. It takes 200 µs. It asks for a shared lock, so that two that ask at once do not take each
   * other for the owner.
   */
  isTaken(number: number): boolean {
    const file = this.#file(number)
    if (!existsSync(file)) return false
    let database: DatabaseSync | undefined
    try {
      database = new DatabaseSync(file, { timeout: 0, readOnly: true })
      database.prepare('SELECT count(*) FROM sqlite_schema').get()
      return false
    } catch (error) {
      if (isBusy(error)) return true
      throw logFileError(file, error)
    } finally {
      database?.close()
    }
  }

  #lock(number: number): DatabaseSync | undefined {
    const file = this.#file(number)
    let database: DatabaseSync | undefined
    try {
      const isNew = !existsSync(file)
      database = new DatabaseSync(file, { timeout: 0 })
      // Not created with this mode as the log is: that takes a descriptor.
      if (isNew) chmodSync(file, 0o600)
      // A journal in memory, since SQLite would create a file for it at once.
      database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      return database
    } catch (error) {
      database?.close()
      if (isBusy(error)) return undefined
      throw logFileError(file, error)
    }
  }

  #file(number: number): string {
    return `${this.#path}-lock-${number}`
  }
}
