import { checkText } from '../protocol/check.ts'
import type { LogStore, Position } from './contract.ts'
import type { StoredDeadLetter } from './dead-letter-store.ts'

/** Letters that are read at once. */
const PAGE = 100

/** The entries that a reader could not handle. Any process may use them, whether the reader runs or not. */
export interface DeadLetterQueue {
  /** Reads them in the order of the log, in pages, while they are asked for. */
  list(): AsyncIterable<StoredDeadLetter>
  /** Their number. */
  count(): Promise<number>
  /**
   * Hands one out again, by the position of its entry, or all that there are now: to the running consumer at once, otherwise
   * when it starts. It is removed once it is handled, and stays with the new error where it fails again.
   *
   * @returns How many were not being handed out already. Rejects with a `LogPositionError`.
   */
  redeliver(which: Position | 'all'): Promise<number>
  /** Removes one, by the position of its entry, or all. Resolves with their number, and rejects with a `LogPositionError`. */
  remove(which: Position | 'all'): Promise<number>
}

/** The dead letters of a reader. */
export function deadLettersOf(store: LogStore, reader: string): DeadLetterQueue {
  const { deadLetters } = store
  const change =
    (call: 'redeliver' | 'remove') =>
    async (which: Position): Promise<number> => {
      checkText('which', which)
      return deadLetters[call](reader, which)
    }
  return {
    async *list() {
      let position: Position | null = null
      for (;;) {
        const page: readonly StoredDeadLetter[] = await deadLetters.list(reader, position, PAGE)
        yield* page
        const last = page.at(-1)
        if (last === undefined) return
        ;({ position } = last.entry)
      }
    },
    count: async () => (await deadLetters.counts()).get(reader) ?? 0,
    redeliver: change('redeliver'),
    remove: change('remove'),
  }
}
