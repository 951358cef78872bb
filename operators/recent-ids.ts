import { checkDuration, checkInteger } from '../src/protocol/check.ts'
import { covers } from '../src/protocol/event.ts'
import { partsOf } from './identified.ts'
import type { Identified } from './identified.ts'

/** How much is remembered, and for how long. */
export interface Memory {
  /** Identities that are remembered; the least recently seen is forgotten first. Default 100,000. */
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

/** Refuses a memory that cannot be right. */
export function checkMemory({ capacity = CAPACITY, timeToLive = Infinity }: Memory): void {
  checkInteger('capacity', capacity, 1)
  checkDuration('timeToLive', timeToLive, true)
}

/** An identity, in a list from the least to the most recently seen. */
interface Entry {
  readonly id: string
  readonly source: string | undefined
  /** What the admitted copies told, taken together. */
  parts: number
  seenAt: number
  older: Entry | undefined
  newer: Entry | undefined
  /** The same id from another source. */
  twin: Entry | undefined
}

/**
 * Remembers which events were seen lately, and what the copies of each told.
 *
 * Each call takes the same short time however much is remembered, and needs no timer: what is too old is forgotten when
 * the next event comes. Looked up by id, with the few sources of one id in a chain, because a key made of both would
 * cost a new string for each event, and a map for each source would cost one for each run.
 */
export class RecentIds {
  readonly #capacity: number
  readonly #timeToLive: number
  readonly #now: () => number
  readonly #byId = new Map<string, Entry>()
  #size = 0
  #oldest: Entry | undefined
  #newest: Entry | undefined

  /** @param now The present time in ms; only asked when there is a `timeToLive`. */
  constructor({ capacity = CAPACITY, timeToLive = Infinity, known = [] }: Memory, now: () => number) {
    this.#capacity = capacity
    this.#timeToLive = timeToLive
    this.#now = now
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
    const entry = this.#find(event)
    if (entry === undefined) {
      this.#add(event, parts, now)
      return true
    }
    entry.seenAt = now
    this.#moveToNewest(entry)
    if (covers(entry.parts, parts)) return false
    entry.parts |= parts
    return true
  }

  /** Whether a copy of the event is remembered. Looking does not count as seeing. */
  has(event: Identified): boolean {
    this.#forgetExpired()
    return this.#find(event) !== undefined
  }

  #find({ id, source }: Identified): Entry | undefined {
    let entry = this.#byId.get(id)
    while (entry !== undefined && entry.source !== source) entry = entry.twin
    return entry
  }

  #add({ id, source }: Identified, parts: number, seenAt: number): void {
    if (this.#size === this.#capacity && this.#oldest !== undefined) this.#forget(this.#oldest)
    const twin = this.#byId.get(id)
    const entry: Entry = { id, source, parts, seenAt, older: undefined, newer: undefined, twin }
    this.#byId.set(id, entry)
    this.#append(entry)
    this.#size += 1
  }

  #forgetExpired(): number {
    if (this.#timeToLive === Infinity) return 0
    const now = this.#now()
    while (this.#oldest !== undefined && now - this.#oldest.seenAt >= this.#timeToLive) {
      this.#forget(this.#oldest)
    }
    return now
  }

  #forget(entry: Entry): void {
    this.#unlink(entry)
    this.#size -= 1
    const first = this.#byId.get(entry.id)
    if (first !== entry) {
      let twin = first
      while (twin !== undefined && twin.twin !== entry) twin = twin.twin
      if (twin !== undefined) twin.twin = entry.twin
    } else if (entry.twin === undefined) {
      this.#byId.delete(entry.id)
    } else {
      this.#byId.set(entry.id, entry.twin)
    }
  }

  #moveToNewest(entry: Entry): void {
    if (entry === this.#newest) return
    this.#unlink(entry)
    this.#append(entry)
  }

  #append(entry: Entry): void {
    entry.older = this.#newest
    entry.newer = undefined
    if (this.#newest === undefined) this.#oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
  }

  #unlink({ older, newer }: Entry): void {
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
  }
}
