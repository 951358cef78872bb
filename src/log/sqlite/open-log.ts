import { inboxLimits } from '../store/inbox-store.ts'
import type { InboxLimits } from '../store/inbox-store.ts'
import { IDENTITY_LIMITS } from '../store/identity-age.ts'
import type { IdentityLimits } from '../store/identity-age.ts'
import { ChangeWatch } from './change-watch.ts'
import { SqliteClaims } from './claims.ts'
import { SqliteDeadLetters } from './dead-letters.ts'
import { Entries } from './entries.ts'
import { SqliteInbox } from './inbox.ts'
import { connect as defaultConnect, LogFile } from './log-file.ts'
import type { Connect, Durability } from './log-file.ts'
import { SqliteProcesses } from './processes.ts'
import { SqliteReaders } from './readers.ts'
import { Runs } from './runs.ts'
import { Stats } from './stats.ts'
import { SqliteTrimming } from './trimming.ts'
import { originalText, storedText } from '../../protocol/stored-text.ts'

/** Transactions for the parts of a store: they wait while the file is busy, and what SQLite throws becomes a LogFileError. */
export interface Transactions {
  /** Reads from one snapshot. */
  read<Result>(work: (log: OpenSqliteLog) => Result): Promise<Result>
  /**
   * Writes after all earlier writes.
   *
   * @param patience How long it waits for other writers, in ms.
   */
  write<Result>(
    durability: Durability,
    work: (log: OpenSqliteLog) => Result,
    patience?: number,
  ): Promise<Result>
  /** Resolves once it is reached, which is asked after each change. Rejects with the signal's reason. */
  until(isReached: (log: OpenSqliteLog) => boolean, signal: AbortSignal): Promise<void>
  /** The open log, without waiting; undefined before it was opened and after it was closed. */
  opened(): OpenSqliteLog | undefined
  /** Runs the work after all earlier writes, without a transaction. */
  alone<Result>(work: (log: OpenSqliteLog) => Result): Promise<Result>
  /** Reports a change to the calls that wait. */
  notify(): void
}

/** Settings of an {@link OpenSqliteLog}. */
export interface OpenSqliteLogSettings {
  readonly owner: string
  readonly connect?: Connect
  /** Whether a missing log is created. Default true. */
  readonly create?: boolean
  readonly inbox?: Required<InboxLimits>
  /** See {@link SqliteInbox}. */
  readonly knownIds?: number
  readonly identityLimits?: IdentityLimits
}

/** The parts of a log whose file is open. */
export class OpenSqliteLog {
  readonly file: LogFile
  readonly entries: Entries
  readonly readers: SqliteReaders
  readonly deadLetters: SqliteDeadLetters
  readonly inbox: SqliteInbox
  readonly processes: SqliteProcesses
  readonly claims: SqliteClaims
  readonly watch: ChangeWatch
  readonly trimming: SqliteTrimming
  readonly stats: Stats
  readonly #findStream
  readonly #moveStream

  constructor(name: string, settings: OpenSqliteLogSettings) {
    const { owner, connect = defaultConnect, create = true, inbox, knownIds } = settings
    const { identityLimits = IDENTITY_LIMITS } = settings
    this.file = new LogFile(name, connect, create)
    try {
      const runs = new Runs(this.file.database)
      this.entries = new Entries(this.file, runs)
      this.readers = new SqliteReaders(this.file, this.entries.positions)
      this.deadLetters = new SqliteDeadLetters(this.file, this.entries.positions)
      this.inbox = new SqliteInbox(this.file, inbox ?? inboxLimits({}), knownIds)
      this.processes = new SqliteProcesses(this.file, runs)
      this.claims = new SqliteClaims(this.file, owner)
      this.watch = new ChangeWatch(this.file)
      this.trimming = new SqliteTrimming(this.file, identityLimits)
      this.stats = new Stats(this)
      this.#findStream = this.file.database.prepare('SELECT position FROM rivulet_stream WHERE name = ?')
      this.#moveStream = this.file.database.prepare(
        'INSERT INTO rivulet_stream VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position',
      )
    } catch (error) {
      this.file.close()
      throw error
    }
  }

  /** The upstream position of a stream. */
  streamPosition(name: string): string | null {
    const position = this.#findStream.get(storedText(name))?.['position']
    return typeof position === 'string' ? originalText(position) : null
  }

  moveStream(name: string, position: string): void {
    this.#moveStream.run(storedText(name), storedText(position))
  }

  close(): void {
    // The lock first: whatever becomes of the file, others may claim what this log had.
    try {
      this.claims.close()
    } finally {
      this.file.close()
    }
  }
}
