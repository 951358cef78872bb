import { isAtLeastAsComplete, mergeDuplicates } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Entry, Page, Position, ReadOptions, StartAt } from '../contract.ts'
import { LogPositionError } from '../errors.ts'
import type { PreparedEntry } from '../prepared-entry.ts'

interface StoredEntry extends PreparedEntry {
  readonly recorded: number
  readonly revision: number
  /** Entries of the same group are read in the order of their partitions, not in that of their appends. */
  readonly group: number
}

interface Located {
  readonly entry: StoredEntry
  readonly partition: number
}

/** Maximum number of entries that one read looks at, so that a rare type does not block the event loop. */
const MAX_EXAMINED = 10_000

/**
 * The entries of a log, in partitions. All entries of a source are in the same one. A position is the number of entries before
 * it in each partition.
 *
 * Entries that were recorded in the same millisecond and not read in between are a group. A group is read partition by
 * partition, beginning with another one each time. So the order in which sources alternate is not that of the appends, as in
 * a log over many machines; and yet it is the same each time, since no entry is added to a group that was read.
 */
export class Partitions {
  readonly #log: string
  readonly #epoch = randomText()
  readonly #partitions: readonly StoredEntry[][]
  #latest = new Identities()
  #recorded = 0
  #group = 0
  /** Whether the order within the group may be known to a reader. No entry is added to it then. */
  #isGroupRead = false

  constructor(log: string, count: number) {
    this.#log = log
    this.#partitions = Array.from({ length: count }, () => [])
  }

  /** Appends entries, and merges or skips duplicates. Returns how many are new. */
  append(entries: readonly PreparedEntry[], now: number): number {
    const recorded = Math.max(this.#recorded, now)
    const group = this.#isGroupRead || recorded > this.#recorded ? this.#group + 1 : this.#group
    // Nothing is changed before all entries are known to be sound.
    const staged = new Identities()
    const added: StoredEntry[] = []
    for (const entry of entries) {
      const earlier = staged.get(entry) ?? this.#latest.get(entry)
      if (earlier !== undefined && isAtLeastAsComplete(earlier.completeness, entry.completeness)) continue
      const complete = earlier === undefined ? entry : merged(earlier, entry)
      const stored = { ...complete, recorded, revision: (earlier?.revision ?? 0) + 1, group }
      staged.set(stored)
      added.push(stored)
    }
    if (added.length === 0) return 0
    this.#recorded = recorded
    this.#group = group
    this.#isGroupRead = false
    for (const entry of added) {
      this.#partitionOf(entry.source).push(entry)
      this.#latest.set(entry)
    }
    return added.length
  }

  read(after: Position, { limit, types }: ReadOptions): Page {
    this.#isGroupRead = true
    const at = this.#parse(after)
    const entries: Entry[] = []
    let examined = 0
    let next = this.#next(at)
    for (; next !== undefined && entries.length < limit && examined < MAX_EXAMINED; examined++) {
      const { entry, partition } = next
      at[partition] = (at[partition] ?? 0) + 1
      if (types === undefined || types.includes(entry.type)) {
        entries.push(entryOf(entry, this.#format(at)))
      }
      next = this.#next(at)
    }
    return { entries, position: this.#format(at), isEnd: next === undefined }
  }

  /** Whether there are entries after this position. */
  hasMore(after: Position): boolean {
    return this.#next(this.#parse(after)) !== undefined
  }

  /** The entry that a reader gets at this position; undefined at the start. */
  entryAt(position: Position): Entry | undefined {
    const at = this.#parse(position)
    const last = at
      .flatMap((count, partition) => {
        const entry = this.#partitions[partition]?.[count - 1]
        return entry === undefined ? [] : [{ partition, entry }]
      })
      .reduce<Located | undefined>(
        (latest, next) => (latest === undefined || this.#isBefore(latest, next) ? next : latest),
        undefined,
      )
    return last && entryOf(last.entry, position)
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
    if (start === 'start') return this.#format(this.#partitions.map(() => 0))
    return this.#format(this.#partitions.map((entries) => firstAt(entries, start.time)))
  }

  /** The next entry in the order of reading, and the index of its partition. */
  #next(at: readonly number[]): Located | undefined {
    let next: Located | undefined
    for (const [partition, entries] of this.#partitions.entries()) {
      const entry = entries[at[partition] ?? 0]
      if (entry === undefined) continue
      const located = { entry, partition }
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

  #partitionOf(source: string): StoredEntry[] {
    let hash = 0
    for (let i = 0; i < source.length; i++) hash = (Math.imul(hash, 31) + source.charCodeAt(i)) >>> 0
    const partition = this.#partitions[hash % this.#partitions.length]
    if (partition === undefined) throw new RangeError('a log has at least one partition')
    return partition
  }

  #format(at: readonly number[]): Position {
    return `${this.#epoch}:${at.join('-')}`
  }

  #parse(position: Position): number[] {
    // A position may come from outside of TypeScript.
    const text = String(position)
    const prefix = `${this.#epoch}:`
    const at = text.startsWith(prefix) ? text.slice(prefix.length).split('-').map(Number) : []
    if (this.#format(at) !== text || at.length !== this.#partitions.length || !at.every(isCount)) {
      throw new LogPositionError(this.#log, text, 'is not one of')
    }
    if (at.some((count, partition) => count > (this.#partitions[partition]?.length ?? 0))) {
      throw new LogPositionError(this.#log, text, 'is beyond the end of')
    }
    return at
  }
}

function entryOf({ json, recorded, revision, backfill }: StoredEntry, position: Position): Entry {
  const event: ResearchEvent = JSON.parse(json)
  return Object.assign(event, { position, recorded, revision, backfill })
}

/** The latest entry of each identity. */
class Identities {
  readonly #sources = new Map<string, Map<string, StoredEntry>>()

  get({ source, id }: PreparedEntry): StoredEntry | undefined {
    return this.#sources.get(source)?.get(id)
  }

  set(entry: StoredEntry): void {
    const ids = this.#sources.get(entry.source)
    if (ids === undefined) this.#sources.set(entry.source, new Map([[entry.id, entry]]))
    else ids.set(entry.id, entry)
  }
}

/** The second entry with what only the first has. */
function merged(first: PreparedEntry, second: PreparedEntry): PreparedEntry {
  if (isAtLeastAsComplete(second.completeness, first.completeness)) return second
  const event = mergeDuplicates(JSON.parse(first.json), JSON.parse(second.json))
  return { ...second, completeness: first.completeness | second.completeness, json: JSON.stringify(event) }
}

/** The number of entries that were recorded before this time. */
function firstAt(entries: readonly StoredEntry[], time: number): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((entries[middle]?.recorded ?? Infinity) < time) low = middle + 1
    else high = middle
  }
  return low
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function randomText(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(36)).join('')
}
