import { setImmediate as nextTurn } from 'node:timers/promises'
import { checkInteger } from '../../protocol/check.ts'
import type { Fence, Position } from '../store/contract.ts'
import type {
  ChangesOptions,
  ChangesPage,
  ProcessStore,
  RangeOptions,
  RangePage,
  Timer,
  TimersOptions,
} from '../store/process-store.ts'
import type { Transactions } from './open-log.ts'

/** The state and the timers of processes, for any process of the operating system. */
export class ProcessCalls implements ProcessStore {
  readonly #transactions: Transactions

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  memo(name: string): Promise<string | undefined> {
    return this.#transactions.read(({ processes }) => processes.memo(name))
  }

  holdsRetention(name: string): Promise<boolean> {
    return this.#transactions.read(({ processes }) => processes.holdsRetention(name))
  }

  states(name: string, keys: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#transactions.read(({ processes }) => processes.states(name, keys))
  }

  timers(name: string, options: TimersOptions): Promise<readonly Timer[]> {
    return this.#transactions.read(({ processes }) => processes.timers(name, options))
  }

  start(): Promise<Position> {
    return this.#transactions.read(({ processes }) => processes.positions.start)
  }

  end(name: string): Promise<Position> {
    return this.#transactions.read(({ processes }) => processes.end(name))
  }

  async changes(name: string, after: Position, options: ChangesOptions): Promise<ChangesPage> {
    checkInteger('limit', options.limit, 1)
    // A reader that asks for page after page would block the event loop otherwise.
    await nextTurn()
    return this.#transactions.read(({ processes }) => processes.changes(name, after, options))
  }

  async range(name: string, options: RangeOptions): Promise<RangePage> {
    checkInteger('limit', options.limit, 1)
    // As for `changes`.
    await nextTurn()
    return this.#transactions.read(({ processes }) => processes.range(name, options))
  }

  wait(name: string, after: Position, signal: AbortSignal): Promise<void> {
    return this.#transactions.until(({ processes }) => processes.hasMore(name, after), signal)
  }

  pause({ name, token }: Fence): Promise<void> {
    return this.#transactions.write('NORMAL', ({ claims, processes }) => {
      claims.check({ name, token })
      processes.pause(name, token)
    })
  }

  clean(): Promise<boolean> {
    return this.#transactions.write('NORMAL', ({ processes }) => processes.clean())
  }
}
