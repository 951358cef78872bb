import { checkDuration, checkInteger } from '../../src/protocol/check.ts'
import { isAtLeastAsComplete } from '../../src/protocol/event.ts'
import { hash, hashIdentity } from '../../src/protocol/identity-hash.ts'
import { completenessOf } from '../../src/protocol/identified.ts'
import type { Identified } from '../../src/protocol/identified.ts'

/** How much is remembered, and for how long. */
export interface Memory {
  /**
   * Identities that are remembered, 1 to 100,000,000; the least recently seen is forgotten first. Each takes some 45
   * bytes once it is seen. Default 100,000.
   */
  readonly capacity?: number
  /** How long an identity is remembered after it was last seen, in ms. Default `Infinity`. */
  readonly timeToLive?: number
  /** What was seen before the start, oldest first; each subscription remembers it. Default nothing. */
  readonly known?: Iterable<Known>
}

/** A fact that was seen, and what the copies that were seen told of it: see `completeness` of `rivulet`. */
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
 * An entry is seven numbers side by side: the four of the hash, what the admitted copies told, taken together, and its
 * neighbours in the list from the least to the most recently seen. One that is free has nothing but `NEWER`, the next
 * that is free.
 */
const ENTRY = 7
const PARTS = 4
const OLDER = 5
const NEWER = 6

/** No entry. Entries are numbered from 1, so that a new table is one of empty slots. */
const NONE = 0
/** Room for so many at first; it doubles whenever it is used up. */
const FIRST_ROOM = 64

/**
 * Remembers which events were seen lately, and what the copies of each told.
 *
 * Each call takes the same short time however much is remembered, and needs no timer: what is too old is forgotten when
 * the next event comes. A hash of 128 bits stands for each identity, and all of it stands in typed arrays: some 45 bytes an
 * identity, where the strings alone would take twice that, and nothing for the garbage collector to walk.
 *
 * What takes time with many identities are accesses to memory that is far apart. So a slot of the hash table has the first
 * number of the hash beside the entry's: to see that an identity is new takes one such access, to forget one another.
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
  /**
   * The hash table: for each slot the first number of the hash, then the entry. Open addressing: an identity stands in the
   * slot of its hash or in the next that was free.
   */
  #slots: Int32Array
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
    this.#slots = newSlots(this.#room)
    for (const fact of known) this.#see(fact, fact.parts)
  }

  /** How many identities are remembered. */
  get size(): number {
    return this.#size
  }

  /** Whether the event is news: never seen, forgotten, or with something that no copy before it had. It is remembered from now on. */
  admit(event: Identified): boolean {
    return this.#see(event, completenessOf(event))
  }

  #see(event: Identified, parts: number): boolean {
    const now = this.#forgetExpired()
    hashIdentity(event)
    const known = this.#find()
    const entry = known === NONE ? this.#add(parts) : known
    if (this.#timeToLive !== Infinity) this.#seenAt[entry] = now
    if (known === NONE) return true
    this.#moveToNewest(entry)
    const told = this.#get(entry, PARTS)
    if (isAtLeastAsComplete(told, parts)) return false
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

  /** Adds an entry of the hash that was made last. */
  #add(parts: number): number {
    const entry = this.#size === this.#capacity ? this.#takeOldest() : this.#allot()
    const entries = this.#entries
    const at = entry * ENTRY
    entries[at] = hash[0] ?? 0
    entries[at + 1] = hash[1] ?? 0
    entries[at + 2] = hash[2] ?? 0
    entries[at + 3] = hash[3] ?? 0
    entries[at + PARTS] = parts
    this.#append(entry)
    this.#fillSlot(entry)
    this.#size += 1
    return entry
  }

  /** The entry that was seen least lately, to be used for another identity. */
  #takeOldest(): number {
    const entry = this.#oldest
    this.#freeSlot(entry)
    this.#unlink(entry)
    this.#size -= 1
    return entry
  }

  #allot(): number {
    const free = this.#free
    if (free !== NONE) {
      this.#free = this.#get(free, NEWER)
      return free
    }
    if (this.#unused > this.#room) this.#grow()
    const entry = this.#unused
    this.#unused += 1
    return entry
  }

  /** All entries are in use. */
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
    this.#slots = newSlots(this.#room)
    for (let entry = 1; entry < this.#unused; entry++) this.#fillSlot(entry)
  }

  /** Fills the first slot that is free for the entry. */
  #fillSlot(entry: number): void {
    const slots = this.#slots
    const mask = slots.length - 1
    const first = this.#get(entry, 0)
    let slot = homeOf(first, mask)
    while (slots[slot + 1] !== NONE) slot = (slot + 2) & mask
    slots[slot] = first
    slots[slot + 1] = entry
  }

  /** Frees the entry's slot, and moves those up that stand behind it because it was not free. */
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

  #forgetExpired(): number {
    if (this.#timeToLive === Infinity) return 0
    const now = this.#now()
    while (this.#oldest !== NONE && now - (this.#seenAt[this.#oldest] ?? 0) >= this.#timeToLive) {
      const entry = this.#takeOldest()
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

/** Slots for so many entries, two numbers each: a power of two, and a quarter of them free at the least. */
function newSlots(room: number): Int32Array {
  return new Int32Array(2 * 2 ** Math.ceil(Math.log2((room * 4) / 3)))
}

/** Where the slot of a hash begins. */
function homeOf(first: number, mask: number): number {
  return (first << 1) & mask
}
