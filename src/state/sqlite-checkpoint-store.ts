import type { DatabaseSync } from 'node:sqlite'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkInteger, checkText } from '../protocol/check.ts'
import { isAtLeastAsComplete, completeness } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { isThenable } from '../protocol/thenable.ts'
import type { CheckpointChanges, CheckpointState, CheckpointStore, HandledFact } from './checkpoint-store.ts'
import { CheckpointError, StateFileError } from './errors.ts'
import { MAX_HANDLED, MOST_HANDLED, REMEMBER } from './handled-facts.ts'
import type { HandledFactsLimits } from './handled-facts.ts'
import { checkNotHeld, Lease, LEASE_SCHEMA, leaseOptions } from './lease.ts'
import type { LeaseOptions } from './lease.ts'
import { StateFile } from './state-file.ts'
import type { StateLayout } from './state-file.ts'

/** Settings of {@link sqliteCheckpointStore}. */
export interface SqliteCheckpointStoreOptions extends LeaseOptions, HandledFactsLimits {
  /** Tells pipelines apart that share a file. Default `default`. */
  readonly name?: string
}

/** A checkpoint store in an SQLite database. */
export interface SqliteCheckpointStore extends CheckpointStore {
  /** The database that holds the checkpoint, and the effects of {@link SqliteCheckpointStore.exactlyOnce}. */
  readonly database: DatabaseSync
  /**
   * Makes a handler for `deliver` whose effect is in this database, and happens exactly once: the effect and the word
   * that the event is handled are one transaction, and an event of which that word says as much is skipped. The effect is
   * synchronous, neither begins nor ends a transaction, and what it throws rolls it back and is thrown again.
   *
   * Exactly once holds for as long as handled facts are remembered; see `maxHandled`.
   *
   * The handler throws {@link CheckpointInUseError} once another process has taken the checkpoint over, and
   * {@link CheckpointError} for an effect that returns a promise.
   *
   * @example
   * const store = sqliteCheckpointStore('pipeline.db')
   * const checkpoint = await openCheckpoint(store)
   * const insert = store.database.prepare('INSERT INTO finding (id, text) VALUES (?, ?)')
   * const handler = store.exactlyOnce((event) => insert.run(event.id, JSON.stringify(event.data)))
   * client.watch({ monitors: ['monitor_1'], checkpoint }).pipe(deliver(handler, { checkpoint })).subscribe()
   */
  exactlyOnce<Event extends ResearchEvent>(
    effect: (event: Event, database: DatabaseSync) => void,
  ): (event: Event) => void
  load(): CheckpointState
  save(changes: CheckpointChanges): void
  unreadable(stream: string): StateFileError
  close(): void
}

/**
 * Facts are a log, that of all checkpoints of a file in one: writing at the end of a table costs a fraction of writing
 * elsewhere, or of keeping an index of ids that are as good as random.
 */
const HANDLED_TABLE = `
    CREATE TABLE IF NOT EXISTS rivulet_checkpoint_handled (
      seq INTEGER PRIMARY KEY, -- in the order of handling; a fact whose copies were handled apart stands here twice
      checkpoint TEXT NOT NULL,
      number INTEGER NOT NULL, -- the same order, within the checkpoint
      source TEXT NOT NULL,
      id TEXT NOT NULL,
      parts INTEGER NOT NULL,
      handled_at INTEGER NOT NULL
    ) STRICT;
`

const LAYOUT: StateLayout = {
  part: 'checkpoint',
  version: 2,
  tables: ['rivulet_lease', 'rivulet_checkpoint_position', 'rivulet_checkpoint_handled'],
  schema: `
    ${LEASE_SCHEMA}
    CREATE TABLE IF NOT EXISTS rivulet_checkpoint_position (
      checkpoint TEXT NOT NULL,
      stream TEXT NOT NULL,
      cursor TEXT NOT NULL,
      PRIMARY KEY (checkpoint, stream)
    ) WITHOUT ROWID, STRICT;
    ${HANDLED_TABLE}
  `,
  upgrades: {
    // Each checkpoint had its own place in the table, and none of them was its end.
    1: `
      ALTER TABLE rivulet_checkpoint_handled RENAME TO rivulet_checkpoint_handled_1;
      ${HANDLED_TABLE}
      INSERT INTO rivulet_checkpoint_handled (checkpoint, number, source, id, parts, handled_at)
        SELECT checkpoint, seq, source, id, parts, handled_at FROM rivulet_checkpoint_handled_1 ORDER BY seq;
      DROP TABLE rivulet_checkpoint_handled_1;
    `,
  },
}

/**
 * Only `exactlyOnce` looks facts up, and has the index made. It begins with what tells facts apart, so that SQLite does not
 * take it for a way to all facts of a checkpoint, which would then have to be sorted.
 */
const FACT_INDEX = `
  CREATE INDEX IF NOT EXISTS rivulet_checkpoint_fact ON rivulet_checkpoint_handled (source, id, checkpoint, parts)
`

const HANDLED = `
  SELECT id, source, parts FROM rivulet_checkpoint_handled WHERE checkpoint = ? AND seq >= ? ORDER BY seq
`

/** Facts that are saved between two prunings. */
const PRUNE_EVERY = 1_000

/**
 * A checkpoint store in an SQLite file, or in a database of your own, beside your tables.
 *
 * A crash of the process loses nothing. A power cut may take back the last saves, which then come again from the
 * service; with {@link SqliteCheckpointStore.exactlyOnce} saves are synced to the disk, so that an inbox never forgets a
 * webhook before its effect is there to stay. Of a database of your own the settings are yours: write-ahead logging with
 * `synchronous` at `FULL` gives the same.
 *
 * Beside a file that is opened here stands its write-ahead log, which grows to 16 MB or somewhat more.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 * @throws {StateFileError} for a file that cannot be used. It is left as it is.
 * @throws {CheckpointInUseError} for a file of an older version that another process works with: its layout would be changed.
 */
export function sqliteCheckpointStore(
  file: string | DatabaseSync,
  options: SqliteCheckpointStoreOptions = {},
): SqliteCheckpointStore {
  const { name = 'default', maxHandled = MAX_HANDLED, remember = REMEMBER } = options
  checkText('name', name)
  checkInteger('maxHandled', maxHandled, 0, MOST_HANDLED)
  checkDuration('remember', remember, true)
  return new SqliteStore(file, name, maxHandled, remember, leaseOptions(options))
}

class SqliteStore implements SqliteCheckpointStore {
  readonly database: DatabaseSync
  readonly maxHandled: number
  readonly #file: StateFile
  readonly #name: string
  readonly #remember: number
  readonly #clock: () => number
  readonly #lease: Lease
  readonly #statements: ReturnType<typeof prepare>
  /** Number of the fact that was recorded last. No other process records any while this one has the lease. */
  #number = 0
  /** None of its facts stands before this one in the table, where those of others may. */
  #first = 0
  #unpruned = 0
  #transactional = false

  constructor(
    target: string | DatabaseSync,
    name: string,
    maxHandled: number,
    remember: number,
    lease: Required<LeaseOptions>,
  ) {
    const checkUpgrade = (database: DatabaseSync, file: string) =>
      checkNotHeld(database, file, 'checkpoint', lease.clock())
    this.#file = new StateFile(target, { ...LAYOUT, checkUpgrade }, { synchronous: 'NORMAL' })
    this.database = this.#file.database
    this.#name = name
    this.maxHandled = maxHandled
    this.#remember = remember
    this.#clock = lease.clock
    this.#lease = new Lease(this.#file, 'checkpoint', name, lease)
    this.#statements = prepare(this.database)
  }

  load(): CheckpointState {
    this.#lease.acquire()
    try {
      return this.#file.attempt(() => {
        this.#first = 0
        this.#number = Number(this.#statements.last.get(this.#name)?.['number'] ?? 0)
        this.#prune()
        const rows = this.#statements.positions.all(this.#name)
        const positions = new Map(rows.map(({ stream, cursor }) => [String(stream), String(cursor)]))
        return { positions, handled: this.#handled() }
      })
    } catch (error) {
      this.#lease.release()
      throw error
    }
  }

  save({ positions, handled }: CheckpointChanges): void {
    // One sync makes the effects durable that were committed before without any.
    if (this.#transactional) this.#file.synchronize('FULL')
    try {
      this.#transaction(() => {
        this.#lease.renew()
        this.#file.attempt(() => {
          for (const [stream, cursor] of positions) {
            this.#statements.setPosition.run(this.#name, stream, cursor)
          }
          for (const fact of handled) {
            // Recorded together with its effect.
            if (this.#transactional && this.#isHandled(fact)) continue
            this.#record(fact)
          }
          if (this.#unpruned >= PRUNE_EVERY) this.#prune()
        })
      })
    } finally {
      if (this.#transactional) this.#file.synchronize('NORMAL')
    }
  }

  /** One transaction. After one that failed, what was recorded is not there, and what was pruned is back. */
  #transaction(work: () => void): void {
    const [number, unpruned] = [this.#number, this.#unpruned]
    try {
      this.#file.transaction(work)
    } catch (error) {
      this.#number = number
      this.#unpruned = unpruned
      this.#first = 0
      throw error
    }
  }

  exactlyOnce<Event extends ResearchEvent>(
    effect: (event: Event, database: DatabaseSync) => void,
  ): (event: Event) => void {
    if (typeof effect !== 'function') throw new ArgumentError('effect', 'a function', effect)
    this.#file.attempt(() => this.database.exec(FACT_INDEX))
    this.#transactional = true
    return (event) => {
      const fact = { id: event.id, source: event.source, parts: completeness(event) }
      this.#transaction(() => {
        this.#lease.check()
        if (this.#file.attempt(() => this.#isHandled(fact))) return
        checkEffect(effect(event, this.database), this.database)
        this.#file.attempt(() => this.#record(fact))
      })
    }
  }

  unreadable(stream: string): StateFileError {
    const row = `checkpoint = ${literal(this.#name)} AND stream = ${literal(stream)}`
    return new StateFileError(
      this.#file.name,
      `has a position that cannot be read: the row of rivulet_checkpoint_position with ${row}. Put its cursor right, or ` +
        `have the stream begin anew with: DELETE FROM rivulet_checkpoint_position WHERE ${row}. It was left as it is`,
    )
  }

  close(): void {
    try {
      this.#lease.release()
    } finally {
      this.#file.close()
    }
  }

  #isHandled({ id, source, parts: told }: HandledFact): boolean {
    const rows = this.#statements.find.all(this.#name, source, id)
    return (
      rows.length > 0 &&
      isAtLeastAsComplete(
        rows.reduce((all, row) => all | Number(row['parts']), 0),
        told,
      )
    )
  }

  #record({ id, source, parts: told }: HandledFact): void {
    this.#number += 1
    this.#unpruned += 1
    this.#statements.record.run(this.#name, this.#number, source, id, told, this.#clock())
  }

  /** Forgets what is too old or too much. Facts stand in the order of handling, so only those are looked at. */
  #prune(): void {
    this.#unpruned = 0
    const { firstKept, prune } = this.#statements
    const number = this.#number - this.maxHandled
    const horizon = this.#clock() - this.#remember
    const kept = firstKept.get(this.#name, this.#first, number, horizon)?.['seq']
    prune.run(this.#name, this.#first, Number(kept ?? Number.MAX_SAFE_INTEGER))
    this.#first = Number(kept ?? 0)
  }

  #handled(): Iterable<HandledFact> {
    const { database } = this
    const file = this.#file
    const name = this.#name
    const first = () => this.#first
    // Read while it is asked for: all of it at once would be megabytes that nobody needs.
    return {
      *[Symbol.iterator]() {
        try {
          for (const { id, source, parts: told } of database.prepare(HANDLED).iterate(name, first())) {
            yield { id: String(id), source: String(source), parts: Number(told) }
          }
        } catch (error) {
          throw file.explain(error)
        }
      },
    }
  }
}

function prepare(database: DatabaseSync) {
  return {
    positions: database.prepare(
      'SELECT stream, cursor FROM rivulet_checkpoint_position WHERE checkpoint = ?',
    ),
    setPosition: database.prepare(
      `INSERT INTO rivulet_checkpoint_position VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET cursor = excluded.cursor`,
    ),
    last: database.prepare(
      'SELECT number FROM rivulet_checkpoint_handled WHERE checkpoint = ? ORDER BY seq DESC LIMIT 1',
    ),
    find: database.prepare(
      'SELECT parts FROM rivulet_checkpoint_handled WHERE checkpoint = ? AND source = ? AND id = ?',
    ),
    record: database.prepare('INSERT INTO rivulet_checkpoint_handled VALUES (NULL, ?, ?, ?, ?, ?, ?)'),
    firstKept: database.prepare(
      `SELECT seq FROM rivulet_checkpoint_handled
       WHERE checkpoint = ? AND seq >= ? AND number > ? AND handled_at > ? ORDER BY seq LIMIT 1`,
    ),
    prune: database.prepare(
      'DELETE FROM rivulet_checkpoint_handled WHERE checkpoint = ? AND seq >= ? AND seq < ?',
    ),
  }
}

/** Refuses an effect that goes on after its transaction, or that has ended it. */
function checkEffect(result: unknown, database: DatabaseSync): void {
  if (isThenable(result)) {
    // It is rolled back, so it has to fail; what becomes of the promise is no longer of interest.
    Promise.resolve(result).catch(() => {})
    throw new CheckpointError(
      'an effect of `exactlyOnce` returned a promise: it has to be synchronous, since its transaction ends when it returns',
    )
  }
  if (!database.isTransaction) {
    throw new CheckpointError(
      'an effect of `exactlyOnce` ended its transaction: leave BEGIN, COMMIT and ROLLBACK to the store',
    )
  }
}

/** The text as SQL writes it. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
