import { completeness, isAtLeastAsComplete } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { hash, hashString } from '../../protocol/identity-hash.ts'
import { ENTRY, SeenHistory } from '../shapes/seen-entries.ts'

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

/** The events of a FindAll run that were seen, by their ids, and its candidates, as hashes of 64 bits. */
export class SeenCandidates extends SeenHistory {
  #generated = 0
  #matched = 0

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
  addEvent(event: ResearchEvent, cursor: string): Sighting {
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

  /** Restores the text of a {@link snapshot}, with the counts and the size at its time. Returns whether the text is valid. */
  restore(text: string, { generated, matched }: CandidateCounts, size: number): boolean {
    this.#generated = generated
    this.#matched = matched
    return this.restoreText(text, (words) => words.length / ENTRY < size)
  }

  #find(text: string): number | undefined {
    hashString(text)
    return this.find(hash[0] ?? 0, hash[1] ?? 0)
  }

  #add(text: string, detail: number): void {
    hashString(text)
    this.add(hash[0] ?? 0, hash[1] ?? 0, detail)
  }
}

/** Whether a candidate has its output, and its basis. */
function twoBits(complete: number): number {
  const output = complete & 1
  return output === complete ? output : output | 2
}
