import { DatabaseSync } from 'node:sqlite'
import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { effectHandler } from '../consume/exactly-once.ts'
import type { PlainEffect, PreparedEffect } from '../consume/exactly-once.ts'
import type { EffectHandler } from '../consume/effects.ts'
import type { Entry } from '../store/contract.ts'
import type { EffectStore } from '../store/effect-store.ts'
import { EffectDatabase } from './effect-database.ts'

/**
 * A handler for `log.consume` whose effect in an SQLite database happens exactly once for each entry, whatever is killed and
 * whenever. The cursor of the consumer is in that database, and is written in the transaction of the effect.
 *
 * ```ts
 * import { DatabaseSync } from 'node:sqlite'
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { exactlyOnce } from 'rivulet/log/sqlite'
 *
 * const log = await openLog(memoryStore())
 * const database = new DatabaseSync(':memory:')
 * database.exec('CREATE TABLE IF NOT EXISTS run (id TEXT PRIMARY KEY, status TEXT)')
 * const upsert = database.prepare('INSERT OR REPLACE INTO run VALUES (?, ?)')
 *
 * log.consume(
 *   'ledger',
 *   { types: ['task_run.state'] },
 *   exactlyOnce(database, {
 *     effect: ({ data: { run } }) => void upsert.run(run.run_id, run.status),
 *   }),
 * )
 * ```
 *
 * With `batch`, an effect gets all entries of a batch, which it acknowledges together.
 *
 * Effects that wait at the same time share a transaction of about 10 ms, and each of them is stored whole or not at all. They
 * are applied in the order in which they are prepared; with `key`, in the order of the log within each key. Default
 * `concurrency`: 8 with `prepare` or `batch`, otherwise 256.
 *
 * The job rejects with an `EffectError` if an effect returns a promise or begins or ends a transaction, and while another
 * transaction is open on the connection; with a `FencedError` once another process has taken the consumer over; and with a
 * `LogPositionError` for a cursor of another log. These are not retried and never become dead letters. An effect that commits by
 * itself counts as applied, and so do those before it.
 *
 * @param database The connection of the effects, in WAL mode for the sake of its readers. It may be to the log's own file. It
 * is used in a turn of the event loop of its own, with a busy timeout of 0 meanwhile.
 * @throws {ArgumentError} for an argument that cannot be right.
 */
export function exactlyOnce<Given = Entry, P = unknown>(
  database: DatabaseSync,
  effect: PreparedEffect<Given, P, DatabaseSync>,
): EffectHandler<Given>
export function exactlyOnce<Given = Entry>(
  database: DatabaseSync,
  effect: PlainEffect<Given, DatabaseSync>,
): EffectHandler<Given>
export function exactlyOnce<Given = Entry, P = unknown>(
  database: DatabaseSync,
  effect: PreparedEffect<Given, P, DatabaseSync> | PlainEffect<Given, DatabaseSync>,
): EffectHandler<Given> {
  checkDatabase(database)
  // A connection that is closed and opened again loses its statements.
  return effectHandler(() => new EffectDatabase(database), effect)
}

/**
 * An SQLite database that has effects of consumers, as {@link exactlyOnce} stores them: `migrateLog` takes it, so that these consumers move
 * along with their log.
 *
 * @param database A connection without an open transaction.
 * @throws {ArgumentError} for another value.
 */
export function sqliteEffects(database: DatabaseSync): EffectStore<DatabaseSync> {
  checkDatabase(database)
  return new EffectDatabase(database)
}

/** Throws an ArgumentError for what is no database. */
export function checkDatabase(database: DatabaseSync): void {
  if (database instanceof DatabaseSync) return
  throw new ArgumentError('database', 'a DatabaseSync of node:sqlite', hidden(database))
}
