import { deadLettersIn } from '../dead-letters.ts'
import { isDivided, partName } from '../part-name.ts'
import { FencedError } from '../errors.ts'
import type { Entry, LogStore, Position, ReaderState, StartAt } from '../store/contract.ts'
import type { NewDeadLetter, StoredDeadLetter } from '../store/dead-letter-store.ts'
import type { Partitions } from '../store/sharing-store.ts'
import { ConsumerCursor } from './consumer-cursor.ts'
import type { Effects } from './effects.ts'

/** How many readers are created at once. */
const CONCURRENCY = 32

/** Up to this length as JSON, the entry of a dead letter goes along, in characters. The log has longer ones, unless it has deleted them. */
const MAX_COPY_LENGTH = 64 * 1024

/** What is divided. */
export interface Divisible<E> {
  readonly store: LogStore
  /** The consumer. */
  readonly name: string
  readonly partitions: Partitions
  readonly startAt: StartAt
  /** The effects of one reader; undefined where the log has the cursors. */
  readonly effects: (() => Effects<E>) | undefined
  /** Ends the waiting for a consumer that is not shared. */
  readonly wait: AbortSignal
}

/**
 * Makes a reader for each partition of the one reader of a consumer, where it stands, or at the start of a new consumer. Resolves once
 * they are there.
 *
 * Whatever is interrupted goes on with the next call. As long as the one reader is there, none of the others begins, and it does not begin
 * again once the first of the others is there.
 */
export async function divide<E>(of: Divisible<E>): Promise<void> {
  const { store, name, partitions, startAt, effects, wait } = of
  const whole = `consumer:${name}`
  while (!(await isDivided(store, whole))) {
    const cursor = cursorOf(store, whole, effects?.(), async () => !(await isDivided(store, whole)))
    try {
      const window = await cursor.begin({ wait }, startAt, wait)
      if (window !== undefined) {
        await cursor.flush()
        cursor.checkSaved()
        // The first one says that it has begun.
        for (let from = 0, to = 1; from < partitions.count; from = to, to = from + CONCURRENCY) {
          const parts = Array.from({ length: Math.min(to, partitions.count) - from }, (_, at) => from + at)
          await all(parts.map((part) => inPart(of, part, window.state)))
        }
        await moveLetters(of, whole, window.state)
        await cursor.remove()
      }
    } catch (error) {
      // Another one has taken it over: it goes on from there, or this one does in its turn.
      if (!(error instanceof FencedError)) throw error
    } finally {
      await cursor.end()
    }
    wait.throwIfAborted()
  }
}

/** Creates the reader of a part, or adds a dead letter to it. */
async function inPart<E>(
  { store, name, effects, wait }: Divisible<E>,
  part: number,
  state: ReaderState,
  deadLetter?: NewDeadLetter,
): Promise<void> {
  const own = partName(`consumer:${name}`, part)
  if (deadLetter === undefined && (await store.reader(own)) !== undefined) return
  const ownEffects = effects?.()
  const cursor = cursorOf(store, own, ownEffects)
  try {
    const window = await cursor.begin({ wait }, state, wait)
    if (deadLetter !== undefined) {
      await ownEffects?.giveUp(deadLetter.position, deadLetter)
      window?.addDeadLetters([deadLetter])
    }
    if (window?.hasMore === true) cursor.saveSoon()
  } finally {
    await cursor.end()
  }
  cursor.checkSaved()
  wait.throwIfAborted()
}

/** Moves the dead letters to the readers of their sources. */
async function moveLetters<E>(of: Divisible<E>, whole: string, state: ReaderState): Promise<void> {
  const { deadLetters } = of.store
  for await (const deadLetter of deadLettersIn(deadLetters, whole)) {
    const { position, source } = deadLetter.entry
    const part = of.partitions.of(source)
    const own = partName(whole, part)
    await inPart(of, part, state, newDeadLetter(deadLetter))
    if (deadLetter.isRedelivered) await deadLetters.redeliver(own, position)
    // It stays where it is when its entry is long and the log has deleted it.
    if (isShort(deadLetter.entry) || (await hasDeadLetter(of.store, own, position)))
      await deadLetters.remove(whole, position)
  }
}

async function hasDeadLetter(
  { deadLetters }: LogStore,
  reader: string,
  position: Position,
): Promise<boolean> {
  for await (const { entry } of deadLettersIn(deadLetters, reader))
    if (entry.position === position) return true
  return false
}

function newDeadLetter({ entry, error, attempts }: StoredDeadLetter): NewDeadLetter {
  return { position: entry.position, error, attempts, ...(isShort(entry) && { entry }) }
}

function isShort(entry: Entry): boolean {
  return JSON.stringify(entry).length <= MAX_COPY_LENGTH
}

function cursorOf<E>(
  store: LogStore,
  name: string,
  effects: Effects<E> | undefined,
  isWanted?: () => Promise<boolean>,
): ConsumerCursor<E> {
  // What could not be saved is thrown by `checkSaved`.
  return new ConsumerCursor(store, name, effects, { isPart: false, onSaved() {}, onFailure() {}, isWanted })
}

/** Waits for all of them, and throws what one threw. */
async function all(promises: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises))
    if (result.status === 'rejected') throw result.reason
}
