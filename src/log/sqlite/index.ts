/**
 * The event log in an SQLite file, and effects in a database.
 *
 * @module rivulet/log/sqlite
 */
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkFunction, checkOptions, checkText } from '../../protocol/check.ts'
import type { LogStore } from '../store/contract.ts'
import { inboxLimits } from '../store/inbox-store.ts'
import type { InboxLimits } from '../store/inbox-store.ts'
import { SqliteLogStore } from './store.ts'

export { exactlyOnce, sqliteEffects } from './exactly-once.ts'
export { rewindEffects } from './rewind-effects.ts'

/** Settings of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /** Whether a missing file is created. Default true. Otherwise it is a `LogFileError`, and so is a file without a log. */
  readonly create?: boolean
  /** Name of this open log in the `LogInUseError` of others. Default: the process id and the host. */
  readonly owner?: string
  /**
   * Unix time in ms. Default `Date.now`, which is checked for jumps; another one is not.
   *
   * It gives `recorded` of the entries.
   */
  readonly clock?: () => number
  /** Webhooks that are stored and not recorded yet: `maxDeliveries`, default 10,000, and the size of their bodies, `maxBytes`, default 256 MiB. */
  readonly inbox?: InboxLimits
}

/** A log in an SQLite file. */
export interface SqliteStore extends LogStore {
  /**
   * Copies the log into a new file with mode 0600, as it is at one moment, while it is written to. The copy is a log of its own: it has
   * all readers with their positions, it refuses positions of this log, and nothing in it is claimed.
   *
   * Rejects with a `LogFileError` if the file exists or cannot be written, and leaves no part of it.
   *
   * @param file A path on a local disk.
   */
  backup(file: string): Promise<void>
}

/**
 * A log in an SQLite file, for any number of processes on one machine. The file is created with mode 0600 by the first call that needs it,
 * with `-wal`, `-shm` and `-lock-N` files beside it.
 *
 * Appended entries survive a crash and a power cut. A reader's cursor survives a crash; a power cut may take it back a little.
 *
 * Methods reject with a `LogFileError` for a file that is damaged, from another version, on a network file system, not
 * writable, full, or removed while it is open. The file is left as it is.
 *
 * @param file A path on a local disk.
 * @throws {ArgumentError} for an option that cannot be right.
 */
export function sqliteStore(file: string, options: SqliteStoreOptions = {}): SqliteStore {
  if (typeof file !== 'string' || file.trim() === '' || file === ':memory:') {
    throw new ArgumentError('file', 'a path (memoryStore() needs none)', file)
  }
  checkOptions('options', options, ['create', 'owner', 'clock', 'inbox'])
  const {
    owner = `process ${process.pid} on ${hostname()}`,
    clock = Date.now,
    create = true,
    inbox,
  } = options
  checkText('owner', owner)
  checkFunction('clock', clock)
  checkBoolean('create', create)
  return new SqliteLogStore(resolve(file), { owner, clock, create, inbox: inboxLimits(inbox) })
}
