import type { Entry, Position } from './entry.ts'
import type { Fence } from './fence.ts'
import type { NewDeadLetter } from './dead-letter-store.ts'
import type { ReaderState } from './contract.ts'

/**
 * A database in which the effects of consumers and their cursors are stored, each effect in one transaction with the cursor behind it. See
 * `exactlyOnceIn`. `exactlyOnce` of `rivulet/log/sqlite` is one in SQLite (beyond the interface document).
 *
 * A store keeps three things of each reader: the token of the {@link Fence} that may write, its {@link ReaderState}, and a row for each
 * dead letter. A row has the dead letter itself until the log has it too, and stays as long as the log may hand it out again.
 *
 * A commit that fails ends the job, since its effects may have been stored: the next {@link take} reads whether they were. Only one that has
 * certainly stored nothing may reject with a `LogError` whose `retryable` is true. Its effects are tried again.
 *
 * @typeParam Connection The connection of a transaction, with which effects write.
 */
export interface EffectStore<Connection> {
  /** Name of the database, for errors. */
  readonly name: string
  /** The stored state of a reader; undefined for an unknown one. */
  peek(reader: string): Promise<EffectState | undefined>
  /**
   * Takes the reader of a fence over, or creates it without a state: commits with earlier fences are refused from now on. Rejects with a
   * `FencedError` if a later fence is known.
   */
  take(fence: Fence): Promise<EffectState>
  /** The positions, out of at most 500, whose rows are not handled: dead letters of which the log may have lost its copy. */
  givenUp(reader: string, positions: readonly Position[]): Promise<readonly Position[]>
  /**
   * Applies effects and stores the state behind them, in one transaction: all of it or nothing. One commit of a reader runs at a time.
   * Rejects with a `FencedError` if the reader is no longer that of the fence, which is checked in the transaction, and with an
   * `EffectError` for a redelivered dead letter without a row.
   */
  commit(fence: Fence, commit: EffectCommit<Connection>): Promise<EffectResult>
  /** What `migrateLog` needs of it. Default: a log with consumers whose effects are here cannot be copied. */
  readonly moved?: MovedEffects
}

/**
 * The states that readers have in a copy of the log, beside their own: until the copy is finished and used, the log itself can go on. The first
 * `take` of either log decides. {@link EffectStore.take} drops what is stored here for the consumer of the reader, so that its copy is refused;
 * {@link MovedEffects.take} replaces the state of the reader, so that the log itself is refused.
 *
 * From {@link MovedEffects.store} until the next take, commits of these readers are refused with a `FencedError`.
 */
export interface MovedEffects {
  /** The state of a reader in the copy; undefined if there is none. */
  peek(reader: string): Promise<EffectState | undefined>
  /**
   * Takes the reader over with its state in the copy, whatever the token before was, and removes the readers of its consumer that the copy does not
   * have. Rejects with a `FencedError` if there is no state in a copy.
   */
  take(fence: Fence): Promise<EffectState>
  /**
   * Stores the states of a consumer in a copy of the log, in place of those of an earlier copy and in one transaction.
   *
   * @param readers All readers that the consumer may have.
   * @param statesOf Returns the states by the readers of the copy. Called in the transaction, with the states that these readers have by
   * themselves and in an earlier copy. What it throws ends the transaction.
   */
  store(consumer: string, readers: readonly string[], statesOf: StatesInCopy): Promise<void>
}

/** States of readers, by their names. */
export type EffectStates = ReadonlyMap<string, EffectState>

/** Returns the states of readers in a copy of the log. */
type StatesInCopy = (own: EffectStates, moved: EffectStates) => EffectStates

/** The stored state of a reader. */
export interface EffectState {
  /** Undefined until it is stored for the first time: the state in the log is the right one then. */
  readonly state: ReaderState | undefined
  /**
   * Further acknowledged positions, in any order, for a store whose effects can commit by themselves. The next stored state includes
   * them. Otherwise empty.
   */
  readonly applied: readonly Position[]
  /** Dead letters that are not handled and may not be in the log, in any order. */
  readonly deadLetters: readonly NewDeadLetter[]
  /** Redelivered dead letters that are handled, which the log may still have. */
  readonly redelivered: readonly Position[]
  /** Other dead letters with a row, in any order: the log has them. */
  readonly sent: readonly Position[]
}

/** The contents of a commit. A store that runs a transaction again asks for them again. */
export interface EffectCommit<Connection> {
  /**
   * The effects to apply, in order. Ask for the next one when the one before is applied: after some ms there is no next one, so that other
   * writers need not wait for long.
   */
  effects(): Iterable<Effect<Connection>>
  /** Dead letters that the log has added and removed since the last commit. */
  readonly sent: readonly SentDeadLetters[]
  /**
   * The state to store, after the effects.
   *
   * @param applied The positions of the effects that have not failed.
   * @returns Undefined if it is stored already.
   */
  stateAfter(applied: readonly Position[]): ReaderState | undefined
}

/** An effect of an entry or of a batch to apply, or an entry to give up without its effect. */
export type Effect<Connection> = AppliedEffect<Connection> | GivenUpEffect

interface EffectOfEntries {
  /** The positions that it acknowledges, all or none of them: that of an entry, or those of a batch. */
  readonly positions: readonly Position[]
  /**
   * Whether the log has handed the entry out again, as a dead letter: there is one position then. Together with its effect, mark its row as
   * handled and drop the dead letter that is kept for the log, since it has it. Skip the effect if the row is marked already.
   */
  readonly isRedelivered: boolean
}

/** An effect to apply. */
export interface AppliedEffect<Connection> extends EffectOfEntries {
  /** The entries of {@link positions}, for errors. */
  readonly entries: readonly Entry[]
  /**
   * Writes the effect. What it throws, or rejects with, takes back this effect alone: run it in a savepoint. The result is awaited by a
   * store whose transactions are asynchronous.
   */
  apply(connection: Connection): unknown
}

/** An entry that is given up. */
interface GivenUpEffect extends EffectOfEntries {
  readonly entries?: undefined
  /** The dead letter to keep until the log has it, in the place of an earlier one. Undefined if it goes somewhere else than to the log. */
  readonly deadLetter: NewDeadLetter | undefined
}

/** The dead letters that a commit has added to the log and removed from it, by the positions of their entries. */
export interface SentDeadLetters {
  /** The log has them: drop the dead letters, and keep their rows. */
  readonly added: readonly Position[]
  /** The log has removed them: drop the rows of those that are handled. */
  readonly removed: readonly Position[]
}

/** Result of a commit. */
export type EffectResult =
  /** It is stored, with the outcome of each effect, in order: the error of one that has failed, otherwise undefined. */
  | { readonly outcomes: readonly ({ readonly error: unknown } | undefined)[] }
  /**
   * Nothing is stored: the database has refused the commit because of what one of the effects wrote, such as the violation of a deferred
   * constraint. Each effect is tried again in a commit of its own.
   */
  | { readonly refused: { readonly error: unknown } }
