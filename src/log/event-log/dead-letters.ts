import { checkText } from '../../protocol/check.ts'
import type { LogStore, Position } from '../store/contract.ts'
import { LogUnsupportedError } from '../errors.ts'
import { namesOf } from '../consume/part-name.ts'
import type { DeadLetterStore, StoredDeadLetter } from '../store/dead-letter-store.ts'

/** Dead letters that are read at once. */
const PAGE = 100

/** The entries that a reader could not handle. Any process may use them, whether the reader runs or not. */
export interface DeadLetterQueue {
  /**
   * Reads the dead letters in the order of the log, in pages, while they are asked for. For a shared reader, the order holds within each of
   * its parts, and so within each source of a consumer.
   */
  list(): AsyncIterable<StoredDeadLetter>
  /** Counts the dead letters. */
  count(): Promise<number>
  /**
   * Redelivers one, by the position of its entry, or all that there are now: to the running consumer at once, otherwise when it starts.
   * A dead letter is removed once it is handled, and stays with the new error if it fails again.
   *
   * @returns The number of dead letters that were not being redelivered already. Rejects with a `LogPositionError`, and with a
   * `LogUnsupportedError` for a process.
   */
  redeliver(which: Position | 'all'): Promise<number>
  /** Removes one, by the position of its entry, or all. Resolves with their number, and rejects with a `LogPositionError`. */
  remove(which: Position | 'all'): Promise<number>
}

/**
 * The dead letters of a reader.
 *
 * @param process The name of the process, if the reader is one.
 */
export function deadLettersOf(store: LogStore, reader: string, process?: string): DeadLetterQueue {
  const { deadLetters } = store
  const change =
    (call: 'redeliver' | 'remove') =>
    async (which: Position): Promise<number> => {
      checkText('which', which)
      let changed = 0
      // A position is in one part.
      for (const name of namesOf(reader, (await deadLetters.counts()).keys())) {
        changed += await deadLetters[call](name, which)
      }
      return changed
    }
  return {
    async *list() {
      for (const name of namesOf(reader, (await deadLetters.counts()).keys())) {
        yield* deadLettersIn(deadLetters, name)
      }
    },
    count: async () => {
      const counts = await deadLetters.counts()
      return Array.from(namesOf(reader, counts.keys())).reduce(
        (sum, name) => sum + (counts.get(name) ?? 0),
        0,
      )
    },
    redeliver: process === undefined ? change('redeliver') : () => Promise.reject(notAgain(process)),
    remove: change('remove'),
  }
}

/** Dead letters of one reader in the store, in the order of the log. @param after Only dead letters after this position. */
export async function* deadLettersIn(
  deadLetters: DeadLetterStore,
  reader: string,
  after: Position | null = null,
): AsyncGenerator<StoredDeadLetter, void> {
  let position = after
  for (;;) {
    const page: readonly StoredDeadLetter[] = await deadLetters.list(reader, position, PAGE)
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    ;({ position } = last.entry)
  }
}

/** A process depends on the order of its entries alone. With a redelivered entry at another place, no rebuild could produce the same state. */
function notAgain(process: string): LogUnsupportedError {
  return new LogUnsupportedError(
    `a dead letter of the process ${JSON.stringify(process)} cannot be handed out again, since a process is given its entries in the ` +
      'order of the log alone: mend its functions, and run it with a higher `version` and `rebuild: true`',
  )
}
