import { isTimeEventType } from '../../protocol/event-types.ts'
import type { LogClock, ResearchEvent } from '../../protocol/event.ts'
import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import type { Appended, Entry, Page, Position, ReadOptions, StartAt } from '../store/contract.ts'
import { LogPositionError } from '../errors.ts'
import { gapPage } from '../store/gap-page.ts'
import { IDENTITY_LIMITS } from '../store/identity-age.ts'
import type { IdentityLimits } from '../store/identity-age.ts'
import { ageLimit, clockEntry, isTimeCertain, nextTime } from '../store/log-clock.ts'
import type { LogTime, WallAndMonotonic } from '../store/log-clock.ts'
import type { PreparedEntry } from '../store/new-entry.ts'
import type { Partitions as SourcePartitions } from '../store/sharing-store.ts'
import type { Trimmed, TrimLimit } from '../store/retention-store.ts'
import { MemoryIdentities } from './identities.ts'
import { Partition } from './partition.ts'
import type { StoredEntry } from './partition.ts'

interface Located {
  readonly entry: StoredEntry
  readonly partition: number
  readonly index: number
}

/** Maximum number of entries that one read looks at, so that a rare type does not block the event loop. */
const MAX_EXAMINED = 10_000

/**
 * The entries of a log, in partitions. All entries of a source are in the same one. A position is the number of entries before
 * it in each partition.
 *
 * Entries that were recorded in the same millisecond and not read in between are a group. An entry of the log's time begins another
 * group. A group is read partition by partition, beginning with another one each time. So the order in which sources alternate is not that of the appends, as in
 * a log over many machines; and yet it is the same each time, since no entry is added to a group that was read.
 */
export class MemoryPartitions {
  readonly #log: string
  readonly epoch = randomText()
  readonly #partitions: readonly Partition[]
  readonly #latest: MemoryIdentities
  #append = 0
  #trimmedRecorded = 0
  /** Number of the append that had the last trimmed entry. */
  #trimmedAppend = 0
  #bytes = 0
  /** The time of the log at the newest entry. */
  #time: LogTime = { time: 0, monotonic: 0, jump: null }
  /** The changes of the wall clock since the last entry that was trimmed. */
  #changes: readonly LogClock[] = []
  #group = 0
  /** Whether the order within the group may be known to a reader. No entry is added to it then. */
  #isGroupRead = false

  constructor(log: string, count: number, limits: IdentityLimits = IDENTITY_LIMITS) {
    this.#log = log
    this.#partitions = Array.from({ length: count }, () => new Partition())
    this.#latest = new MemoryIdentities(limits)
  }

  /** The division of sources into partitions. */
  get sources(): SourcePartitions {
    const { length: count } = this.#partitions
    return { count, of: (source) => hashOf(source) % count }
  }

  /** Number of entries. */
  get size(): number {
    return this.#partitions.reduce((sum, { size }) => sum + size, 0)
  }

  /** Size of the entries, in bytes, about. */
  get bytes(): number {
    return this.#bytes
  }

  /** When the newest entry was recorded, in Unix ms; 0 for none yet. */
  get newest(): number {
    return this.#time.time
  }

  /** When the oldest entry was recorded, in Unix ms; Infinity for none. */
  get oldest(): number {
    return Math.min(...this.#partitions.map((entries) => entries.get(entries.first)?.recorded ?? Infinity))
  }

  /** The number of entries after a position, and when the oldest of them was recorded; null for none. */
  after(position: Position): { readonly count: number; readonly oldest: number | null } {
    const at = this.#parse(position).map((count, partition) =>
      Math.max(count, this.#partitions[partition]?.first ?? 0),
    )
    const count = this.#partitions.reduce(
      (sum, { length }, partition) => sum + length - (at[partition] ?? 0),
      0,
    )
    return { count, oldest: this.#next(at)?.entry.recorded ?? null }
  }

  /**
   * Appends entries, and merges or skips duplicates. Returns the number of new ones, and the change of the wall clock, if there is one:
   * the log then has an entry about it before them.
   */
  append(
    given: readonly PreparedEntry[],
    clocks: WallAndMonotonic,
  ): Pick<Appended, 'entries' | 'clock' | 'ahead'> {
    if (given.length === 0) return { entries: 0, ahead: 0 }
    const time = nextTime(this.#time, clocks)
    const { time: recorded, change } = time
    const entries = change === undefined ? given : [clockEntry(change), ...given]
    let group = this.#isGroupRead || recorded > this.#time.time ? this.#group + 1 : this.#group
    // Nothing is changed before all entries are known to be sound.
    const append = this.#append + 1
    const added: StoredEntry[] = []
    const merging = this.#latest.merging()
    for (const entry of entries) {
      if (entry.cause !== undefined && this.#latest.isForgotten(entry.cause)) continue
      if (isTimeEventType(entry.type)) group += 1
      const stored = merging.add(entry, { recorded, group, append })
      if (stored !== undefined) added.push(stored)
    }
    const ahead = time.jump?.by ?? 0
    if (added.length === 0) return { entries: 0, ahead }
    merging.commit(append, time.monotonic)
    this.#append = append
    this.#time = time
    this.#group = group
    this.#isGroupRead = false
    for (const entry of added) {
      this.#partitionOf(entry.source).push(entry)
      this.#bytes += bytesOf(entry)
    }
    const isReported = change !== undefined && added[0]?.type === 'log.clock'
    if (isReported) {
      this.#changes = [...this.#changes.filter(({ at }) => at >= this.#trimmedRecorded), change]
    }
    return { entries: added.length - Number(isReported), ahead, ...(isReported && { clock: change }) }
  }

  /** The time of the log now, in Unix ms. */
  now(clocks: WallAndMonotonic): number {
    return nextTime(this.#time, clocks).time
  }

  /** Whether entries may be deleted by their age. */
  get isTimeCertain(): boolean {
    return isTimeCertain(this.#time)
  }

  read(after: Position, { limit, types, until, partition: only }: ReadOptions): Page {
    this.#isGroupRead = true
    const at = this.#parse(after)
    const end = until === undefined ? undefined : this.#parse(until)
    // Every position is reached by reading on in the same order. Entries before it may have been forgotten.
    const isBeyond = (entry: Located | undefined) =>
      entry === undefined || (end !== undefined && entry.index >= (end[entry.partition] ?? 0))
    const from = this.#partitions.map(({ first }, partition) => Math.max(first, at[partition] ?? 0))
    if (this.#format(from) !== after) {
      return gapPage(after, this.#format(from), this.#trimmedRecorded, isBeyond(this.#next(from)))
    }
    const entries: Entry[] = []
    const lengths: number[] = []
    let length = 0
    let examined = 0
    let next = this.#next(at)
    const isFull = () => entries.length >= limit || length >= MAX_PAGE_LENGTH || examined >= MAX_EXAMINED
    for (; next !== undefined && !isBeyond(next) && !isFull(); examined++) {
      const { entry, partition, index } = next
      at[partition] = index + 1
      const isIn = only === undefined || partition === only
      if (isIn && (types === undefined || types.includes(entry.type))) {
        entries.push(entryOf(entry, this.#format(at)))
        lengths.push(entry.json.length)
        length += entry.json.length
      }
      next = this.#next(at)
    }
    return { entries, lengths, position: this.#format(at), isEnd: isBeyond(next) }
  }

  /** Whether there are entries after this position, or were. */
  hasMore(after: Position): boolean {
    const at = this.#parse(after)
    const isOvertaken = this.#partitions.some(({ first }, partition) => first > (at[partition] ?? 0))
    return isOvertaken || this.#next(at) !== undefined
  }

  /** The entry that a reader gets at this position; undefined at the start. */
  entryAt(position: Position): Entry | undefined {
    const at = this.#parse(position)
    const last = at
      .flatMap((count, partition) => {
        const entry = this.#partitions[partition]?.get(count - 1)
        return entry === undefined ? [] : [{ partition, entry, index: count - 1 }]
      })
      .reduce<Located | undefined>(
        (latest, next) => (latest === undefined || this.#isBefore(latest, next) ? next : latest),
        undefined,
      )
    return last === undefined || last.entry.isForgotten === true ? undefined : entryOf(last.entry, position)
  }

  /** A number that grows in the order of reading. */
  order(position: Position): number {
    return this.#parse(position).reduce((sum, count) => sum + count, 0)
  }

  /** Throws a LogPositionError for a position that is not one of this log. */
  check(position: Position): void {
    this.#parse(position)
  }

  get end(): Position {
    return this.#format(this.#partitions.map(({ length }) => length))
  }

  positionAt(start: StartAt): Position {
    this.#isGroupRead = true
    if (start === 'end') return this.end
    if (start === 'start') return this.#format(this.#partitions.map(({ first }) => first))
    return this.#format(this.#partitions.map((entries) => entries.firstAt(start.time)))
  }

  /** The reader whose cursor is before the oldest entry. */
  neededBy(cursors: ReadonlyMap<string, Position>): string | null {
    const oldest = this.#next(this.#partitions.map(({ first }) => first))
    if (oldest === undefined) return null
    for (const [name, cursor] of cursors) {
      if ((this.#parse(cursor)[oldest.partition] ?? 0) <= oldest.index) return name
    }
    return null
  }

  /** Deletes the oldest entries, up to the first one after one of these cursors. */
  trim(
    { recordedBefore: before = Infinity, bytes = Infinity, limit }: TrimLimit,
    cursors: ReadonlyMap<string, Position>,
  ): Trimmed {
    const recordedBefore = ageLimit(before, this.#changes)
    // The order of the entries that are left is not to change.
    this.#isGroupRead = true
    const needs = Array.from(cursors, ([name, cursor]) => ({ name, cursor: this.#parse(cursor) }))
    const at = this.#partitions.map(({ first }) => first)
    let deleted = 0
    let next = this.#next(at)
    let blockedBy: string | null = null
    const enough = this.#bytes - bytes
    for (; next !== undefined && deleted < limit && this.#bytes > enough; deleted++) {
      const { entry, partition, index } = next
      if (entry.recorded >= recordedBefore) break
      blockedBy = needs.find(({ cursor }) => (cursor[partition] ?? 0) <= index)?.name ?? null
      if (blockedBy !== null) break
      at[partition] = index + 1
      this.#trimmedRecorded = entry.recorded
      this.#trimmedAppend = entry.append
      this.#bytes -= bytesOf(entry)
      this.#latest.deleted(entry)
      next = this.#next(at)
    }
    for (const [partition, entries] of this.#partitions.entries()) entries.trim(at[partition] ?? 0)
    const isDone = next === undefined || next.entry.recorded >= recordedBefore || blockedBy !== null
    return { deleted, isDone, blockedBy }
  }

  /** Deletes the entries that match, wherever they are. Returns their number. */
  forget(isForgotten: (entry: StoredEntry) => boolean): number {
    const found = this.#partitions.flatMap((entries) => entries.forget(isForgotten))
    for (const entry of found) {
      this.#bytes -= bytesOf(entry)
      this.#latest.deleted(entry, true)
    }
    return found.length
  }

  /** Deletes identities of trimmed entries that are old enough. */
  trimIdentities(): boolean {
    // An append is in several partitions: its other entries may be there still.
    return this.#latest.trim(Math.min(this.#trimmedAppend, this.#firstAppend) - 1)
  }

  /** The number of the oldest append of which entries are left. */
  get #firstAppend(): number {
    return Math.min(...this.#partitions.map((entries) => entries.get(entries.first)?.append ?? Infinity))
  }

  /** The next entry in the order of reading, and the index of its partition. */
  #next(at: readonly number[]): Located | undefined {
    let next: Located | undefined
    for (const [partition, entries] of this.#partitions.entries()) {
      const index = entries.next(at[partition] ?? 0)
      const entry = entries.get(index)
      if (entry === undefined) continue
      const located = { entry, partition, index }
      if (next === undefined || this.#isBefore(located, next)) next = located
    }
    return next
  }

  /** Whether one entry is read before another one of another partition. */
  #isBefore(one: Located, other: Located): boolean {
    const { group } = one.entry
    if (group !== other.entry.group) return group < other.entry.group
    return this.#rank(one.partition, group) < this.#rank(other.partition, group)
  }

  #rank(partition: number, group: number): number {
    return (partition + group) % this.#partitions.length
  }

  #partitionOf(source: string): Partition {
    const partition = this.#partitions[hashOf(source) % this.#partitions.length]
    if (partition === undefined) throw new RangeError('a log has at least one partition')
    return partition
  }

  #format(at: readonly number[]): Position {
    return `${this.epoch}:${at.join('-')}`
  }

  #parse(position: Position): number[] {
    // A position may come from outside of TypeScript.
    const text = String(position)
    const prefix = `${this.epoch}:`
    const at = text.startsWith(prefix) ? text.slice(prefix.length).split('-').map(Number) : []
    if (this.#format(at) !== text || at.length !== this.#partitions.length || !at.every(isCount)) {
      throw new LogPositionError(this.#log, text, 'unknown', 'is not one of')
    }
    if (at.some((count, partition) => count > (this.#partitions[partition]?.length ?? 0))) {
      throw new LogPositionError(this.#log, text, 'beyond', 'is beyond the end of')
    }
    return at
  }
}

function entryOf({ json, recorded, revision, backfill }: StoredEntry, position: Position): Entry {
  const event: ResearchEvent = JSON.parse(json)
  return Object.assign(event, { position, recorded, revision, backfill })
}

function hashOf(source: string): number {
  let hash = 0
  for (let i = 0; i < source.length; i++) hash = (Math.imul(hash, 31) + source.charCodeAt(i)) >>> 0
  return hash
}

/** The size of an entry, in bytes, about. */
function bytesOf({ source, id, type, json }: StoredEntry): number {
  return 100 + source.length + id.length + type.length + json.length
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function randomText(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(36)).join('')
}
