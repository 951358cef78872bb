import { setImmediate as nextTurn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/event.ts'
import { isThenable } from '../../protocol/thenable.ts'
import type { Entry, Fence, Position, ReaderState } from '../store/contract.ts'
import type { NewDeadLetter, Redelivery } from '../store/dead-letter-store.ts'
import { EFFECTS } from './effects.ts'
import type { EffectConsumer, EffectHandler, Effects, KeptState, SentDeadLetters } from './effects.ts'
import { EffectError, FencedError, LogClosedError } from '../errors.ts'
import { EffectDatabase } from '../sqlite/effect-database.ts'
import { isConstraint } from '../sqlite/sqlite-error.ts'

/** How long effects are added to one transaction, in ms: other writers wait for that long. */
const MAX_TRANSACTION = 10

/** Entries in flight: while `prepare` waits for other services, and otherwise as many as share a transaction. */
const PREPARED_AT_ONCE = 8
const APPLIED_AT_ONCE = 256

/** An effect, and the preparation before its transaction. */
export interface PreparedEffect<E, P> {
  /** Asks other services, for instance. Called again when it or the effect fails, and aborted as a handler is. */
  readonly prepare: (entry: E, signal: AbortSignal) => P | PromiseLike<P>
  /**
   * Writes into the database, synchronously. What it throws rolls back what it did, and is retried as a handler's error is. So is
   * a violation of a deferred constraint, which SQLite finds at the commit. It must not begin or end a transaction, and is called
   * again where its transaction was rolled back.
   */
  readonly effect: (entry: E, prepared: P) => void
}

/** An effect without preparation. */
export interface PlainEffect<E> {
  readonly prepare?: undefined
  /** As {@link PreparedEffect.effect}. */
  readonly effect: (entry: E) => void
}

/**
 * A handler for `log.consume` whose effect in an SQLite database happens exactly once for each entry, whatever is killed and
 * whenever. The cursor of the consumer is in that database, and is written in the transaction of the effect.
 *
 * ```ts
 * import { DatabaseSync } from 'node:sqlite'
 * import { memoryLog, openLog } from 'rivulet'
 * import { exactlyOnce } from 'rivulet/log/sqlite'
 *
 * const log = await openLog(memoryLog())
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
 * Effects that wait at the same time share a transaction of about 10 ms, and each of them is stored whole or not at all. They
 * are applied in the order in which they are prepared; with `key`, in the order of the log within each key. Default
 * `concurrency`: 8 with `prepare`, 256 without.
 *
 * The job rejects with an {@link EffectError} where an effect returns a promise or begins or ends a transaction, and while another
 * transaction is open on the connection; with a `FencedError` once another process has taken the consumer over; and with a
 * `LogPositionError` for a cursor of another log. These are not retried and never become dead letters. An effect that commits by
 * itself counts as applied, and so do those before it.
 *
 * @param database The connection of the effects, in WAL mode for the sake of its readers. It may be to the log's own file. It
 * is used in a turn of the event loop of its own, with a busy timeout of 0 meanwhile.
 * @throws {ArgumentError} for an argument that cannot be right.
 */
export function exactlyOnce<E extends Entry, P>(
  database: DatabaseSync,
  effect: PreparedEffect<E, P>,
): EffectHandler<E>
export function exactlyOnce<E extends Entry>(database: DatabaseSync, effect: PlainEffect<E>): EffectHandler<E>
export function exactlyOnce<E extends Entry, P>(
  database: DatabaseSync,
  given: PreparedEffect<E, P> | PlainEffect<E>,
): EffectHandler<E> {
  if (!(database instanceof DatabaseSync)) {
    throw new ArgumentError('database', 'a DatabaseSync of node:sqlite', database)
  }
  if (!isObject(given)) throw new ArgumentError('effect', '{ prepare, effect }', given)
  checkOptions('effect', given, ['prepare', 'effect'])
  const { prepare, effect }: { readonly prepare?: unknown; readonly effect: unknown } = given
  if (typeof effect !== 'function') throw new ArgumentError('effect', 'a function', effect)
  if (prepare !== undefined && typeof prepare !== 'function') {
    throw new ArgumentError('prepare', 'a function', prepare)
  }
  return { [EFFECTS]: () => new SqliteEffects<E, P>(database, given) }
}

/** An item for the next transaction. */
interface Waiting {
  readonly position: Position
  /** The entry; undefined for one that is given up. */
  readonly entry: Entry | undefined
  /** Runs in a savepoint of its own. */
  readonly run: () => void
  readonly signal: AbortSignal | undefined
  resolve(): void
  reject(error: unknown): void
}

interface Outcome {
  readonly item: Waiting
  readonly failure?: { readonly error: unknown }
}

/** The changes of a transaction beside the effects. */
interface Written {
  /** The reader's state. */
  readonly json: string
  /** Number of the noted changes of dead letters in the log. */
  readonly sent: number
}

/** The effects of one consumer. */
class SqliteEffects<E extends Entry, P> implements Effects<E> {
  readonly concurrency: number
  readonly place: string
  readonly #database: EffectDatabase
  readonly #effect: PreparedEffect<E, P> | PlainEffect<E>
  #taken: { readonly fence: Fence; readonly consumer: EffectConsumer } | undefined
  readonly #waiting: Waiting[] = []
  #isRunning = false
  /** Positions that are acknowledged in the database, and may be open in the consumer. */
  readonly #applied = new Set<Position>()
  /** Changes of dead letters in the log, which the next transaction notes. */
  readonly #sent: SentDeadLetters[] = []
  /** The state in the database, as JSON. */
  #saved = ''
  /** Nothing more is stored after it: what an effect has committed by itself is not in the state. */
  #failure: EffectError | undefined
  #fenced: FencedError | undefined

  constructor(database: DatabaseSync, effect: PreparedEffect<E, P> | PlainEffect<E>) {
    this.#database = new EffectDatabase(database)
    this.#effect = effect
    this.place = this.#database.name
    this.concurrency = effect.prepare === undefined ? APPLIED_AT_ONCE : PREPARED_AT_ONCE
  }

  get fenced(): FencedError | undefined {
    return this.#fenced
  }

  peek(reader: string): Promise<KeptState | undefined> {
    return this.#database.peek(reader)
  }

  async take(fence: Fence, consumer: EffectConsumer): Promise<KeptState> {
    const kept = await this.#database.take(fence)
    this.#taken = { fence, consumer }
    return kept
  }

  redelivery(position: Position): Redelivery | undefined {
    return this.#consumer.consumer.redelivery(position)
  }

  async handle(entry: E, signal: AbortSignal): Promise<void> {
    const { position } = entry
    // The handler is called again where an observer of it has failed.
    if (this.#applied.has(position)) return
    const run = await this.#prepared(entry, signal)
    await this.#add({ position, entry, signal }, () => {
      if (this.redelivery(position) !== undefined && !this.#beginAgain(entry)) return
      const result: unknown = run()
      if (!isThenable(result)) return
      // Its result does not matter: the job ends.
      Promise.resolve(result).catch(() => {})
      throw new EffectError(
        this.place,
        'returned a promise: it has to be synchronous, since its transaction ends when it returns. Wait in `prepare`',
        { entry },
      )
    })
  }

  async giveUp(position: Position, deadLetter: NewDeadLetter | undefined): Promise<void> {
    const { name } = this.#consumer.fence
    await this.#add({ position, entry: undefined, signal: undefined }, () => {
      if (deadLetter === undefined) this.#database.handled(name, position)
      else this.#database.keepDeadLetter(name, deadLetter)
    })
  }

  sent(saved: SentDeadLetters): void {
    this.#sent.push(saved)
  }

  async save(): Promise<void> {
    if (this.#fenced !== undefined) throw this.#fenced
    if (this.#failure !== undefined) return
    if (this.#sent.length === 0 && JSON.stringify(this.#state([])) === this.#saved) return
    await this.#database.transaction(
      () => {
        this.#check()
        return this.#write([])
      },
      (written) => this.#noteWritten(written),
    )
  }

  /** Begins to handle a redelivered dead letter. Returns false if it was handled before a crash. */
  #beginAgain(entry: E): boolean {
    const { name } = this.#consumer.fence
    const known = this.#database.deadLetter(name, entry.position)
    if (known === undefined) {
      throw new EffectError(
        this.place,
        `knows nothing of a dead letter that the log hands out again to ${JSON.stringify(name)}: use the database that has the ` +
          'effects of this consumer; or, if an earlier state of either was put back, run: rivulet log rewind',
        { entry },
      )
    }
    if (known === 'waiting') this.#database.handled(name, entry.position)
    return known === 'waiting'
  }

  /** Throws the first FencedError, also where the database has been put back since. */
  #check(): void {
    if (this.#fenced !== undefined) throw this.#fenced
    try {
      this.#database.check(this.#consumer.fence)
    } catch (error) {
      if (error instanceof FencedError) this.#fenced = error
      throw error
    }
  }

  get #consumer() {
    if (this.#taken === undefined)
      throw new EffectError(this.place, 'cannot be stored: its consumer has not begun')
    return this.#taken
  }

  async #prepared(entry: E, signal: AbortSignal): Promise<() => unknown> {
    const { prepare, effect } = this.#effect
    if (prepare === undefined) return () => effect(entry)
    const prepared = await prepare(entry, signal)
    return () => effect(entry, prepared)
  }

  #add(item: Pick<Waiting, 'position' | 'entry' | 'signal'>, run: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...item, run, resolve, reject })
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    // How many of the next ones have a transaction of their own each.
    for (let alone = 0; this.#waiting.length > 0; alone -= 1) {
      // Effects that come in this turn share the transaction, and other work gets its turn between two transactions.
      await nextTurn()
      let tried = 0
      try {
        if (this.#failure !== undefined) throw this.#failure
        const { outcomes } = await this.#database.transaction(
          () => {
            const batch = this.#apply(alone > 0 ? 1 : Infinity)
            tried = batch.outcomes.length
            return batch
          },
          ({ outcomes: committed, written }) => {
            for (const { item, failure } of committed)
              if (failure === undefined) this.#applied.add(item.position)
            this.#waiting.splice(0, committed.length)
            this.#noteWritten(written)
          },
        )
        for (const { item, failure } of outcomes) {
          if (failure === undefined) item.resolve()
          else item.reject(failure.error)
        }
      } catch (error) {
        if (error instanceof EffectError) this.#failure = error
        if (!isConstraint(error)) for (const { reject } of this.#waiting.splice(0)) reject(error)
        else if (tried === 1) this.#waiting.shift()?.reject(error)
        // Nothing was stored. The commit does not say whose constraint it is.
        else alone = tried + 1
      }
    }
    this.#isRunning = false
  }

  /** Runs one transaction of at most so many waiting items. It changes nothing outside of the database, since it may run again. */
  #apply(most: number): { readonly outcomes: readonly Outcome[]; readonly written: Written } {
    this.#check()
    const until = performance.now() + MAX_TRANSACTION
    const outcomes: Outcome[] = []
    for (const item of this.#waiting) {
      if (outcomes.length === most || (outcomes.length > 0 && performance.now() >= until)) break
      outcomes.push(this.#applyOne(item))
    }
    const applied = outcomes.filter(({ failure }) => failure === undefined).map(({ item }) => item.position)
    return { outcomes, written: this.#write(applied) }
  }

  #applyOne(item: Waiting): Outcome {
    const { position, entry, signal, run } = item
    const { name } = this.#consumer.fence
    // The consumer has ended, and another one may have begun.
    if (signal?.aborted === true)
      return { item, failure: { error: signal.reason ?? new LogClosedError(this.place) } }
    try {
      this.#database.effect(name, entry, () => {
        // A dead letter has a row of its own.
        if (this.redelivery(position) === undefined) this.#database.applying(name, position)
        run()
      })
      return { item }
    } catch (error) {
      if (error instanceof EffectError || !this.#database.isTransaction) throw error
      return { item, failure: { error } }
    }
  }

  /** Writes the state behind these positions. */
  #write(positions: readonly Position[]): Written {
    const { name } = this.#consumer.fence
    for (const saved of this.#sent) this.#database.sent(name, saved)
    const state = this.#state(positions)
    const json = JSON.stringify(state)
    if (json !== this.#saved) this.#database.save(name, state)
    return { json, sent: this.#sent.length }
  }

  #noteWritten({ json, sent }: Written): void {
    this.#saved = json
    this.#sent.splice(0, sent)
  }

  #state(positions: readonly Position[]): ReaderState {
    const { consumer } = this.#consumer
    for (const position of this.#applied) if (!consumer.isOpen(position)) this.#applied.delete(position)
    return consumer.stateAfter(new Set([...this.#applied, ...positions]))
  }
}
