import { checkInteger, checkSignal } from '../../../protocol/check.ts'
import { macrotask } from '../../macrotask.ts'
import type { Processes } from '../../state/processes.ts'
import type { Fence, Position } from '../../store/contract.ts'
import type {
  ChangesOptions,
  ChangesPage,
  ProcessStore,
  RangeOptions,
  RangePage,
  Timer,
  TimersOptions,
} from '../../store/process-store.ts'
import type { Claims } from './claims.ts'
import type { JournalChanges } from './journal-changes.ts'
import type { Journals } from './journals.ts'

/** The state and the timers of processes: what their journals make. */
export class ProcessCalls implements ProcessStore {
  readonly #journals: Journals
  readonly #claims: Claims
  readonly #changes: JournalChanges
  /** The position before the first change of each process. */
  readonly #start: Position

  constructor(journals: Journals, claims: Claims, changes: JournalChanges, start: Position) {
    this.#journals = journals
    this.#claims = claims
    this.#changes = changes
    this.#start = start
  }

  memo(name: string): Promise<string | undefined> {
    return this.#read(name, (processes) => processes.memo(name))
  }

  async holdsRetention(name: string): Promise<boolean> {
    return (await this.#journals.head(name))?.holdsRetention ?? true
  }

  states(name: string, keys: readonly string[]): Promise<readonly (string | null)[]> {
    const wanted = [...keys]
    return this.#read(name, (processes) => processes.states(name, wanted))
  }

  timers(name: string, options: TimersOptions): Promise<readonly Timer[]> {
    return this.#read(name, (processes) => processes.timers(name, options))
  }

  async start(): Promise<Position> {
    return this.#start
  }

  end(name: string): Promise<Position> {
    return this.#read(name, (processes) => processes.end(name))
  }

  async changes(name: string, after: Position, options: ChangesOptions): Promise<ChangesPage> {
    checkInteger('limit', options.limit, 1)
    // A reader of a state that is known here would stop everything else.
    await macrotask()
    return this.#read(name, (processes) => processes.changes(name, after, options))
  }

  async range(name: string, options: RangeOptions): Promise<RangePage> {
    checkInteger('limit', options.limit, 1)
    // As for `changes`.
    await macrotask()
    return this.#read(name, (processes) => processes.range(name, options))
  }

  async wait(name: string, after: Position, signal: AbortSignal): Promise<void> {
    checkSignal('signal', signal)
    await this.#changes.until(
      name,
      () => this.#read(name, (processes) => (processes.hasMore(name, after) ? true : undefined)),
      signal,
    )
  }

  async pause(fence: Fence): Promise<void> {
    const { name, token } = fence
    await this.#journals.of(name).write((state) => {
      this.#claims.checkIn(state, fence)
      return state.processes.memo(name) === undefined ? undefined : { head: { pausedToken: token } }
    })
  }

  /** A generation that is over leaves nothing but its journal, which its owner makes short. */
  async clean(): Promise<boolean> {
    return false
  }

  #read<Result>(name: string, effect: (processes: Processes) => Result): Promise<Result> {
    return this.#journals.of(name).read((state) => effect(state.processes))
  }
}
