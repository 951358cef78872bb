import { isSweepDue } from '../store/identity-age.ts'
import type { IdentityLimits } from '../store/identity-age.ts'
import type { LogRoom, LogUsage, Trimmed, TrimLimit } from '../store/retention-store.ts'
import { ageLimit, clockChangeOf } from '../store/log-clock.ts'
import type { LogFile } from './log-file.ts'
import { damaged } from './sqlite-error.ts'
import { originalText, storedText } from '../../protocol/stored-text.ts'
import { parseStoredEvent } from './stored-event.ts'

/** The length of the events that one step deletes, in bytes: some ms, in which no other process writes. */
const MAX_STEP_BYTES = 4 * 1024 * 1024

/** Number of entries that are deleted between two looks at the clock, and the time after which a step ends, in ms. */
const CHUNK = 50
const MAX_STEP_TIME = 4

/** Number of identities that one step of a sweep looks at. */
const SWEEP_STEP = 4_000

/** The entries that a step is going to delete. */
interface SqliteTrimPlan extends Trimmed {
  /** The number of the last entry to delete. */
  readonly last: number
  /** When that one was recorded. */
  readonly recorded: number
  /** The size of the events to delete. */
  readonly bytes: number
}

/** A sweep over all identities, in the order of their hashes: so appends maintain no index by age. */
interface Sweep {
  /** Up to this entry, identities are deleted. */
  readonly position: number
  /** Number of identities at the mark that the sweep follows. */
  readonly identities: number
  /** The last hash that was looked at. */
  readonly after: Uint8Array
}

/** Deletes the oldest entries, and identities that are old enough. All methods run within a transaction. */
export class SqliteTrimming {
  readonly #file: LogFile
  readonly #limits: IdentityLimits
  readonly #statements: ReturnType<typeof prepare>
  #sweep: Sweep | undefined

  constructor(file: LogFile, limits: IdentityLimits) {
    this.#file = file
    this.#limits = limits
    this.#statements = prepare(file)
  }

  usage(): Omit<LogUsage, 'isTimeCertain'> {
    const { pages, free, pageSize } = this.#statements
    const count = Number(pages.get()?.['page_count']) - Number(free.get()?.['freelist_count'])
    return {
      bytes: count * Number(pageSize.get()?.['page_size']),
      walBytes: this.#file.walBytes,
      newest: Number(this.#statements.newest.get()?.['last_recorded']),
    }
  }

  room(): Omit<LogRoom, 'isTimeCertain'> {
    const maxBytes = this.#statements.maxBytes.get()?.['max_bytes']
    const { blockedBy } = this.#plan({ limit: 0 })
    return { ...this.usage(), maxBytes: typeof maxBytes === 'number' ? maxBytes : null, neededBy: blockedBy }
  }

  /** The result that {@link trim} would have. */
  plan(limit: TrimLimit): Trimmed {
    const { deleted, isDone, blockedBy } = this.#plan(this.#confirmed(limit))
    return { deleted, isDone, blockedBy }
  }

  /** Deletes at least one chunk, and others until the time of a step is over. */
  trim(given: TrimLimit): Trimmed {
    const { limit, bytes: maxBytes = Infinity, ...rest } = this.#confirmed(given)
    const until = performance.now() + MAX_STEP_TIME
    let sum = 0
    for (let bytes = 0; ;) {
      const most = Math.min(CHUNK, limit - sum)
      const chunk = this.#plan({ ...rest, limit: most, bytes: maxBytes - bytes })
      const { last, recorded, deleted, isDone, blockedBy } = chunk
      if (deleted > 0) {
        this.#statements.delete.run(last)
        this.#statements.move.run(last, recorded, deleted)
      }
      sum += deleted
      bytes += chunk.bytes
      // Fewer than `most`: the next entry is large, or enough is deleted.
      const isOver = deleted < most || sum >= limit || performance.now() >= until
      if (isDone || isOver) return { deleted: sum, isDone, blockedBy }
    }
  }

  setPaused(reader: string | null, maxBytes: number): void {
    this.#statements.setPaused.run(reader === null ? null : storedText(reader), maxBytes)
  }

  #trimmed(): number {
    const found = this.#statements.trimmed.get()?.['trimmed_position']
    if (typeof found !== 'number') throw damaged(this.#file.name, 'it has no end')
    return found
  }

  /** The limit with the time before which entries are old enough: see `ageLimit`. */
  #confirmed(limit: TrimLimit): TrimLimit {
    const { recordedBefore } = limit
    // Mostly nothing is that old.
    if (recordedBefore === undefined || this.#plan({ recordedBefore, limit: 1 }).deleted === 0) return limit
    const changes = this.#statements.clockChanges
      .all()
      .map(({ event }) => clockChangeOf(parseStoredEvent(event)))
      .filter((change) => change !== undefined)
    return { ...limit, recordedBefore: ageLimit(recordedBefore, changes) }
  }

  #plan({ recordedBefore = Infinity, bytes: maxBytes = Infinity, limit }: TrimLimit): SqliteTrimPlan {
    const { slowest, oldest } = this.#statements
    const reader = slowest.get()
    const cursor = reader === undefined ? Infinity : Number(reader['cursor'])
    const plan = { last: this.#trimmed(), recorded: 0, deleted: 0, bytes: 0 }
    for (const row of oldest.iterate(plan.last, limit + 1)) {
      const recorded = Number(row['recorded'])
      if (recorded >= recordedBefore) return { ...plan, isDone: true, blockedBy: null }
      if (Number(row['position']) > cursor) {
        return { ...plan, isDone: true, blockedBy: originalText(String(reader?.['name'])) }
      }
      const size = Number(row['bytes'])
      const isLarge = plan.deleted > 0 && plan.bytes + size > MAX_STEP_BYTES
      if (plan.deleted === limit || plan.bytes >= maxBytes || isLarge)
        return { ...plan, isDone: false, blockedBy: null }
      plan.bytes += size
      plan.last = Number(row['position'])
      plan.recorded = recorded
      plan.deleted += 1
    }
    return { ...plan, isDone: true, blockedBy: null }
  }

  /** Whether a sweep has identities to delete. */
  hasOldIdentities(): boolean {
    this.#sweep ??= this.#nextSweep()
    return this.#sweep !== undefined
  }

  /** Returns whether there are no more identities to delete for now. */
  trimIdentities(): boolean {
    const sweep = this.#sweep
    if (sweep === undefined) return true
    const { sweepBound, sweepRange, sweepRest, countDeleted, finishSweep, deleteMarks } = this.#statements
    const { position, after } = sweep
    const bound = sweepBound.get(after, SWEEP_STEP - 1)?.['hash']
    if (bound instanceof Uint8Array) {
      const { changes } = sweepRange.run(after, bound, position)
      countDeleted.run(changes)
      // Should the transaction fail, what it has passed is left to the next sweep.
      this.#sweep = { ...sweep, after: bound }
      return false
    }
    countDeleted.run(sweepRest.run(after, position).changes)
    finishSweep.run(sweep.identities)
    deleteMarks.run(position)
    this.#sweep = undefined
    return true
  }

  /** The next sweep; undefined if it would not delete enough. */
  #nextSweep(): Sweep | undefined {
    const { minUptime, minNewer } = this.#limits
    const log = this.#statements.identities.get()
    const identities = Number(log?.['identities'])
    const mark = this.#statements.findMark.get(
      Number(log?.['uptime']) - minUptime,
      identities - minNewer,
      this.#trimmed(),
    )
    if (mark === undefined) return undefined
    const deletable = Number(mark['identities']) - Number(log?.['swept_identities'])
    if (!isSweepDue(deletable, identities - Number(log?.['deleted_identities']))) return undefined
    return {
      position: Number(mark['position']),
      identities: Number(mark['identities']),
      after: new Uint8Array(0),
    }
  }
}

function prepare({ database }: LogFile) {
  return {
    pages: database.prepare('PRAGMA page_count'),
    free: database.prepare('PRAGMA freelist_count'),
    pageSize: database.prepare('PRAGMA page_size'),
    newest: database.prepare('SELECT last_recorded FROM rivulet_log'),
    maxBytes: database.prepare('SELECT max_bytes FROM rivulet_log'),
    setPaused: database.prepare('UPDATE rivulet_log SET paused_by = ?, max_bytes = ?'),
    trimmed: database.prepare('SELECT trimmed_position FROM rivulet_log'),
    slowest: database.prepare(
      `SELECT name, cursor FROM rivulet_reader LEFT JOIN rivulet_process USING (name)
       WHERE holds_retention IS NOT 0 ORDER BY cursor LIMIT 1`,
    ),
    // The length in bytes is in the header of the row: the event is not read.
    oldest: database.prepare(
      `SELECT position, recorded, octet_length(event) AS bytes FROM rivulet_entry WHERE position > ?
       ORDER BY position LIMIT ?`,
    ),
    clockChanges: database.prepare(
      "SELECT event FROM rivulet_entry WHERE type = 'log.clock' ORDER BY position",
    ),
    delete: database.prepare('DELETE FROM rivulet_entry WHERE position <= ?'),
    move: database.prepare(
      'UPDATE rivulet_log SET trimmed_position = ?, trimmed_recorded = ?, entries = entries - ?',
    ),
    identities: database.prepare(
      'SELECT uptime, identities, deleted_identities, swept_identities FROM rivulet_log',
    ),
    findMark: database.prepare(
      `SELECT identities, position FROM rivulet_mark WHERE uptime <= ? AND identities <= ? AND position <= ?
       ORDER BY uptime DESC LIMIT 1`,
    ),
    sweepBound: database.prepare(
      'SELECT hash FROM rivulet_identity WHERE hash > ? ORDER BY hash LIMIT 1 OFFSET ?',
    ),
    sweepRange: database.prepare(
      'DELETE FROM rivulet_identity WHERE hash > ? AND hash <= ? AND position <= ?',
    ),
    sweepRest: database.prepare('DELETE FROM rivulet_identity WHERE hash > ? AND position <= ?'),
    countDeleted: database.prepare('UPDATE rivulet_log SET deleted_identities = deleted_identities + ?'),
    finishSweep: database.prepare('UPDATE rivulet_log SET swept_identities = ?'),
    deleteMarks: database.prepare('DELETE FROM rivulet_mark WHERE position < ?'),
  }
}
