import { deadLettersIn } from '../event-log/dead-letters.ts'
import { isDivided, partName } from './part-name.ts'
import { FencedError } from '../errors.ts'
import type { Entry, LogStore, Position, ReaderState, StartAt } from '../store/contract.ts'
import type { NewDeadLetter, StoredDeadLetter } from '../store/dead-letter-store.ts'
import type { Partitions } from '../store/sharing-store.ts'
import { ConsumerCursor } from './consumer-cursor.ts'
import type { EffectCursor } from './effects.ts'

/** How many readers are created at once. */
const CONCURRENCY = 32

/** Maximum length of a dead letter's entry that is copied along, as JSON, in characters. The log has longer ones, unless it has deleted them. */
const MAX_COPY_LENGTH = 64 * 1024

/** The consumer to divide, and where. */
export interface Divisible {
  readonly store: LogStore
  /** The consumer. */
  readonly name: string
  readonly partitions: Partitions
  readonly startAt: StartAt
  /** Creates the effects of one reader; undefined if the cursors are in the log. */
  readonly effects: (() => EffectCursor) | undefined
  /** Ends the waiting for a consumer that is not shared. */
  readonly wait: AbortSignal
}

/**
 * Creates a reader for each partition, at the cursor of the consumer's one reader, or at the start of a new consumer. Resolves once
 * they exist.
 *
 * After an interruption, the next call goes on. No reader of a partition begins while the one reader exists, and the one reader does not
 * begin again once the first reader of a partition exists.
 */
export async function divide(of: Divisible): Promise<void> {
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
          const batch = Array.from({ length: Math.min(to, partitions.count) - from }, (_, at) => from + at)
          await all(batch.map((partition) => inPart(of, partition, window.state)))
        }
        await moveLetters(of, whole, window.state)
        await cursor.remove()
      }
    } catch (error) {
      // Another open log has taken it over, and goes on from there; or this one does when its turn comes.
      if (!(error instanceof FencedError)) throw error
    } finally {
      await cursor.end()
    }
    wait.throwIfAborted()
  }
}

/** Creates the reader of a partition, or adds a dead letter to it. */
async function inPart(
  { store, name, effects, wait }: Divisible,
  partition: number,
  state: ReaderState,
  deadLetter?: NewDeadLetter,
): Promise<void> {
  const own = partName(`consumer:${name}`, partition)
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
async function moveLetters(of: Divisible, whole: string, state: ReaderState): Promise<void> {
  const { deadLetters } = of.store
  for await (const deadLetter of deadLettersIn(deadLetters, whole)) {
    const { position, source } = deadLetter.entry
    const partition = of.partitions.of(source)
    const own = partName(whole, partition)
    await inPart(of, partition, state, newDeadLetter(deadLetter))
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

function cursorOf(
  store: LogStore,
  name: string,
  effects: EffectCursor | undefined,
  isWanted?: () => Promise<boolean>,
): ConsumerCursor {
  // `checkSaved` throws the error of a failed save.
  const plan = { partition: undefined, onSaved() {}, onFailure() {}, isWanted }
  return new ConsumerCursor(store, name, effects, plan)
}

/** Waits for all of them, and throws the error of one that has failed. */
async function all(promises: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises))
    if (result.status === 'rejected') throw result.reason
}
