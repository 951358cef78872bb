import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { isObject, parseJson } from '../../protocol/json.ts'
import { isThenable } from '../../protocol/thenable.ts'
import { hasWalResetBug, walResetBugMessage } from '../../protocol/wal-reset-bug.ts'
import type { Entry, Fence, Position, ReaderState } from '../store/contract.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'
import type {
  AppliedEffect,
  Effect,
  EffectCommit,
  EffectResult,
  EffectState,
  EffectStore,
  MovedEffects,
  SentDeadLetters,
} from '../store/effect-store.ts'
import { EffectError, FencedError } from '../errors.ts'
import type { LogError } from '../errors.ts'
import { anotherPathOf, ONE_PATH } from './file-system.ts'
import { openFilesAt } from './log-file.ts'
import { damaged, isConstraint, isNestedBegin, logFileError, mayRollBack } from './sqlite-error.ts'
import { whileBusy } from './write-queue.ts'

/** How long the end of another program's transaction is waited for, in ms. */
const PATIENCE = 60_000

/**
 * The tables of cursors beside effects, in the user's database. One row for each consumer, of any log: a position says which.
 *
 * The database of the effects is the user's own connection. It is not attached to the log's: in WAL mode, a transaction over
 * several attached files is atomic for each file and not for all of them.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS rivulet_effect_cursor (
    reader TEXT PRIMARY KEY,
    token INTEGER NOT NULL, -- of the claim that may write here
    cursor TEXT, -- null until the log knows the consumer
    acknowledged TEXT NOT NULL -- positions after the cursor, as a JSON array
  ) WITHOUT ROWID, STRICT;

  -- Entries after the cursor whose effects are in the open transaction. What an effect commits by itself stays here until the
  -- consumer begins again and has put it in order.
  CREATE TABLE IF NOT EXISTS rivulet_effect_applied (
    reader TEXT NOT NULL,
    position TEXT NOT NULL,
    PRIMARY KEY (reader, position)
  ) WITHOUT ROWID, STRICT;

  -- Entries without their effect. The row of one that was handed out again and is handled stays until the log has removed its letter.
  CREATE TABLE IF NOT EXISTS rivulet_effect_dead_letter (
    reader TEXT NOT NULL,
    position TEXT NOT NULL,
    letter TEXT, -- JSON; null once the log has it
    is_handled INTEGER NOT NULL,
    PRIMARY KEY (reader, position)
  ) WITHOUT ROWID, STRICT;

  -- The states of readers in a copy of their log, until either log is used.
  CREATE TABLE IF NOT EXISTS rivulet_effect_moved (
    reader TEXT PRIMARY KEY,
    consumer TEXT NOT NULL,
    state TEXT -- an EffectState as JSON; null for a reader that the copy does not have
  ) WITHOUT ROWID, STRICT;
`

const NOTHING_KEPT: EffectState = {
  state: undefined,
  applied: [],
  deadLetters: [],
  redelivered: [],
  sent: [],
}

/** Advice if a later claim than the log knows has written into the database. */
const PUT_BACK =
  'See that only one runs. If an earlier state of the log was put back, let the consumer go on where that has it: rivulet log rewind'

/** Advice if the log of the effects was copied since they were taken over. */
const COPIED = 'The log was copied meanwhile: start the consumer again, in one of the two logs'

/** The cursors and dead letters beside the effects of an SQLite database. */
export class EffectDatabase implements EffectStore<DatabaseSync> {
  readonly name: string
  readonly #database: DatabaseSync
  #prepared: ReturnType<typeof prepare> | undefined

  constructor(database: DatabaseSync) {
    this.#database = database
    this.name = (database.isOpen ? database.location() : 'a database') ?? 'a database in memory'
  }

  /** The stored state of a reader; undefined for an unknown one. */
  async peek(reader: string): Promise<EffectState | undefined> {
    await this.#create()
    return this.#attempt(() => this.#find(reader)?.kept)
  }

  /** Stores the token of a fence, with no state if there is none. */
  async take({ name, token }: Fence): Promise<EffectState> {
    await this.#create()
    return this.#transaction((statements) => {
      const { token: last = 0, kept = NOTHING_KEPT } = this.#find(name) ?? {}
      if (last > token) throw new FencedError(this.name, name, PUT_BACK)
      // Rows without a cursor are of a consumer that was removed here.
      if (last === 0)
        for (const statement of [statements.forgetApplied, statements.forgetLetters]) statement.run(name)
      this.#takeOver(name, token)
      return kept
    })
  }

  async givenUp(reader: string, positions: readonly Position[]): Promise<readonly Position[]> {
    return this.#attempt(() =>
      positions.filter((position) => this.#statements.deadLetter.get(reader, position)?.['is_handled'] === 0),
    )
  }

  async commit({ name, token }: Fence, commit: EffectCommit<DatabaseSync>): Promise<EffectResult> {
    try {
      return await this.#transaction((statements) => {
        if (statements.token.get(name)?.['token'] !== token) throw new FencedError(this.name, name)
        if (statements.moved.get(name) !== undefined) throw new FencedError(this.name, name, COPIED)
        const outcomes: ({ readonly error: unknown } | undefined)[] = []
        const applied: Position[] = []
        for (const effect of commit.effects()) {
          const failure = this.#failureOf(name, effect)
          outcomes.push(failure)
          if (failure === undefined) applied.push(...effect.positions)
        }
        for (const sent of commit.sent) this.#sent(name, sent)
        const state = commit.stateAfter(applied)
        if (state !== undefined) this.#save(name, state)
        return { outcomes }
      })
    } catch (error) {
      if (isConstraint(error)) return { refused: { error } }
      throw error
    }
  }

  /**
   * Takes the reader over, whatever its fence was, and adds the missing rows of the log's dead letters, as handled: a row and the cursor
   * are stored together, so an entry behind the cursor that has no row has had its effect, and one after it comes again by itself.
   * Transactions with another fence are refused from now on.
   */
  async adopt({ name, token }: Fence, deadLetters: readonly Position[]): Promise<void> {
    await this.#transaction((statements) => {
      this.#takeOver(name, token)
      for (const position of deadLetters) statements.addMissing.run(name, position, 1)
    })
  }

  /**
   * Sets the state to the one that the log has, with the dead letters that it has. Transactions with another fence are refused from now on.
   * Resolves with the cursor before; undefined for none.
   */
  async rewind(
    { name, token }: Fence,
    state: ReaderState,
    deadLetters: readonly Position[],
  ): Promise<Position | undefined> {
    await this.#create()
    return this.#transaction((statements) => {
      const before = this.#find(name)?.kept.state?.cursor
      this.#takeOver(name, token)
      this.#save(name, state)
      statements.forgetLetters.run(name)
      for (const position of deadLetters) statements.addDeadLetter.run(name, position)
      return before
    })
  }

  readonly moved: MovedEffects = {
    peek: async (reader) => {
      await this.#create()
      return this.#attempt(() => this.#findMoved(reader))
    },
    take: async ({ name, token }) => {
      await this.#create()
      return this.#transaction((statements) => {
        const state = this.#findMoved(name)
        if (state === undefined) throw new FencedError(this.name, name, COPIED)
        statements.take.run(name, token)
        this.#replace(name, state)
        for (const { reader } of statements.notMoved.all(name)) {
          const gone = [statements.forgetMoved, statements.forgetCursor, statements.forgetApplied]
          for (const statement of [...gone, statements.forgetLetters]) statement.run(String(reader))
        }
        statements.forgetMoved.run(name)
        return state
      })
    },
    store: async (consumer, readers, statesOf) => {
      await this.#create()
      await this.#transaction((statements) => {
        const [own, moved] = [new Map<string, EffectState>(), new Map<string, EffectState>()]
        for (const reader of readers) {
          const [ownState, movedState] = [this.#find(reader)?.kept, this.#findMoved(reader)]
          if (ownState !== undefined) own.set(reader, ownState)
          if (movedState !== undefined) moved.set(reader, movedState)
        }
        const states = statesOf(own, moved)
        statements.forgetCopy.run(consumer)
        for (const reader of new Set([...own.keys(), ...states.keys()])) {
          const state = states.get(reader)
          statements.move.run(reader, consumer, state === undefined ? null : JSON.stringify(state))
        }
      })
    },
  }

  /** Stores the token, and drops the states of the consumer in a copy of the log. */
  #takeOver(reader: string, token: number): void {
    this.#statements.take.run(reader, token)
    this.#statements.forgetCopyOf.run(reader)
  }

  /** Replaces all that is stored of a reader but its token. */
  #replace(reader: string, { state, deadLetters, redelivered, sent }: EffectState): void {
    const { forgetLetters, addMissing, keepDeadLetter, handled } = this.#statements
    if (state !== undefined) this.#save(reader, state)
    forgetLetters.run(reader)
    for (const position of [...redelivered, ...sent]) addMissing.run(reader, position, 0)
    for (const deadLetter of deadLetters)
      keepDeadLetter.run(reader, deadLetter.position, JSON.stringify(deadLetter))
    for (const position of redelivered) handled.run(reader, position)
  }

  #save(reader: string, { cursor, acknowledged }: ReaderState): void {
    this.#statements.save.run(cursor, JSON.stringify(acknowledged), reader)
    this.#statements.forgetApplied.run(reader)
  }

  #sent(reader: string, { added, removed }: SentDeadLetters): void {
    const { sent, forgetHandled } = this.#statements
    for (const position of added) sent.run(reader, position)
    for (const position of removed) forgetHandled.run(reader, position)
  }

  /** Applies one effect, or gives its entry up. Returns the error of an effect that has failed and left the transaction open. */
  #failureOf(reader: string, effect: Effect<DatabaseSync>): { readonly error: unknown } | undefined {
    const { applying, handled, keepDeadLetter } = this.#statements
    try {
      this.#whole(reader, effect, () => {
        for (const position of effect.positions) {
          // Acknowledged before its effect, until the state is stored: an effect that commits by itself commits this too. A dead letter has a
          // row of its own.
          if (!effect.isRedelivered) applying.run(reader, position)
          if (effect.entries !== undefined) continue
          if (effect.deadLetter === undefined) handled.run(reader, position)
          else keepDeadLetter.run(reader, position, JSON.stringify(effect.deadLetter))
        }
        if (effect.entries !== undefined) this.#apply(reader, effect)
      })
      return undefined
    } catch (error) {
      if (error instanceof EffectError || !this.#database.isTransaction) throw error
      return { error }
    }
  }

  #apply(reader: string, effect: AppliedEffect<DatabaseSync>): void {
    const entry = singleEntry(effect)
    const { deadLetter, handled } = this.#statements
    for (const position of effect.isRedelivered ? effect.positions : []) {
      const isHandled = deadLetter.get(reader, position)?.['is_handled']
      if (isHandled === undefined) {
        throw new EffectError(
          this.name,
          `knows nothing of a dead letter that the log hands out again to ${JSON.stringify(reader)}: use the database that has the ` +
            'effects of this consumer; or, if an earlier state of either was put back, run: rivulet log rewind',
          { entry },
        )
      }
      // Before a crash.
      if (isHandled !== 0) return
      handled.run(reader, position)
    }
    const result = effect.apply(this.#database)
    if (!isThenable(result)) return
    // Its result does not matter: the job ends.
    Promise.resolve(result).catch(() => {})
    throw new EffectError(
      this.name,
      'returned a promise: it has to be synchronous, since its transaction ends when it returns. Wait in `prepare`',
      { entry },
    )
  }

  /**
   * Runs the work in one transaction, again while the database is busy. The event loop is free between two attempts.
   *
   * Rejects with an EffectError while the user has a transaction open, with SQLite's own error if the commit violates a
   * deferred constraint, and with a LogFileError for what SQLite refuses otherwise.
   */
  #transaction<Result>(work: (statements: ReturnType<typeof prepare>) => Result): Promise<Result> {
    return this.#attempt(() =>
      this.#withoutTimeout(() => {
        // The log itself may be in the file.
        const logs = openFilesAt(this.#database.location())
        for (const log of logs) log.checkSound()
        const statements = this.#statements
        statements.begin.run()
        try {
          const result = work(statements)
          try {
            statements.commit.run()
          } catch (error) {
            for (const log of logs) log.commitFailed(error)
            throw error
          }
          return result
        } catch (error) {
          // After a commit that failed, the transaction may be open. After a full disk, SQLite has rolled back.
          if (this.#database.isTransaction) statements.rollback.run()
          throw error
        }
      }),
    )
  }

  /** Runs one effect, so that it is stored whole or not at all, and the others of its transaction stay. */
  #whole(reader: string, effect: Effect<DatabaseSync>, run: () => void): void {
    const { savepoint, release, rollbackTo } = this.#statements
    savepoint.run()
    try {
      run()
      // It is gone if the effect has ended the transaction, also if it has begun another one.
      release.run()
    } catch (error) {
      if (isNestedBegin(error)) throw this.#notItsOwn('began a transaction', singleEntry(effect), error)
      try {
        rollbackTo.run()
        release.run()
      } catch {
        throw this.#ended(reader, effect, error)
      }
      throw error
    }
  }

  /** The reason why the transaction has ended within an effect. SQLite ends it by itself when a disk is full, for instance. */
  #ended(reader: string, effect: Effect<DatabaseSync>, error: unknown): unknown {
    const { hasApplied, deadLetter } = this.#statements
    const isCommitted =
      hasApplied.get(reader) !== undefined ||
      (effect.isRedelivered &&
        effect.positions.some((position) => deadLetter.get(reader, position)?.['is_handled'] === 1))
    if (mayRollBack(error) && !isCommitted) return logFileError(this.name, error)
    return this.#notItsOwn('ended its transaction', singleEntry(effect), error)
  }

  #notItsOwn(what: string, entry: Entry | undefined, cause: unknown): EffectError {
    return new EffectError(
      this.name,
      `${what}: leave BEGIN, COMMIT, ROLLBACK and savepoints to exactlyOnce. What it has committed is not applied again`,
      { entry, cause },
    )
  }

  get #statements() {
    this.#prepared ??= prepare(this.#database)
    return this.#prepared
  }

  /** Creates the tables. Rejects for a file that another path can reach, by which effects would be lost. */
  async #create(): Promise<void> {
    const file = this.#database.isOpen ? this.#database.location() : null
    const { sqlite = 'unknown' } = process.versions
    if (file !== null && hasWalResetBug(sqlite)) throw new EffectError(this.name, walResetBugMessage(sqlite))
    const another = file === null ? undefined : anotherPathOf(file)
    if (another !== undefined)
      throw new EffectError(this.name, `cannot be stored: the file ${another}. ${ONE_PATH}`)
    return this.#attempt(() => this.#withoutTimeout(() => this.#database.exec(SCHEMA)))
  }

  async #attempt<Result>(work: () => Result): Promise<Result> {
    try {
      return await whileBusy(() => {
        this.#checkFree()
        return work()
      }, PATIENCE)
    } catch (error) {
      // The constraints are those of the effects.
      throw isConstraint(error) ? error : logFileError(this.name, error)
    }
  }

  #checkFree(): void {
    if (!this.#database.isOpen) throw new EffectError(this.name, 'cannot be stored: the database was closed')
    if (!this.#database.isTransaction) return
    throw new EffectError(
      this.name,
      'cannot be stored: a transaction is open on its connection. End each transaction in the turn in which it begins, or ' +
        'give exactlyOnce a connection of its own',
    )
  }

  /** Runs work without SQLite's own waiting, which blocks the event loop. */
  #withoutTimeout<Result>(work: () => Result): Result {
    const timeout = Number(prepared(this.#database, 'PRAGMA busy_timeout').get()?.['timeout'] ?? 0)
    if (timeout === 0) return work()
    this.#database.exec('PRAGMA busy_timeout = 0')
    try {
      return work()
    } finally {
      if (this.#database.isOpen) this.#database.exec(`PRAGMA busy_timeout = ${timeout}`)
    }
  }

  #find(reader: string): { readonly token: number; readonly kept: EffectState } | undefined {
    const found = this.#statements.find.get(reader)
    if (found === undefined) return undefined
    const { token, cursor, acknowledged } = found
    const positions = parseJson(String(acknowledged))
    if (!Array.isArray(positions)) throw this.#damaged(reader)
    const applied = this.#statements.applied.all(reader).map(({ position }) => String(position))
    const deadLetters = this.#statements.deadLetters.all(reader).map(({ letter }) => {
      const parsed = parseJson(String(letter))
      if (!isDeadLetter(parsed)) throw this.#damaged(reader)
      return parsed
    })
    const state =
      cursor === null ? undefined : { cursor: String(cursor), acknowledged: positions.map(String) }
    const redelivered = this.#statements.allHandled.all(reader).map(({ position }) => String(position))
    const sent = this.#statements.allSent.all(reader).map(({ position }) => String(position))
    return { token: Number(token), kept: { state, applied, deadLetters, redelivered, sent } }
  }

  #findMoved(reader: string): EffectState | undefined {
    const found = this.#statements.moved.get(reader)?.['state']
    if (found === undefined || found === null) return undefined
    const state = parseJson(String(found))
    if (!isEffectState(state)) throw this.#damaged(reader)
    return state
  }

  #damaged(reader: string): LogError {
    return damaged(
      this.name,
      `the cursor of ${JSON.stringify(reader)} in rivulet_effect_cursor cannot be read`,
    )
  }
}

/** The entry of an effect that is of one only. */
function singleEntry({ entries = [] }: Effect<DatabaseSync>): Entry | undefined {
  return entries.length === 1 ? entries[0] : undefined
}

/** A statement that returns what is expected here, whatever the user's connection has as its default. */
function prepared(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReadBigInts(false)
  statement.setReturnArrays(false)
  return statement
}

/** Whether it is a dead letter, as far as this file has written it. */
function isDeadLetter(value: unknown): value is NewDeadLetter {
  return (
    isObject(value) &&
    typeof value['position'] === 'string' &&
    typeof value['attempts'] === 'number' &&
    isObject(value['error']) &&
    (value['redelivery'] === undefined || typeof value['redelivery'] === 'number')
  )
}

/** Whether it is a state in a copy, as far as this file has written it. */
function isEffectState(value: unknown): value is EffectState {
  return (
    isObject(value) &&
    isObject(value['state']) &&
    Array.isArray(value['deadLetters']) &&
    value['deadLetters'].every(isDeadLetter) &&
    ['applied', 'redelivered', 'sent'].every((name) => Array.isArray(value[name]))
  )
}

function prepare(database: DatabaseSync) {
  const sql = (text: string) => prepared(database, text)
  return {
    begin: sql('BEGIN IMMEDIATE'),
    commit: sql('COMMIT'),
    rollback: sql('ROLLBACK'),
    savepoint: sql('SAVEPOINT rivulet_effect'),
    release: sql('RELEASE rivulet_effect'),
    rollbackTo: sql('ROLLBACK TO rivulet_effect'),
    find: sql('SELECT token, cursor, acknowledged FROM rivulet_effect_cursor WHERE reader = ?'),
    token: sql('SELECT token FROM rivulet_effect_cursor WHERE reader = ?'),
    take: sql(
      `INSERT INTO rivulet_effect_cursor VALUES (?, ?, NULL, '[]') ON CONFLICT DO UPDATE SET token = excluded.token`,
    ),
    save: sql('UPDATE rivulet_effect_cursor SET cursor = ?, acknowledged = ? WHERE reader = ?'),
    applying: sql('INSERT INTO rivulet_effect_applied VALUES (?, ?)'),
    applied: sql('SELECT position FROM rivulet_effect_applied WHERE reader = ?'),
    hasApplied: sql('SELECT 1 FROM rivulet_effect_applied WHERE reader = ? LIMIT 1'),
    forgetApplied: sql('DELETE FROM rivulet_effect_applied WHERE reader = ?'),
    deadLetters: sql(
      'SELECT letter FROM rivulet_effect_dead_letter WHERE reader = ? AND letter IS NOT NULL ORDER BY position',
    ),
    keepDeadLetter: sql(
      `INSERT INTO rivulet_effect_dead_letter VALUES (?, ?, ?, 0)
       ON CONFLICT DO UPDATE SET letter = excluded.letter, is_handled = 0`,
    ),
    addMissing: sql('INSERT INTO rivulet_effect_dead_letter VALUES (?, ?, NULL, ?) ON CONFLICT DO NOTHING'),
    addDeadLetter: sql('INSERT INTO rivulet_effect_dead_letter VALUES (?, ?, NULL, 0)'),
    deadLetter: sql('SELECT is_handled FROM rivulet_effect_dead_letter WHERE reader = ? AND position = ?'),
    sent: sql('UPDATE rivulet_effect_dead_letter SET letter = NULL WHERE reader = ? AND position = ?'),
    handled: sql(
      'UPDATE rivulet_effect_dead_letter SET is_handled = 1, letter = NULL WHERE reader = ? AND position = ?',
    ),
    allHandled: sql(
      'SELECT position FROM rivulet_effect_dead_letter WHERE reader = ? AND is_handled = 1 ORDER BY position',
    ),
    allSent: sql(
      `SELECT position FROM rivulet_effect_dead_letter WHERE reader = ? AND letter IS NULL AND is_handled = 0
       ORDER BY position`,
    ),
    forgetHandled: sql(
      'DELETE FROM rivulet_effect_dead_letter WHERE reader = ? AND position = ? AND is_handled = 1',
    ),
    forgetLetters: sql('DELETE FROM rivulet_effect_dead_letter WHERE reader = ?'),
    forgetCursor: sql('DELETE FROM rivulet_effect_cursor WHERE reader = ?'),
    move: sql('INSERT INTO rivulet_effect_moved VALUES (?, ?, ?)'),
    moved: sql('SELECT state FROM rivulet_effect_moved WHERE reader = ?'),
    notMoved: sql(
      `SELECT reader FROM rivulet_effect_moved
       WHERE state IS NULL AND consumer = (SELECT consumer FROM rivulet_effect_moved WHERE reader = ?)`,
    ),
    forgetMoved: sql('DELETE FROM rivulet_effect_moved WHERE reader = ?'),
    forgetCopy: sql('DELETE FROM rivulet_effect_moved WHERE consumer = ?'),
    forgetCopyOf: sql(
      `DELETE FROM rivulet_effect_moved WHERE consumer = (SELECT consumer FROM rivulet_effect_moved WHERE reader = ?)`,
    ),
  }
}
