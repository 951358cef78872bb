import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import type { Fence, Position, StoredReader } from '../store/contract.ts'
import { ProcessPositions } from './process-position.ts'
import type { ProcessChanges } from './process-position.ts'
import { MAX_TOMBSTONES } from '../store/process-store.ts'
import { compareStored, originalText, storedText } from '../../protocol/stored-text.ts'
import { keyRanges } from './key-ranges.ts'
import type { KeyRange } from './key-ranges.ts'
import { firstIndex } from '../../protocol/first-index.ts'
import { Timers } from './timers.ts'
import type {
  ChangesOptions,
  ChangesPage,
  ProcessCommit,
  RangeOptions,
  RangePage,
  StateChange,
  StoredChange,
  TimersOptions,
} from '../store/process-store.ts'
import type { NameRange, Timer } from '../../streams/timers.ts'

/** Maximum number of replaced changes that stay in the list before they are cleared away. */
const SLACK = 1_000

/** Number of runs of a process that are remembered. A reader that is further behind takes a new snapshot. */
const MAX_RUNS = 100

/** State and timers of processes. */
export class Processes {
  readonly positions: ProcessPositions
  readonly #processes = new Map<string, Process>()
  #generations = 0

  constructor(log: string, epoch: string) {
    this.positions = new ProcessPositions(log, epoch)
  }

  /** What the last commit of a process said; undefined for an unknown one. */
  process(name: string): StoredReader['process'] {
    const process = this.#processes.get(name)
    return process && { checkpoint: process.checkpoint, holdsRetention: process.holdsRetention }
  }

  states(name: string, keys: readonly string[]): (string | null)[] {
    const process = this.#processes.get(name)
    return keys.map((key) => process?.states.get(key)?.state ?? null)
  }

  timers(name: string, options: TimersOptions): Timer[] {
    return this.#processes.get(name)?.timers.read(options) ?? []
  }

  keyTimers(name: string, key: string, range: NameRange, limit: number): Timer[] {
    return this.#processes.get(name)?.timers.named(key, range, limit) ?? []
  }

  end(name: string): Position {
    const process = this.#processes.get(name)
    return process === undefined ? this.positions.start : this.positions.format(process, process.lastChange)
  }

  changes(name: string, after: Position, options: ChangesOptions): ChangesPage {
    const process = this.#processes.get(name)
    const from = this.positions.resume(after, process, options.present)
    if (process === undefined) return { changes: [], position: after, isEnd: true }
    const { lastChange } = process
    const until = options.until === undefined ? lastChange : this.positions.until(options.until, process)
    const { limit, maxLength = MAX_PAGE_LENGTH } = options
    const { found: numbered, isEnd } = process.changesAfter(from, until, limit, maxLength)
    const found: StoredChange[] = numbered.map(({ key, state, change }) => ({
      key,
      state,
      position: this.positions.format(process, change),
    }))
    const changes = options.present === true ? found.filter(({ state }) => state !== null) : found
    const end = this.positions.format(process, Math.max(from, until))
    return { changes, position: isEnd ? end : (found.at(-1)?.position ?? end), isEnd }
  }

  range(name: string, { prefix, after, limit, maxLength = MAX_PAGE_LENGTH, since }: RangeOptions): RangePage {
    const process = this.#processes.get(name)
    if (since !== undefined) this.positions.checkGeneration(since, process)
    if (process === undefined) return { states: [], position: this.positions.start, isEnd: true }
    const position = this.positions.format(process, process.lastChange)
    const states: { key: string; state: string }[] = []
    let length = 0
    for (const range of keyRanges(prefix)) {
      for (const each of process.statesIn(range, after)) {
        if (states.length === limit || length >= maxLength) return { states, position, isEnd: false }
        states.push(each)
        length += each.state.length
      }
    }
    return { states, position, isEnd: true }
  }

  /** Whether `changes` after this position is not empty. */
  hasMore(name: string, after: Position): boolean {
    const process = this.#processes.get(name)
    return this.positions.resume(after, process) < (process?.lastChange ?? 0)
  }

  /** The claim of this token waits until its next commit. */
  pause({ name, token }: Fence): void {
    const process = this.#processes.get(name)
    if (process !== undefined) process.pausedToken = token
  }

  /** The token of the claim that waits. */
  pausedToken(name: string): number | undefined {
    return this.#processes.get(name)?.pausedToken
  }

  drop(name: string): void {
    this.#processes.delete(name)
  }

  /**
   * @param writer The open log that commits, as a random text. Empty in a log that cannot be put back to an earlier state.
   * @param generation The number of a new generation, greater than those before. Default: the next one of this log.
   */
  commit(name: string, commit: ProcessCommit, writer = '', generation = this.#generations + 1): void {
    const { checkpoint, reset = false, holdsRetention = true, state, timers } = commit
    let process = this.#processes.get(name)
    if (reset || process === undefined) {
      this.#generations = generation
      process = new Process(generation)
      this.#processes.set(name, process)
    }
    process.checkpoint = checkpoint
    process.holdsRetention = holdsRetention
    process.pausedToken = undefined
    if (state.length > 0) process.beginRun(writer)
    for (const change of state) process.set(change)
    for (const timer of timers) process.timers.set(timer)
    if (state.some((change) => change.state === null)) process.forget()
  }

  /** Everything to save of a process at this moment; undefined for an unknown one. */
  saved(name: string): SavedProcess | undefined {
    const process = this.#processes.get(name)
    if (process === undefined) return undefined
    const { generation, checkpoint, holdsRetention, lastChange, forgotten, runs } = process
    const parts = { states: process.currentChanges(), timers: process.timers.all() }
    return { generation, checkpoint, holdsRetention, lastChange, forgotten, runs: [...runs], ...parts }
  }

  /** Puts a process back as it was saved. Its states and timers follow, by {@link restoreParts}. */
  restore(name: string, saved: SavedProcessHead): void {
    const process = new Process(saved.generation)
    process.checkpoint = saved.checkpoint
    process.holdsRetention = saved.holdsRetention
    process.lastChange = saved.lastChange
    process.forgotten = saved.forgotten
    process.runs = [...saved.runs]
    this.#generations = Math.max(this.#generations, saved.generation)
    this.#processes.set(name, process)
  }

  /** Puts states and timers back, in the order in which they were saved. */
  restoreParts(name: string, states: readonly NumberedState[], timers: readonly Timer[]): void {
    const process = this.#processes.get(name)
    if (process === undefined) return
    process.restore(states)
    for (const timer of timers) process.timers.set(timer)
  }
}

/** The state of one key, with the number of the change that it is from. */
export interface NumberedState extends StateChange {
  readonly change: number
}

/** The number of a change, and the open log that has made it and those after it. */
type WriterRun = readonly [first: number, writer: string]

/** The saved fields of a process without its states and timers. */
export interface SavedProcessHead extends Omit<ProcessChanges, 'tokenOf'> {
  readonly checkpoint: string
  readonly holdsRetention: boolean
  /** Runs, in order. The last one goes on. */
  readonly runs: readonly WriterRun[]
}

/** Everything that is saved of a process. */
export interface SavedProcess extends SavedProcessHead {
  /** The last change of each key, in order. */
  readonly states: readonly NumberedState[]
  readonly timers: readonly Timer[]
}

/** One generation of a process. */
class Process implements ProcessChanges {
  readonly generation: number
  checkpoint = ''
  holdsRetention = true
  /** Token of the claim that waits for room. */
  pausedToken: number | undefined
  lastChange = 0
  forgotten = 0
  runs: WriterRun[] = []
  readonly states = new Map<string, NumberedState>()
  readonly timers = new Timers()
  /** Changes in the order of their numbers, including some that a later change of the key has replaced. */
  #changes: NumberedState[] = []
  /** Stored keys, in order; undefined until they are read. */
  #keys: string[] | undefined

  constructor(generation: number) {
    this.generation = generation
  }

  /** The changes from the next one on are made by this open log. */
  beginRun(writer: string): void {
    if (writer === (this.runs.at(-1)?.[1] ?? '')) return
    this.runs = [...this.runs, [this.lastChange + 1, writer] as const].slice(-MAX_RUNS)
  }

  tokenOf(change: number): string {
    return this.runs.findLast(([first]) => first <= change)?.[1] ?? ''
  }

  set({ key, state }: StateChange): void {
    this.lastChange += 1
    const change = { key, state, change: this.lastChange }
    if (this.#keys !== undefined && !this.states.has(key)) {
      const stored = storedText(key)
      this.#keys.splice(indexOfKey(this.#keys, stored), 0, stored)
    }
    this.states.set(key, change)
    this.#changes.push(change)
    if (this.#changes.length > 2 * this.states.size + SLACK) {
      this.#changes = this.#changes.filter((each) => this.#isCurrent(each))
    }
  }

  /** The last change of each key, in order. */
  currentChanges(): readonly NumberedState[] {
    return this.#changes.filter((each) => this.#isCurrent(each))
  }

  restore(changes: readonly NumberedState[]): void {
    for (const change of changes) {
      this.states.set(change.key, change)
      this.#changes.push(change)
    }
    this.#keys = undefined
  }

  changesAfter(
    from: number,
    until: number,
    limit: number,
    maxLength: number,
  ): { readonly found: readonly NumberedState[]; readonly isEnd: boolean } {
    const found: NumberedState[] = []
    let length = 0
    for (let at = firstIndex(this.#changes, ({ change }) => change > from); ; at++) {
      if (found.length === limit || length >= maxLength) return { found, isEnd: false }
      const change = this.#changes[at]
      if (change === undefined || change.change > until) return { found, isEnd: true }
      if (!this.#isCurrent(change)) continue
      found.push(change)
      length += change.state?.length ?? 0
    }
  }

  /** The states of a range of keys, in their order, after one of them. */
  *statesIn(
    { from, to }: KeyRange,
    after: string | undefined,
  ): Generator<{ readonly key: string; readonly state: string }> {
    const keys = this.#sortedKeys()
    const last = after === undefined ? undefined : storedText(after)
    const isWanted = (key: string) =>
      compareStored(key, from) >= 0 && (last === undefined || compareStored(key, last) > 0)
    for (let at = firstIndex(keys, isWanted); ; at++) {
      const stored = keys[at]
      if (stored === undefined || (to !== undefined && compareStored(stored, to) >= 0)) return
      const key = originalText(stored)
      const state = this.states.get(key)?.state
      if (typeof state === 'string') yield { key, state }
    }
  }

  /** The keys as they are stored, in order. Without a reader that wants them, none are sorted. */
  #sortedKeys(): readonly string[] {
    this.#keys ??= Array.from(this.states.keys(), storedText).toSorted(compareStored)
    return this.#keys
  }

  /** Forgets the oldest of too many removed keys. */
  forget(): void {
    const removed = this.#changes.filter((each) => each.state === null && this.#isCurrent(each))
    for (const { key, change } of removed.slice(0, -MAX_TOMBSTONES)) {
      this.states.delete(key)
      this.forgotten = change
      if (this.#keys !== undefined) this.#keys.splice(indexOfKey(this.#keys, storedText(key)), 1)
    }
  }

  #isCurrent(change: NumberedState): boolean {
    return this.states.get(change.key) === change
  }
}

/** The index of a stored key, or where it belongs. */
function indexOfKey(keys: readonly string[], key: string): number {
  return firstIndex(keys, (each) => compareStored(each, key) >= 0)
}
