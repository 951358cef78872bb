import { checkDuration, checkInteger } from '../src/protocol/check.ts'
import { covers } from '../src/protocol/event.ts'
import { hash, hashIdentity } from './identity-hash.ts'
import { partsOf } from './identified.ts'
import type { Identified } from './identified.ts'

/** How much is remembered, and for how long. */
export interface Memory {
  /**
   * Identities that are remembered, 1 to 100,000,000; the least recently seen is forgotten first. Each takes some 40
   * bytes once it is seen. Default 100,000.
   */
  readonly capacity?: number
  /** How long an identity is remembered after it was last seen, in ms. Default `Infinity`. */
  readonly timeToLive?: number
  /** What was seen before the start, oldest first; each subscription remembers it. Default nothing. */
  readonly known?: Iterable<Known>
}

/** A fact that was seen, and what the copies that were seen told of it: see `parts` of `rivulet`. */
export interface Known extends Identified {
  readonly parts: number
}

/** Default of {@link Memory.capacity}. */
const CAPACITY = 100_000
/** The indices stay within 32 bits. */
const MAX_CAPACITY = 100_000_000

/** Refuses a memory that cannot be right. */
export function checkMemory({ capacity = CAPACITY, timeToLive = Infinity }: Memory): void {
  checkInteger('capacity', capacity, 1, MAX_CAPACITY)
  checkDuration('timeToLive', timeToLive, true)
}

/**
 * An entry is eight numbers side by side, half a line of the processor's cache: the four of the hash, and then these. An
 * entry that is free has nothing but `NEXT`.
 */
const ENTRY = 8
/** What the admitted copies told, taken together. */
const PARTS = 4
/** Its neighbours in the list from the least to the most recently seen. */
const OLDER = 5
const NEWER = 6
/** The next entry in the same bucket, or the next that is free. */
const NEXT = 7

/** No entry. Entries are numbered from 1, so that a new array is one of empty buckets. */
const NONE = 0
/** Room for so many at first; it doubles whenever it is used up. */
const FIRST_ROOM = 64

/**
 * Remembers which events were seen lately, and what the copies of each told.
 *
 * Each call takes the same short time however much is remembered, and needs no timer: what is too old is forgotten when
 * the next event comes. A hash of 128 bits stands for each identity, and all of it is a hash table in two typed arrays:
 * some 40 bytes an identity, where the strings alone would take twice that, and nothing for the garbage collector to walk.
 */
export class RecentIds {
  readonly #capacity: number
  readonly #timeToLive: number
  readonly #now: () => number
  /** How many entries there is room for. */
  #room: number
  #entries: Int32Array
  /** When each entry was seen last; empty where nothing grows old. */
  #seenAt: Float64Array
  /** The first entry of each bucket; a power of two of them, so that a part of the hash is the bucket. */
  #buckets: Int32Array
  #size = 0
  /** Entries from here on were never used. */
  #unused = 1
  #free = NONE
  #oldest = NONE
  #newest = NONE

  /** @param now The present time in ms; only asked when there is a `timeToLive`. */
  constructor({ capacity = CAPACITY, timeToLive = Infinity, known = [] }: Memory, now: () => number) {
    this.#capacity = capacity
    this.#timeToLive = timeToLive
    this.#now = now
    this.#room = Math.min(FIRST_ROOM, capacity)
    this.#entries = new Int32Array((this.#room + 1) * ENTRY)
    this.#seenAt = new Float64Array(timeToLive === Infinity ? 0 : this.#room + 1)
    this.#buckets = new Int32Array(bucketsFor(this.#room))
    for (const fact of known) this.#see(fact, fact.parts)
  }

  /** How many identities are remembered. */
  get size(): number {
    return this.#size
  }

  /** Whether the event is news: never seen, forgotten, or with something that no copy before it had. It is remembered from now on. */
  admit(event: Identified): boolean {
    return this.#see(event, partsOf(event))
  }

  #see(event: Identified, parts: number): boolean {
    const now = this.#forgetExpired()
    hashIdentity(event)
    const known = this.#find()
    const entry = known === NONE ? this.#add() : known
    if (this.#timeToLive !== Infinity) this.#seenAt[entry] = now
    if (known === NONE) {
      this.#set(entry, PARTS, parts)
      return true
    }
    this.#moveToNewest(entry)
    const told = this.#get(entry, PARTS)
    if (covers(told, parts)) return false
    this.#set(entry, PARTS, told | parts)
    return true
  }

  /** Whether a copy of the event is remembered. Looking does not count as seeing. */
  has(event: Identified): boolean {
    this.#forgetExpired()
    hashIdentity(event)
    return this.#find() !== NONE
  }

  /** The entry of the hash that was made last. */
  #find(): number {
    const entries = this.#entries
    let entry = this.#buckets[this.#bucketOf(hash, 0)] ?? NONE
    while (entry !== NONE) {
      const at = entry * ENTRY
      if (
        entries[at] === hash[0] &&
        entries[at + 1] === hash[1] &&
        entries[at + 2] === hash[2] &&
        entries[at + 3] === hash[3]
      )
        return entry
      entry = entries[at + NEXT] ?? NONE
    }
    return NONE
  }

  /** Adds an entry of the hash that was made last. */
  #add(): number {
    if (this.#size === this.#capacity) this.#forget(this.#oldest)
    const entry = this.#allot()
    for (let lane = 0; lane < hash.length; lane++) this.#set(entry, lane, hash[lane] ?? 0)
    this.#putIntoBucket(entry)
    this.#append(entry)
    this.#size += 1
    return entry
  }

  #allot(): number {
    const free = this.#free
    if (free !== NONE) {
      this.#free = this.#get(free, NEXT)
      return free
    }
    if (this.#unused > this.#room) this.#grow()
    const entry = this.#unused
    this.#unused += 1
    return entry
  }

  #grow(): void {
    this.#room = Math.min(2 * this.#room, this.#capacity)
    const entries = new Int32Array((this.#room + 1) * ENTRY)
    entries.set(this.#entries)
    this.#entries = entries
    if (this.#timeToLive !== Infinity) {
      const seenAt = new Float64Array(this.#room + 1)
      seenAt.set(this.#seenAt)
      this.#seenAt = seenAt
    }
    this.#buckets = new Int32Array(bucketsFor(this.#room))
    for (let entry = 1; entry < this.#unused; entry++) this.#putIntoBucket(entry)
  }

  #putIntoBucket(entry: number): void {
    const bucket = this.#bucketOf(this.#entries, entry * ENTRY)
    this.#set(entry, NEXT, this.#buckets[bucket] ?? NONE)
    this.#buckets[bucket] = entry
  }

  #takeFromBucket(entry: number): void {
    const bucket = this.#bucketOf(this.#entries, entry * ENTRY)
    const next = this.#get(entry, NEXT)
    let before = this.#buckets[bucket] ?? NONE
    if (before === entry) {
      this.#buckets[bucket] = next
      return
    }
    while (this.#get(before, NEXT) !== entry) before = this.#get(before, NEXT)
    this.#set(before, NEXT, next)
  }

  #bucketOf(hashes: Int32Array, at: number): number {
    return (hashes[at] ?? 0) & (this.#buckets.length - 1)
  }

  #forgetExpired(): number {
    if (this.#timeToLive === Infinity) return 0
    const now = this.#now()
    while (this.#oldest !== NONE && now - (this.#seenAt[this.#oldest] ?? 0) >= this.#timeToLive) {
      this.#forget(this.#oldest)
    }
    return now
  }

  #forget(entry: number): void {
    this.#unlink(entry)
    this.#takeFromBucket(entry)
    this.#set(entry, NEXT, this.#free)
    this.#free = entry
    this.#size -= 1
  }

  #moveToNewest(entry: number): void {
    if (entry === this.#newest) return
    this.#unlink(entry)
    this.#append(entry)
  }

  #append(entry: number): void {
    const older = this.#newest
    this.#set(entry, OLDER, older)
    this.#set(entry, NEWER, NONE)
    if (older === NONE) this.#oldest = entry
    else this.#set(older, NEWER, entry)
    this.#newest = entry
  }

  #unlink(entry: number): void {
    const older = this.#get(entry, OLDER)
    const newer = this.#get(entry, NEWER)
    if (older === NONE) this.#oldest = newer
    else this.#set(older, NEWER, newer)
    if (newer === NONE) this.#newest = older
    else this.#set(newer, OLDER, older)
  }

  #get(entry: number, field: number): number {
    return this.#entries[entry * ENTRY + field] ?? NONE
  }

  #set(entry: number, field: number, value: number): void {
    this.#entries[entry * ENTRY + field] = value
  }
}

/** The power of two from which on a bucket has one entry at the most, on average. */
function bucketsFor(room: number): number {
  return 2 ** Math.ceil(Math.log2(room))
}
