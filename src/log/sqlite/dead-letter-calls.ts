import { checkInteger } from '../../protocol/check.ts'
import type { Position } from '../store/contract.ts'
import type { DeadLetterStore, Redeliveries, StoredDeadLetter } from '../store/dead-letter-store.ts'
import type { Range, Step } from './dead-letters.ts'
import type { OpenLog, Transactions } from './open-log.ts'

/** Dead letters that one transaction marks or removes. */
const STEP = 250

/** The dead letters of a log, for any process. */
export class DeadLetterCalls implements DeadLetterStore {
  readonly #transactions: Transactions

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  async list(reader: string, after: Position | null, limit: number): Promise<readonly StoredDeadLetter[]> {
    checkInteger('limit', limit, 1)
    return this.#transactions.read((log) =>
      log.deadLetters.list(reader, after === null ? 0 : numberOf(log, after), limit),
    )
  }

  counts(): Promise<ReadonlyMap<string, number>> {
    return this.#transactions.read((log) => log.deadLetters.counts())
  }

  async redeliver(reader: string, which: Position | 'all'): Promise<number> {
    const count = await this.#each(which, (log, range) => log.deadLetters.mark(reader, range, STEP))
    if (count > 0) this.#transactions.notify()
    return count
  }

  remove(reader: string, which: Position | 'all'): Promise<number> {
    return this.#each(which, (log, range) => log.deadLetters.remove(reader, range, STEP))
  }

  async redeliveries(reader: string, after: number, limit: number): Promise<Redeliveries> {
    checkInteger('limit', limit, 1)
    return this.#transactions.read((log) => log.deadLetters.redeliveries(reader, after, limit))
  }

  /** Changes dead letters in steps, so that other writers need not wait. In the order of the log, one that fails again meanwhile is not met twice. */
  async #each(which: Position | 'all', change: (log: OpenLog, range: Range) => Step): Promise<number> {
    let count = 0
    for (let next: number | undefined = 0; next !== undefined;) {
      const from: number = next
      const { changed, last } = await this.#transactions.write('FULL', (log) => {
        if (which === 'all') return change(log, { from, to: Number.MAX_SAFE_INTEGER })
        const position = numberOf(log, which)
        return change(log, { from: position, to: position })
      })
      count += changed
      next = last === undefined ? undefined : last + 1
    }
    return count
  }
}

function numberOf({ entries }: OpenLog, position: Position): number {
  return entries.positions.parse(position, entries.end().position)
}
