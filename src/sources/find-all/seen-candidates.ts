import { completeness, isAtLeastAsComplete } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { hash, hashString } from '../../protocol/identity-hash.ts'
import { BLOCK, CAPACITY, DETAIL, ENTRY, parseWords, SAVED, SeenEntries } from '../shapes/seen-entries.ts'

/** Numbers of distinct candidates. */
export interface CandidateCounts {
  readonly generated: number
  readonly matched: number
}

/** The result of {@link SeenCandidates.add} for an event. */
export interface Sighting {
  /** Whether it is new, or more complete than before. */
  readonly isNew: boolean
  /** Whether it came with another cursor than before, or for the first time. */
  readonly isElsewhere: boolean
}

/** The lowest bits of an entry's detail are the completeness of an event; the others are a hash of its cursor. */
const COMPLETENESS = 0b11

/**
 * The events of a FindAll run that were seen, by their ids, and its candidates. Each is a hash of 64 bits, as for the runs of a
 * group. After `capacity` entries, the older ones are dropped.
 */
export class SeenCandidates {
  #current = new SeenEntries()
  #previous: SeenEntries | undefined
  #generated = 0
  #matched = 0
  #isPartial = false
  readonly #capacity: number

  /** @param capacity The most entries of one list. */
  constructor(capacity: number = CAPACITY) {
    this.#capacity = capacity
  }

  /** Whether something was forgotten, so that a candidate may count twice. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** How many candidates were seen, and how many of them have matched. */
  get counts(): CandidateCounts {
    return { generated: this.#generated, matched: this.#matched }
  }

  /** Counts the candidate of an event, before the event is added. */
  count(event: ResearchEvent, candidateId: string): void {
    if (this.addText(`candidate ${candidateId}`)) this.#generated += 1
    if (event.type !== 'findall.candidate.matched') return
    if (this.#find(`event ${event.id}`) === undefined) this.#matched += 1
  }

  /** Remembers an event. @param cursor Its cursor, and whatever distinguishes it from an equal one. */
  add(event: ResearchEvent, cursor: string): Sighting {
    const bits = twoBits(completeness(event))
    hashString(`cursor ${cursor}`)
    const cursorHash = (hash[0] ?? 0) & ~COMPLETENESS
    const known = this.#find(`event ${event.id}`)
    const isNew = known === undefined || !isAtLeastAsComplete(known & COMPLETENESS, bits)
    const isElsewhere = known === undefined || (known & ~COMPLETENESS) !== cursorHash
    if (isNew || isElsewhere)
      this.#add(`event ${event.id}`, cursorHash | bits | ((known ?? 0) & COMPLETENESS))
    return { isNew, isElsewhere }
  }

  /** Remembers a text. Returns whether it is new. */
  addText(text: string): boolean {
    if (this.#find(text) !== undefined) return false
    this.#add(text, 0)
    return true
  }

  /** Number of entries. */
  get size(): number {
    return (this.#previous?.size ?? 0) + this.#current.size
  }

  /** Returns the function that encodes the latest entries until now. */
  get snapshot(): () => string {
    const [current, size, previous] = [this.#current, this.#current.size, this.#previous]
    return () => {
      const blocks = Math.ceil(size / BLOCK)
      const before = previous?.text(previous.size, SAVED / BLOCK - blocks) ?? ''
      return before + current.text(size, SAVED / BLOCK)
    }
  }

  /** Restores such a text, with the counts and the size at its time. Returns whether the text is valid. */
  restore(text: string, { generated, matched }: CandidateCounts, size: number): boolean {
    const words = parseWords(text)
    if (words === undefined) return false
    for (let at = 0; at < words.length; at += ENTRY) {
      this.#current.add(words[at] ?? 0, words[at + 1] ?? 0, words[at + DETAIL] ?? 0)
    }
    this.#generated = generated
    this.#matched = matched
    this.#isPartial = words.length / ENTRY < size
    return true
  }

  #find(text: string): number | undefined {
    hashString(text)
    const [first = 0, second = 0] = hash
    return this.#current.find(first, second) ?? this.#previous?.find(first, second)
  }

  #add(text: string, detail: number): void {
    if (this.#current.size === this.#capacity) {
      if (this.#previous !== undefined) this.#isPartial = true
      this.#previous = this.#current
      this.#current = new SeenEntries()
    }
    hashString(text)
    this.#current.add(hash[0] ?? 0, hash[1] ?? 0, detail)
  }
}

/** Whether a candidate has its output, and its basis. */
function twoBits(complete: number): number {
  const output = complete & 1
  return output === complete ? output : output | 2
}
