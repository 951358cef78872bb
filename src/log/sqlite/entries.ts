import { isAtLeastAsComplete } from '../../protocol/event.ts'
import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import type { Appended, Entry, Page, Position, ReadOptions, StartAt } from '../store/contract.ts'
import { LogFileError } from '../errors.ts'
import { gapPage } from '../store/gap-page.ts'
import { mergeDuplicates } from '../store/completeness.ts'
import { advanced, isMarkDue } from '../store/identity-age.ts'
import { identityBytes } from '../store/identity-key.ts'
import { clockEntry, isTimeCertain, nextTime } from '../store/log-clock.ts'
import type { LogTime, WallAndMonotonic } from '../store/log-clock.ts'
import type { PreparedEntry } from '../store/new-entry.ts'
import type { LogFile } from './log-file.ts'
import { SqlitePositions } from './position.ts'
import { ENTRIES } from './runs.ts'
import type { Runs } from './runs.ts'
import { damaged } from './sqlite-error.ts'
import { parseStoredEvent } from './stored-event.ts'
import type { UnplacedEntry } from './stored-event.ts'
import { storedText } from '../../protocol/stored-text.ts'

/** Maximum number of entries that one read parses, and of those that it looks at: some ms each, in which the event loop is blocked. */
const MAX_PARSED = 1_000
const MAX_EXAMINED = 5_000

/**
 * Rows are read as arrays of these columns. Objects would take a third longer, the parsing of the events included.
 */
const COLUMNS = 'position, recorded, revision, backfill, event'
const POSITION = 0
const RECORDED = 1
const REVISION = 2
const BACKFILL = 3
const EVENT = 4

/** The end of the log. */
export interface End {
  /** The number of the last entry; 0 for none. */
  readonly position: number
  /** When it was recorded, in Unix ms. */
  readonly recorded: number
  /** The number of the last entry that retention has deleted, together with all before it; 0 for none. */
  readonly trimmed: number
  /** When that one was recorded, in Unix ms. */
  readonly trimmedRecorded: number
}

/** The entries of a log, and their identities. All methods run within a transaction. */
export class Entries {
  readonly positions: SqlitePositions
  readonly #file: LogFile
  readonly #runs: Runs
  readonly #statements: ReturnType<typeof prepare>
  /** Number of new identities in the append that is under way. */
  #newIdentities = 0

  constructor(file: LogFile, runs: Runs) {
    this.#file = file
    this.#runs = runs
    this.positions = new SqlitePositions(file.name, file.epoch, () => runs.tokens(ENTRIES))
    this.#statements = prepare(file)
  }

  /** The end of the log. */
  end(): End {
    const found = this.#statements.end.get()
    const position = found?.['last_position']
    const recorded = found?.['last_recorded']
    if (typeof position !== 'number' || typeof recorded !== 'number') {
      throw damaged(this.#file.name, 'it has no end')
    }
    const trimmed = Number(found?.['trimmed_position'])
    return { position, recorded, trimmed, trimmedRecorded: Number(found?.['trimmed_recorded']) }
  }

  /**
   * Appends entries, and merges or skips duplicates. Returns the number of new ones, and the change of the wall clock, if there is one:
   * the log then has an entry about it before them.
   */
  append(
    entries: readonly PreparedEntry[],
    clocks: WallAndMonotonic,
  ): Pick<Appended, 'entries' | 'clock' | 'ahead'> {
    if (entries.length === 0) return { entries: 0, ahead: 0 }
    const end = this.end()
    const { row, time: before } = this.#time(end)
    const time = nextTime(before, clocks)
    const { change } = time
    let position = end.position
    this.#newIdentities = 0
    const isReported = change !== undefined && this.#store(clockEntry(change), position + 1, time.time)
    if (isReported) position += 1
    for (const entry of entries) {
      if (this.#hasForgottenCause(entry, end.trimmed)) continue
      if (this.#store(entry, position + 1, time.time)) position += 1
    }
    const count = position - end.position
    if (count > 0) {
      this.#runs.begin(ENTRIES, end.position + 1)
      this.#moveEnd(position, count, time, Number(row?.['uptime']), before.monotonic)
    }
    return {
      entries: count - Number(isReported),
      ahead: time.jump?.by ?? 0,
      ...(isReported && { clock: change }),
    }
  }

  /** The time of the log now, in Unix ms. */
  now(clocks: WallAndMonotonic): number {
    return nextTime(this.#time(this.end()).time, clocks).time
  }

  /** Whether entries may be deleted by their age. */
  get isTimeCertain(): boolean {
    return isTimeCertain(this.#time(this.end()).time)
  }

  /** The time of the log as of its last entry. */
  #time({ recorded }: End) {
    const row = this.#statements.age.get()
    const since = row?.['jump_since']
    const jump = typeof since === 'number' ? { since, by: Number(row?.['jump_by']) } : null
    const time: LogTime = { time: recorded, monotonic: Number(row?.['uptime_clock']), jump }
    return { row, time }
  }

  #moveEnd(position: number, count: number, time: LogTime, uptime: number, monotonic: number): void {
    const { moveEnd, mark } = this.#statements
    const before = { uptime, clock: monotonic }
    const after = advanced(before, time.monotonic)
    const jump = [time.jump?.since ?? null, time.jump?.by ?? null] as const
    moveEnd.run(position, time.time, count, this.#newIdentities, after.uptime, after.clock, ...jump)
    if (isMarkDue(before, after)) mark.run(after.uptime)
  }

  read(after: Position, { limit, types, until: limitedTo }: ReadOptions): Page {
    const { position: end, trimmed, trimmedRecorded } = this.end()
    const from = this.positions.parse(after, end)
    const last = limitedTo === undefined ? end : Math.max(from, this.positions.parse(limitedTo, end))
    if (from < trimmed) {
      const position = this.positions.formatter()
      return gapPage(position(from), position(trimmed), trimmedRecorded, trimmed >= last)
    }
    const until = types === undefined ? last : Math.min(last, this.#firstAfter(from, last) + MAX_EXAMINED)
    const rows =
      types === undefined
        ? this.#statements.read.iterate(from, last, Math.min(limit, MAX_PARSED))
        : this.#statements.readTypes.iterate(
            from,
            until,
            JSON.stringify(types.map(storedText)),
            Math.min(limit, MAX_PARSED),
          )
    const format = this.positions.formatter()
    const entries: Entry[] = []
    const lengths: number[] = []
    let length = 0
    let position = from
    for (const row of rows) {
      const event = row[EVENT]
      position = Number(row[POSITION])
      const entry = this.#parseEvent(position, event)
      entry.position = format(position)
      entry.recorded = Number(row[RECORDED])
      entry.revision = Number(row[REVISION])
      entry.backfill = row[BACKFILL] === 1
      entries.push(entry)
      const own = typeof event === 'string' ? event.length : 0
      lengths.push(own)
      length += own
      if (length >= MAX_PAGE_LENGTH) break
    }
    const isCut = entries.length >= Math.min(limit, MAX_PARSED) || length >= MAX_PAGE_LENGTH
    // Otherwise there is no other entry up to here.
    if (!isCut) position = until
    return { entries, lengths, position: format(position), isEnd: position === last }
  }

  positionAt(start: StartAt): Position {
    const { position: last, trimmed } = this.end()
    if (start === 'end') return this.positions.format(last)
    let low = this.#firstAfter(trimmed, last)
    if (start === 'start') return this.positions.format(low)
    // `recorded` never decreases.
    let high = last
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const found = this.#statements.next.get(middle)
      if (found !== undefined && Number(found['recorded']) < start.time) low = Number(found['position'])
      else high = middle
    }
    return this.positions.format(low)
  }

  /** The position before the first entry after `from`; `last` if there is none. */
  #firstAfter(from: number, last: number): number {
    const found = this.#statements.next.get(from)
    return found === undefined ? last : Number(found['position']) - 1
  }

  /** Whether the entry because of which this one is appended was deleted, and not by retention. */
  #hasForgottenCause({ cause }: PreparedEntry, trimmed: number): boolean {
    if (cause === undefined) return false
    const position = Number(this.#statements.findIdentity.get(identityBytes(cause))?.['position'] ?? 0)
    return position > trimmed && this.#statements.has.get(position) === undefined
  }

  /** Whether the entry is new. */
  #store(entry: PreparedEntry, position: number, recorded: number): boolean {
    const identity = identityBytes(entry)
    const { insert, insertIdentity, findIdentity, moveIdentity } = this.#statements
    const { json, completeness } = entry
    const type = storedText(entry.type)
    const backfill = entry.backfill ? 1 : 0
    if (insertIdentity.run(identity, position, completeness).changes === 1) {
      this.#newIdentities += 1
      insert.run(position, type, recorded, 1, backfill, json)
      return true
    }
    const known = findIdentity.get(identity)
    const earlier = Number(known?.['completeness'])
    if (isAtLeastAsComplete(earlier, completeness)) return false
    const revision = Number(known?.['revision']) + 1
    insert.run(
      position,
      type,
      recorded,
      revision,
      backfill,
      this.#merge(Number(known?.['position']), entry, earlier),
    )
    moveIdentity.run(position, revision, earlier | completeness, identity)
    return true
  }

  /** The event as JSON, with what only its earlier entry has. That entry may have been deleted. */
  #merge(earlier: number, { json, completeness }: PreparedEntry, earlierCompleteness: number): string {
    if (isAtLeastAsComplete(completeness, earlierCompleteness)) return json
    const found = this.#statements.find.get(earlier)
    if (found === undefined) return json
    return JSON.stringify(
      mergeDuplicates(this.#parseEvent(earlier, found['event']), this.#parseEvent(earlier, json)),
    )
  }

  #parseEvent(position: number, json: unknown): UnplacedEntry {
    const event = parseStoredEvent(json)
    if (event !== undefined) return event
    throw new LogFileError(
      this.#file.name,
      `has an entry that cannot be read: the event of the row of rivulet_entry with position ${position} is not an event as ` +
        `JSON. Correct it, or give it up with: DELETE FROM rivulet_entry WHERE position = ${position}. It was left as it is`,
    )
  }
}

function prepare({ database }: LogFile) {
  const rows = (rest: string) => {
    const statement = database.prepare(`SELECT ${COLUMNS} FROM rivulet_entry WHERE position > ? ${rest}`)
    statement.setReturnArrays(true)
    return statement
  }
  return {
    end: database.prepare(
      'SELECT last_position, last_recorded, trimmed_position, trimmed_recorded FROM rivulet_log',
    ),
    age: database.prepare('SELECT uptime, uptime_clock, jump_since, jump_by FROM rivulet_log'),
    moveEnd: database.prepare(
      `UPDATE rivulet_log SET last_position = ?, last_recorded = ?, entries = entries + ?, identities = identities + ?,
       uptime = ?, uptime_clock = ?, jump_since = ?, jump_by = ?`,
    ),
    mark: database.prepare(
      'INSERT OR REPLACE INTO rivulet_mark SELECT ?, identities, last_position FROM rivulet_log',
    ),
    insert: database.prepare('INSERT INTO rivulet_entry VALUES (?, ?, ?, ?, ?, ?)'),
    has: database.prepare('SELECT 1 FROM rivulet_entry WHERE position = ?'),
    find: database.prepare('SELECT event FROM rivulet_entry WHERE position = ?'),
    insertIdentity: database.prepare(
      'INSERT INTO rivulet_identity VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING',
    ),
    findIdentity: database.prepare(
      'SELECT position, revision, completeness FROM rivulet_identity WHERE hash = ?',
    ),
    moveIdentity: database.prepare(
      'UPDATE rivulet_identity SET position = ?, revision = ?, completeness = ? WHERE hash = ?',
    ),
    next: database.prepare(
      'SELECT position, recorded FROM rivulet_entry WHERE position > ? ORDER BY position LIMIT 1',
    ),
    read: rows('AND position <= ? ORDER BY position LIMIT ?'),
    readTypes: rows(
      'AND position <= ? AND type IN (SELECT value FROM json_each(?)) ORDER BY position LIMIT ?',
    ),
  }
}
