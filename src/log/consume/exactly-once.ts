import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkFunction, checkObject, checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { Entry, Fence, Position, ReaderState } from '../store/contract.ts'
import type { NewDeadLetter, Redelivery } from '../store/dead-letter-store.ts'
import type { Effect, EffectState, EffectStore, SentDeadLetters } from '../store/effect-store.ts'
import { EFFECTS } from './effects.ts'
import type { EffectConsumer, EffectHandler, EffectOrigin, Effects } from './effects.ts'
import { EffectError, FencedError, LogClosedError, LogError } from '../errors.ts'
import { macrotask } from '../../protocol/macrotask.ts'

/** How long effects are added to one transaction, in ms: other writers wait for that long. */
const MAX_TRANSACTION = 10

/** Entries in flight: while `prepare` waits for other services, and otherwise as many as share a transaction. */
const PREPARED_AT_ONCE = 8
const APPLIED_AT_ONCE = 256

/**
 * An effect, and the preparation before its transaction.
 *
 * @typeParam Given An entry; with `batch`, a batch of entries.
 */
export interface PreparedEffect<Given, P, Connection = unknown> {
  /** Asks other services, for instance. Called again when it or the effect fails, and aborted as a handler is. */
  readonly prepare: (given: Given, signal: AbortSignal) => P | PromiseLike<P>
  /**
   * Writes through the connection, in SQLite synchronously. What it throws rolls back what it did, and is retried as a handler's error is.
   * So is a violation of a deferred constraint, which the database finds at the commit. It must not begin or end a transaction, and is
   * called again if its transaction was rolled back.
   */
  readonly effect: (given: Given, prepared: P, connection: Connection) => unknown
}

/** An effect without preparation. */
export interface PlainEffect<Given, Connection = unknown> {
  readonly prepare?: undefined
  /** As {@link PreparedEffect.effect}. */
  readonly effect: (given: Given, connection: Connection) => unknown
}

/**
 * A handler for `log.consume` whose effect in a database happens exactly once for each entry, whatever is killed and whenever: as
 * `exactlyOnce` of `rivulet/log/sqlite`, for a database of another kind. You write its store (beyond the interface document).
 *
 * ```ts
 * import { exactlyOnceIn } from 'rivulet/log'
 * import type { EventLog } from 'rivulet/log'
 * import type { EffectStore } from 'rivulet/log/store'
 *
 * interface Client {
 *   query(sql: string, values: readonly unknown[]): Promise<unknown>
 * }
 *
 * export const keepLedger = (log: EventLog, postgres: EffectStore<Client>) =>
 *   log.consume(
 *     'ledger',
 *     { types: ['task_run.state'] },
 *     exactlyOnceIn(postgres, {
 *       effect: ({ data: { run } }, client) =>
 *         client.query('INSERT INTO run VALUES ($1, $2)', [run.run_id, run.status]),
 *     }),
 *   )
 * ```
 *
 * With `batch`, an effect gets all entries of a batch, which it acknowledges together.
 *
 * Effects that wait at the same time share a transaction of about 10 ms, and each of them is stored whole or not at all. They are applied
 * in the order in which they are prepared; with `key`, in the order of the log within each key. Default `concurrency`: 8 with `prepare` or `batch`,
 * otherwise 256. The job rejects with an {@link EffectError} once a commit has failed whose outcome is unknown, and with a `FencedError` once
 * another process has taken the consumer over.
 *
 * @throws {ArgumentError} for an argument that cannot be right.
 */
export function exactlyOnceIn<Given = Entry, P = unknown, Connection = unknown>(
  store: EffectStore<Connection>,
  effect: PreparedEffect<Given, P, Connection> | PlainEffect<Given, Connection>,
): EffectHandler<Given> {
  checkObject('store', store)
  return effectHandler(() => store, effect)
}

/**
 * The handler of {@link exactlyOnceIn}.
 *
 * @param open Opens the store for a reader that begins.
 */
export function effectHandler<Given = Entry, P = unknown, Connection = unknown>(
  open: () => EffectStore<Connection>,
  effect: PreparedEffect<Given, P, Connection> | PlainEffect<Given, Connection>,
): EffectHandler<Given> {
  const given: unknown = effect
  if (!isObject(given)) throw new ArgumentError('effect', '{ prepare, effect }', given)
  checkOptions('effect', given, ['prepare', 'effect'])
  checkFunction('effect', given['effect'])
  if (given['prepare'] !== undefined) checkFunction('prepare', given['prepare'])
  return { [EFFECTS]: () => new StoredEffects(open(), effect) }
}

/** An item for the next transaction. */
interface WaitingEffect<Connection> {
  readonly effect: Effect<Connection>
  readonly signal: AbortSignal | undefined
  resolve(): void
  reject(error: unknown): void
}

/** An item that a commit has looked at. */
interface Tried<Connection> {
  readonly item: WaitingEffect<Connection>
  /** False for one that is too late for its consumer: the store has not got it. */
  readonly isGiven: boolean
}

/** The effects of one reader in a store. */
class StoredEffects<Given, P, Connection> implements Effects<Given> {
  readonly concurrency: number
  readonly place: string
  readonly #store: EffectStore<Connection>
  readonly #effect: PreparedEffect<Given, P, Connection> | PlainEffect<Given, Connection>
  #taken: { readonly fence: Fence; readonly consumer: EffectConsumer } | undefined
  readonly #waiting: WaitingEffect<Connection>[] = []
  #isRunning = false
  /** The last commit. The next one stores the state behind it. */
  #last: Promise<unknown> = Promise.resolve()
  /** Positions that are acknowledged in the store, and may be open in the consumer. */
  readonly #applied = new Set<Position>()
  /** Changes of dead letters in the log, which the next transaction notes. */
  readonly #sent: SentDeadLetters[] = []
  /** The state in the store, as JSON. */
  #saved = ''
  /** Nothing more is stored after it: what an effect has committed by itself is not in the state. */
  #failure: EffectError | undefined
  #fenced: FencedError | undefined

  constructor(
    store: EffectStore<Connection>,
    effect: PreparedEffect<Given, P, Connection> | PlainEffect<Given, Connection>,
  ) {
    this.#store = store
    this.#effect = effect
    this.place = store.name
    this.concurrency = effect.prepare === undefined ? APPLIED_AT_ONCE : PREPARED_AT_ONCE
  }

  get fenced(): FencedError | undefined {
    return this.#fenced
  }

  peek(reader: string): Promise<EffectState | undefined> {
    return this.#store.peek(reader)
  }

  givenUp(reader: string, positions: readonly Position[]): Promise<readonly Position[]> {
    return this.#store.givenUp(reader, positions)
  }

  async peekMoved(reader: string): Promise<EffectState | undefined> {
    return this.#store.moved?.peek(reader)
  }

  async take(fence: Fence, consumer: EffectConsumer, from: EffectOrigin): Promise<EffectState> {
    const taken = from === 'moved' ? this.#store.moved : this.#store
    if (taken === undefined) throw new FencedError(this.place, fence.name)
    const kept = await taken.take(fence)
    this.#taken = { fence, consumer }
    return kept
  }

  redelivery(position: Position): Redelivery | undefined {
    return this.#consumer.consumer.redelivery(position)
  }

  async handle(given: Given, entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    const positions = entries.map(({ position }) => position)
    // The handler is called again where an observer of it has failed.
    if (positions.every((position) => this.#applied.has(position))) return
    const apply = await this.#prepared(given, signal)
    await this.#add({ positions, isRedelivered: this.#areRedelivered(positions), entries, apply }, signal)
  }

  async giveUp(position: Position, deadLetter: NewDeadLetter | undefined): Promise<void> {
    const positions = [position]
    await this.#add({ positions, isRedelivered: this.#areRedelivered(positions), deadLetter })
  }

  sent(saved: SentDeadLetters): void {
    this.#sent.push(saved)
  }

  async save(): Promise<void> {
    const { refused } = await this.#commit(0)
    if (refused !== undefined) throw refused.error
  }

  get #consumer() {
    if (this.#taken === undefined)
      throw new EffectError(this.place, 'cannot be stored: its consumer has not begun')
    return this.#taken
  }

  /** A redelivered entry is never in a batch with others. */
  #areRedelivered(positions: readonly Position[]): boolean {
    return positions.some((position) => this.redelivery(position) !== undefined)
  }

  async #prepared(given: Given, signal: AbortSignal): Promise<(connection: Connection) => unknown> {
    const effect = this.#effect
    if (effect.prepare === undefined) return (connection) => effect.effect(given, connection)
    const prepared = await effect.prepare(given, signal)
    return (connection) => effect.effect(given, prepared, connection)
  }

  #add(effect: Effect<Connection>, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ effect, signal, resolve, reject })
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    // How many of the next ones have a transaction of their own each.
    for (let alone = 0; this.#waiting.length > 0; alone -= 1) {
      // Effects that come in this turn share the transaction, and other work gets its turn between two transactions.
      await macrotask()
      try {
        if (this.#failure !== undefined) throw this.#failure
        const { tried, refused } = await this.#commit(alone > 0 ? 1 : Infinity)
        if (refused === undefined) continue
        // The commit does not say whose effect it has refused.
        if (tried === 1) this.#waiting.shift()?.reject(refused.error)
        else alone = tried + 1
      } catch (error) {
        if (error instanceof EffectError) this.#failure = error
        for (const { reject } of this.#waiting.splice(0)) reject(error)
      }
    }
    this.#isRunning = false
  }

  /** Commits at most so many waiting effects, and the state behind them, after the earlier commits. */
  #commit(most: number) {
    const commit = this.#last.then(() => this.#commitNext(most))
    this.#last = commit.catch(() => {})
    return commit
  }

  async #commitNext(most: number) {
    if (this.#fenced !== undefined) throw this.#fenced
    const { fence } = this.#consumer
    if (most === 0 && this.#isSaved) return { tried: 0 }
    const sent = [...this.#sent]
    let json = this.#saved
    let tried: Tried<Connection>[] = []
    const result = await this.#store
      .commit(fence, {
        // It changes nothing outside of the store, since it may run again.
        effects: () => this.#next(most, (tried = [])),
        sent,
        stateAfter: (positions) => {
          const state = this.#state(positions)
          json = JSON.stringify(state)
          return json === this.#saved ? undefined : state
        },
      })
      .catch((error: unknown) => {
        if (error instanceof FencedError) this.#fenced = error
        if (error instanceof LogError) throw error
        // Applied again, an effect could happen twice.
        throw new EffectError(this.place, 'may have been stored: its commit has failed', { cause: error })
      })
    if ('refused' in result) return { tried: tried.length, refused: result.refused }
    this.#saved = json
    this.#sent.splice(0, sent.length)
    this.#waiting.splice(0, tried.length)
    const outcomes = result.outcomes.values()
    for (const { item, isGiven } of tried) {
      const { effect, signal, resolve, reject } = item
      const failure = isGiven
        ? outcomes.next().value
        : { error: signal?.reason ?? new LogClosedError(this.place) }
      if (failure !== undefined) {
        reject(failure.error)
        continue
      }
      for (const position of effect.positions) this.#applied.add(position)
      resolve()
    }
    return { tried: tried.length }
  }

  /** The waiting effects for one transaction, as long as it may take more. Adds what it looks at to `tried`. */
  *#next(most: number, tried: Tried<Connection>[]): Generator<Effect<Connection>, void> {
    const until = performance.now() + MAX_TRANSACTION
    for (const item of this.#waiting) {
      if (tried.length === most || (tried.length > 0 && performance.now() >= until)) return
      // Once the consumer has ended, another one may have begun.
      const isGiven = item.signal?.aborted !== true
      tried.push({ item, isGiven })
      if (isGiven) yield item.effect
    }
  }

  get #isSaved(): boolean {
    if (this.#failure !== undefined) return true
    return this.#sent.length === 0 && JSON.stringify(this.#state([])) === this.#saved
  }

  #state(positions: readonly Position[]): ReaderState {
    const { consumer } = this.#consumer
    for (const position of this.#applied) if (!consumer.isOpen(position)) this.#applied.delete(position)
    return consumer.stateAfter(new Set([...this.#applied, ...positions]))
  }
}
