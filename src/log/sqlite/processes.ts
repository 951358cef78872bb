import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import type { Position, StoredReader } from '../store/contract.ts'
import { keyRanges } from '../state/key-ranges.ts'
import { ProcessPositions } from '../state/process-position.ts'
import type { ProcessChanges } from '../state/process-position.ts'
import { MAX_TOMBSTONES } from '../store/process-store.ts'
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
import type { NameRange, Timer, TimerChange, TimerClock } from '../../streams/timers.ts'
import { compareStored, originalText, storedText } from '../../protocol/stored-text.ts'
import type { LogFile } from './log-file.ts'
import type { Runs } from './runs.ts'

/** Rows of earlier generations that are removed in one transaction. */
const CLEANED_ROWS = 1_000

/** The states between two keys. The primary key finds them. */
export const RANGE_FROM = `SELECT key, state FROM rivulet_state
  WHERE generation = ? AND key >= ? AND key < ? AND state IS NOT NULL ORDER BY key LIMIT ?`
export const RANGE_AFTER = RANGE_FROM.replace('key >=', 'key >')

/** A process in its current generation. */
interface FoundProcess extends ProcessChanges {
  readonly checkpoint: string
  readonly holdsRetention: boolean
}

/** State and timers of processes. All methods run within a transaction. */
export class SqliteProcesses {
  readonly positions: ProcessPositions
  readonly #runs: Runs
  readonly #statements: ReturnType<typeof prepare>

  constructor(file: LogFile, runs: Runs) {
    this.#runs = runs
    this.positions = new ProcessPositions(file.name, file.epoch)
    this.#statements = prepare(file)
  }

  /** What the last commit of a process said; undefined for an unknown one. */
  process(name: string): StoredReader['process'] {
    const process = this.#find(name)
    return process && { checkpoint: process.checkpoint, holdsRetention: process.holdsRetention }
  }

  states(name: string, keys: readonly string[]): (string | null)[] {
    const process = this.#find(name)
    if (process === undefined) return keys.map(() => null)
    return keys.map((key) => {
      const state = this.#statements.state.get(process.generation, storedText(key))?.['state']
      return typeof state === 'string' ? state : null
    })
  }

  timers(name: string, { clock, until, after, limit }: TimersOptions): Timer[] {
    const process = this.#find(name)
    if (process === undefined) return []
    // SQLite begins after a row of three columns by one search in the index.
    const { due, key, name: last } = after ?? { due: Number.MIN_SAFE_INTEGER, key: '', name: '' }
    return this.#statements.timers
      .all(process.generation, clock, until, due, storedText(key), storedText(last), limit)
      .map((row) => timerOf(row, originalText(String(row['key'])), clock))
  }

  keyTimers(name: string, key: string, { from, to }: NameRange, limit: number): Timer[] {
    const process = this.#find(name)
    if (process === undefined) return []
    return this.#statements.keyTimers
      .all(process.generation, storedText(key), storedText(from), storedText(to), limit)
      .map((row) => timerOf(row, key, row['clock'] === 'event' ? 'event' : 'recorded'))
  }

  end(name: string): Position {
    const process = this.#find(name)
    return process === undefined ? this.positions.start : this.positions.format(process, process.lastChange)
  }

  changes(name: string, after: Position, options: ChangesOptions): ChangesPage {
    const { limit, until, present = false, maxLength = MAX_PAGE_LENGTH } = options
    const process = this.#find(name)
    const from = this.positions.resume(after, process, present)
    if (process === undefined) return { changes: [], position: after, isEnd: true }
    const { generation, lastChange } = process
    const last = until === undefined ? lastChange : this.positions.until(until, process)
    const changes: StoredChange[] = []
    let length = 0
    for (const row of this.#statements.changes.iterate(generation, from, last, limit)) {
      const state = row['state']
      const change: StoredChange = {
        key: originalText(String(row['key'])),
        state: typeof state === 'string' ? state : null,
        position: this.positions.format(process, Number(row['change'])),
      }
      changes.push(change)
      length += change.state?.length ?? 0
      if (length >= maxLength) break
    }
    const isEnd = changes.length < limit && length < maxLength
    const end = this.positions.format(process, Math.max(from, last))
    const wanted = present ? changes.filter(({ state }) => state !== null) : changes
    return { changes: wanted, position: isEnd ? end : (changes.at(-1)?.position ?? end), isEnd }
  }

  range(name: string, options: RangeOptions): RangePage {
    const { prefix, after, limit, maxLength = MAX_PAGE_LENGTH, since } = options
    const process = this.#find(name)
    if (since !== undefined) this.positions.checkGeneration(since, process)
    if (process === undefined) return { states: [], position: this.positions.start, isEnd: true }
    const { generation } = process
    const position = this.positions.format(process, process.lastChange)
    const states: { key: string; state: string }[] = []
    const last = after === undefined ? undefined : storedText(after)
    let length = 0
    for (const { from, to } of keyRanges(prefix)) {
      // A blob is greater than each text.
      const before = to ?? new Uint8Array()
      const isWithin = last !== undefined && compareStored(last, from) >= 0
      // With both bounds in one statement, SQLite would begin each page at the first key.
      const rows = isWithin
        ? this.#statements.rangeAfter.iterate(generation, last, before, limit + 1)
        : this.#statements.range.iterate(generation, from, before, limit + 1)
      for (const row of rows) {
        if (states.length === limit || length >= maxLength) return { states, position, isEnd: false }
        const state = String(row['state'])
        states.push({ key: originalText(String(row['key'])), state })
        length += state.length
      }
    }
    return { states, position, isEnd: true }
  }

  /** Whether `changes` after this position is not empty. */
  hasMore(name: string, after: Position): boolean {
    const process = this.#find(name)
    return this.positions.resume(after, process) < (process?.lastChange ?? 0)
  }

  /** Drops a process. `clean` removes what it leaves. */
  drop(name: string): void {
    this.#statements.drop.run(storedText(name))
  }

  commit(name: string, commit: ProcessCommit): void {
    const { checkpoint, reset = false, holdsRetention = true, state, timers } = commit
    const found = this.#find(name)
    const statements = this.#statements
    if (reset || found === undefined) {
      statements.drop.run(storedText(name))
      statements.create.run(storedText(name), checkpoint)
    }
    const process = reset || found === undefined ? this.#find(name) : found
    if (process === undefined) throw new RangeError('a process that was created is there')
    const { generation, lastChange } = process
    if (state.length > 0) this.#runs.begin(generation, lastChange + 1)
    let change = lastChange
    for (const each of state) {
      change += 1
      statements.setState.run(generation, storedText(each.key), change, each.state)
    }
    for (const timer of timers) this.#setTimer(generation, timer)
    const forgotten = this.#forget(process, state)
    statements.save.run(change, forgotten, checkpoint, Number(holdsRetention), generation)
  }

  /** The claim of this token waits until its next commit. */
  pause(name: string, token: number): void {
    this.#statements.pause.run(token, storedText(name))
  }

  /** Whether earlier generations have left something. */
  hasDropped(): boolean {
    return this.#statements.dropped.get() !== undefined
  }

  /** Removes a part of what earlier generations have left. Returns whether there may be more. */
  clean(): boolean {
    const { dropped, cleanState, cleanTimers, cleanRuns, cleanProcess } = this.#statements
    const generation = dropped.get()?.['generation']
    if (typeof generation !== 'number') return false
    const rows =
      Number(cleanState.run(generation, generation, CLEANED_ROWS).changes) +
      Number(cleanTimers.run(generation, generation, CLEANED_ROWS).changes)
    if (rows === 0) {
      cleanRuns.run(generation)
      cleanProcess.run(generation)
    }
    return true
  }

  #setTimer(generation: number, timer: TimerChange): void {
    const key = storedText(timer.key)
    const name = storedText(timer.name)
    const { removeTimer, setTimer } = this.#statements
    if (timer.due === null) removeTimer.run(generation, key, name)
    else setTimer.run(generation, key, name, timer.clock, timer.due, timer.cause, timer.data)
  }

  /** Forgets the oldest of too many removed keys. Returns the number of the last change that is forgotten. */
  #forget({ generation, forgotten }: ProcessChanges, state: readonly StateChange[]): number {
    if (state.every((each) => each.state !== null)) return forgotten
    const { oldTombstone, forget } = this.#statements
    const last = oldTombstone.get(generation, MAX_TOMBSTONES)?.['change']
    if (typeof last !== 'number') return forgotten
    forget.run(generation, last)
    return last
  }

  #find(name: string): FoundProcess | undefined {
    const found = this.#statements.find.get(storedText(name))
    if (found === undefined) return undefined
    const generation = Number(found['generation'])
    return {
      generation,
      tokenOf: this.#runs.tokens(generation),
      lastChange: Number(found['last_change']),
      forgotten: Number(found['forgotten']),
      checkpoint: String(found['checkpoint']),
      holdsRetention: found['holds_retention'] !== 0,
    }
  }
}

function timerOf(row: Readonly<Record<string, unknown>>, key: string, clock: TimerClock): Timer {
  return {
    key,
    name: originalText(String(row['name'])),
    clock,
    due: Number(row['due']),
    cause: String(row['cause']),
    data: row['data'] === null ? null : String(row['data']),
  }
}

function prepare({ database }: LogFile) {
  const sql = (text: string) => database.prepare(text)
  return {
    find: sql(
      'SELECT generation, last_change, forgotten, checkpoint, holds_retention FROM rivulet_process WHERE name = ?',
    ),
    create: sql('INSERT INTO rivulet_process (name, last_change, forgotten, checkpoint) VALUES (?, 0, 0, ?)'),
    drop: sql('UPDATE rivulet_process SET name = NULL WHERE name = ?'),
    save: sql(
      `UPDATE rivulet_process SET last_change = ?, forgotten = ?, checkpoint = ?, holds_retention = ?, paused_token = NULL
       WHERE generation = ?`,
    ),
    pause: sql('UPDATE rivulet_process SET paused_token = ? WHERE name = ?'),
    state: sql('SELECT state FROM rivulet_state WHERE generation = ? AND key = ?'),
    setState: sql(
      `INSERT INTO rivulet_state VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET change = excluded.change, state = excluded.state`,
    ),
    changes: sql(
      `SELECT key, change, state FROM rivulet_state
       WHERE generation = ? AND change > ? AND change <= ? ORDER BY change LIMIT ?`,
    ),
    range: sql(RANGE_FROM),
    rangeAfter: sql(RANGE_AFTER),
    oldTombstone: sql(
      `SELECT change FROM rivulet_state WHERE generation = ? AND state IS NULL
       ORDER BY change DESC LIMIT 1 OFFSET ?`,
    ),
    forget: sql('DELETE FROM rivulet_state WHERE generation = ? AND state IS NULL AND change <= ?'),
    timers: sql(
      `SELECT key, name, due, cause, data FROM rivulet_timer
       WHERE generation = ? AND clock = ? AND due <= ? AND (due, key, name) > (?, ?, ?)
       ORDER BY due, key, name LIMIT ?`,
    ),
    keyTimers: sql(
      `SELECT name, clock, due, cause, data FROM rivulet_timer
       WHERE generation = ? AND key = ? AND name >= ? AND name < ? ORDER BY name LIMIT ?`,
    ),
    setTimer: sql(
      `INSERT INTO rivulet_timer VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET clock = excluded.clock, due = excluded.due, cause = excluded.cause, data = excluded.data`,
    ),
    removeTimer: sql('DELETE FROM rivulet_timer WHERE generation = ? AND key = ? AND name = ?'),
    dropped: sql('SELECT generation FROM rivulet_process WHERE name IS NULL LIMIT 1'),
    cleanState: sql(
      `DELETE FROM rivulet_state
       WHERE generation = ? AND key IN (SELECT key FROM rivulet_state WHERE generation = ? LIMIT ?)`,
    ),
    cleanTimers: sql(
      `DELETE FROM rivulet_timer
       WHERE generation = ? AND (key, name) IN (SELECT key, name FROM rivulet_timer WHERE generation = ? LIMIT ?)`,
    ),
    cleanRuns: sql('DELETE FROM rivulet_run WHERE generation = ?'),
    cleanProcess: sql('DELETE FROM rivulet_process WHERE generation = ?'),
  }
}
