import { checkDuration, checkInteger } from '../../src/protocol/check.ts'
import { isAtLeastAsComplete } from '../../src/protocol/event.ts'
import { hash, hashIdentity } from '../../src/protocol/identity-hash.ts'
import { completenessOf } from '../../src/protocol/identified.ts'
import type { Identified } from '../../src/protocol/identified.ts'

/** How many identities are remembered, and for how long. */
export interface DedupeMemory {
  /**
   * Maximum number of identities, 1 to 100,000,000; the least recently seen is forgotten first. Each takes about 45 bytes.
   * Default 100,000.
   */
  readonly capacity?: number
  /** How long an identity is remembered after it was last seen, in ms. Default `Infinity`. */
  readonly timeToLive?: number
}

/** The names of {@link DedupeMemory}. */
export const MEMORY_OPTIONS = { capacity: true, timeToLive: true } satisfies Record<keyof DedupeMemory, true>

/** Default of {@link DedupeMemory.capacity}. */
const CAPACITY = 100_000
/** Keeps indices within 32 bits. */
const MAX_CAPACITY = 100_000_000

/** Throws an ArgumentError for an invalid setting. */
export function checkMemory({ capacity = CAPACITY, timeToLive = Infinity }: DedupeMemory): void {
  checkInteger('capacity', capacity, 1, MAX_CAPACITY)
  checkDuration('timeToLive', timeToLive, true)
}

/**
 * An entry is seven numbers: the four of the hash, the completeness of the admitted events combined, and its neighbours in
 * the list from least to most recently seen. A free entry uses only `NEWER`, for the next free entry.
 */
const ENTRY = 7
const COMPLETENESS = 4
const OLDER = 5
const NEWER = 6

/** No entry. Entries are numbered from 1, so a new typed array is an empty hash table. */
const NONE = 0
/** Number of entries allocated at first; doubles when all are in use. */
const INITIAL_SIZE = 64

/**
 * A bounded LRU set of event identities, with the completeness of each event.
 *
 * Each call is O(1) and needs no timer: expired identities are removed when the next event arrives. Identities are 128-bit
 * hashes in typed arrays: about 45 bytes each, while the strings alone take twice that, and no work for the garbage collector.
 *
 * It deletes, and keeps the order of use. So it is another table than the one of the sources' streams (`shapes/seen-entries.ts`), which is
 * append-only, so that saving a position copies nothing.
 *
 * With many identities, cache misses dominate. So a slot of the hash table stores the first number of the hash beside the
 * entry: detecting a new identity costs one miss, and forgetting an old one another.
 */
export class RecentIds {
  readonly #capacity: number
  readonly #timeToLive: number
  readonly #now: () => number
  /** Number of allocated entries. */
  #allocated: number
  #entries: Int32Array
  /** When each entry was last seen; empty without a `timeToLive`. */
  #seenAt: Float64Array
  /**
   * The hash table, with open addressing and linear probing. A slot is two numbers: the first number of the hash, and
   * the entry.
   */
  #slots: Int32Array
  #size = 0
  /** The first entry that was never used. */
  #unused = 1
  #free = NONE
  #oldest = NONE
  #newest = NONE

  /** @param now Returns the current time in ms; called only with a `timeToLive`. */
  constructor({ capacity = CAPACITY, timeToLive = Infinity }: DedupeMemory, now: () => number) {
    this.#capacity = capacity
    this.#timeToLive = timeToLive
    this.#now = now
    this.#allocated = Math.min(INITIAL_SIZE, capacity)
    this.#entries = new Int32Array((this.#allocated + 1) * ENTRY)
    this.#seenAt = new Float64Array(timeToLive === Infinity ? 0 : this.#allocated + 1)
    this.#slots = newSlots(this.#allocated)
  }

  /** Number of remembered identities. */
  get size(): number {
    return this.#size
  }

  /** Remembers the event. Returns whether it is new or more complete than the events seen before it. */
  admit(event: Identified): boolean {
    const completeness = completenessOf(event)
    const now = this.#evictExpired()
    hashIdentity(event)
    const known = this.#find()
    const entry = known === NONE ? this.#add(completeness) : known
    if (this.#timeToLive !== Infinity) this.#seenAt[entry] = now
    if (known === NONE) return true
    this.#moveToNewest(entry)
    const seen = this.#get(entry, COMPLETENESS)
    if (isAtLeastAsComplete(seen, completeness)) return false
    this.#set(entry, COMPLETENESS, seen | completeness)
    return true
  }

  /** Whether the identity of the event is remembered. Does not count as seeing it. */
  has(event: Identified): boolean {
    this.#evictExpired()
    hashIdentity(event)
    return this.#find() !== NONE
  }

  /** Returns the entry of the current hash. */
  #find(): number {
    const slots = this.#slots
    const mask = slots.length - 1
    const first = hash[0] ?? 0
    for (let slot = homeOf(first, mask); ; slot = (slot + 2) & mask) {
      const entry = slots[slot + 1] ?? NONE
      if (entry === NONE || (slots[slot] === first && this.#isOfHash(entry))) return entry
    }
  }

  #isOfHash(entry: number): boolean {
    const at = entry * ENTRY
    const entries = this.#entries
    return entries[at + 1] === hash[1] && entries[at + 2] === hash[2] && entries[at + 3] === hash[3]
  }

  /** Adds an entry for the current hash. */
  #add(completeness: number): number {
    const entry = this.#size === this.#capacity ? this.#evictOldest() : this.#allocate()
    const entries = this.#entries
    const at = entry * ENTRY
    entries[at] = hash[0] ?? 0
    entries[at + 1] = hash[1] ?? 0
    entries[at + 2] = hash[2] ?? 0
    entries[at + 3] = hash[3] ?? 0
    entries[at + COMPLETENESS] = completeness
    this.#append(entry)
    this.#fillSlot(entry)
    this.#size += 1
    return entry
  }

  /** Removes the least recently seen entry, and returns it for reuse. */
  #evictOldest(): number {
    const entry = this.#oldest
    this.#freeSlot(entry)
    this.#unlink(entry)
    this.#size -= 1
    return entry
  }

  #allocate(): number {
    const free = this.#free
    if (free !== NONE) {
      this.#free = this.#get(free, NEWER)
      return free
    }
    if (this.#unused > this.#allocated) this.#grow()
    const entry = this.#unused
    this.#unused += 1
    return entry
  }

  /** Doubles the number of entries, and rebuilds the hash table. */
  #grow(): void {
    this.#allocated = Math.min(2 * this.#allocated, this.#capacity)
    const entries = new Int32Array((this.#allocated + 1) * ENTRY)
    entries.set(this.#entries)
    this.#entries = entries
    if (this.#timeToLive !== Infinity) {
      const seenAt = new Float64Array(this.#allocated + 1)
      seenAt.set(this.#seenAt)
      this.#seenAt = seenAt
    }
    this.#slots = newSlots(this.#allocated)
    for (let entry = 1; entry < this.#unused; entry++) this.#fillSlot(entry)
  }

  /** Inserts the entry into the hash table. */
  #fillSlot(entry: number): void {
    const slots = this.#slots
    const mask = slots.length - 1
    const first = this.#get(entry, 0)
    let slot = homeOf(first, mask)
    while (slots[slot + 1] !== NONE) slot = (slot + 2) & mask
    slots[slot] = first
    slots[slot + 1] = entry
  }

  /** Removes the entry from the hash table, and shifts later entries back into the gap so that probing still finds them. */
  #freeSlot(entry: number): void {
    const slots = this.#slots
    const mask = slots.length - 1
    let gap = homeOf(this.#get(entry, 0), mask)
    while (slots[gap + 1] !== entry) gap = (gap + 2) & mask
    for (let slot = (gap + 2) & mask; slots[slot + 1] !== NONE; slot = (slot + 2) & mask) {
      const first = slots[slot] ?? 0
      const isBeforeGap = ((slot - homeOf(first, mask)) & mask) < ((slot - gap) & mask)
      if (isBeforeGap) continue
      slots[gap] = first
      slots[gap + 1] = slots[slot + 1] ?? NONE
      gap = slot
    }
    slots[gap + 1] = NONE
  }

  #evictExpired(): number {
    if (this.#timeToLive === Infinity) return 0
    const now = this.#now()
    while (this.#oldest !== NONE && now - (this.#seenAt[this.#oldest] ?? 0) >= this.#timeToLive) {
      const entry = this.#evictOldest()
      this.#set(entry, NEWER, this.#free)
      this.#free = entry
    }
    return now
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

/** Creates a hash table for `size` entries: a power of two slots, at least a quarter of them free. */
function newSlots(size: number): Int32Array {
  return new Int32Array(2 * 2 ** Math.ceil(Math.log2((size * 4) / 3)))
}

/** The index of the slot that a hash maps to. */
function homeOf(first: number, mask: number): number {
  return (first << 1) & mask
}
