import type { DatabaseSync } from 'node:sqlite'
import { checkText } from '../../protocol/check.ts'
import { deadLettersIn } from '../event-log/dead-letters.ts'
import { LogPositionError, LogUnsupportedError } from '../errors.ts'
import { checkStore } from '../store/checked-store.ts'
import { namesOf } from '../consume/part-name.ts'
import type { LogStore, Position } from '../store/contract.ts'
import { EffectDatabase } from './effect-database.ts'
import { checkDatabase } from './exactly-once.ts'

/** Result of {@link rewindEffects} for one reader of a consumer: a consumer with `share` has one for each of its partitions. */
interface RewoundEffects {
  /** The cursor that was beside the effects; null for none. */
  readonly from: Position | null
  /** The cursor that the log has, which is beside the effects now. */
  readonly to: Position
}

/**
 * Lets a consumer with `exactlyOnce` go on where the log has it, after an earlier state of the log was put back and its effects were not. The
 * log has a copy of its position, which is about a second old at most when the log is copied.
 *
 * A cursor that the log has stays where it is, and no effect is applied twice: so it is if only the effects were put back.
 *
 * Otherwise no effect is missing, unless the database has no cursor at all: then what the log has as acknowledged counts as done. Effects of
 * entries after the position are applied again, when these entries are read or recorded again, and those of dead letters that the log has
 * again. To avoid that, put the database of the effects back to the same moment as the log.
 *
 * Rejects with a `LogInUseError` while the consumer runs, and with a `LogUnsupportedError` for a consumer that the log does not know, or that
 * has no effects.
 *
 * @param database The database of the effects.
 * @param store The log: `sqliteStore` or `natsStore`. It is left open.
 * @param consumer The name of the consumer.
 * @throws {ArgumentError} for an argument that cannot be right.
 */
export async function rewindEffects(
  database: DatabaseSync,
  store: LogStore,
  consumer: string,
): Promise<readonly RewoundEffects[]> {
  checkDatabase(database)
  checkStore('store', store)
  checkText('consumer', consumer)
  const effects = new EffectDatabase(database)
  const { readers } = await store.retention.stats()
  const names = namesOf(
    `consumer:${consumer}`,
    readers.map(({ name }) => name),
  )
  const rewound: RewoundEffects[] = []
  for (const name of names) {
    if (!readers.some((reader) => reader.name === name)) continue
    const fence = await store.claim(name)
    try {
      const state = await store.reader(name)
      if (state?.isCopy !== true) continue
      const deadLetters: Position[] = []
      for await (const { entry } of deadLettersIn(store.deadLetters, name)) deadLetters.push(entry.position)
      // The log is a copy, and was never used.
      const moved = (await effects.moved.peek(name))?.state
      if (moved !== undefined && (await hasPosition(store, moved.cursor))) await effects.moved.take(fence)
      const kept = (await effects.peek(name))?.state
      if (kept !== undefined && (await hasPosition(store, kept.acknowledged.at(-1) ?? kept.cursor))) {
        // The log has what the effects come from, so these stay where they are.
        await effects.adopt(fence, deadLetters)
        rewound.push({ from: kept.cursor, to: kept.cursor })
        continue
      }
      const from = await effects.rewind(fence, state, deadLetters)
      rewound.push({ from: from ?? null, to: state.cursor })
    } finally {
      await store.release(fence)
    }
  }
  if (rewound.length > 0) return rewound
  throw new LogUnsupportedError(
    `the log has no consumer ${JSON.stringify(consumer)} with exactlyOnce: name one that it has, or begin at \`startAt\``,
  )
}

async function hasPosition(store: LogStore, position: Position): Promise<boolean> {
  try {
    await store.read(position, { limit: 1 })
    return true
  } catch (error) {
    if (error instanceof LogPositionError) return false
    throw error
  }
}
