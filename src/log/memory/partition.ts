import { firstIndex } from '../../protocol/first-index.ts'
import type { PreparedEntry } from '../store/new-entry.ts'

/** An entry of a log in memory. */
export interface StoredEntry extends PreparedEntry {
  readonly recorded: number
  readonly revision: number
  /** The number of the append in which it came, from 1 on. */
  readonly append: number
  /** Entries of the same group are read in the order of their partitions, not in that of their appends. */
  readonly group: number
  /** Whether it was forgotten. Its place stays, so that positions stay the same. */
  readonly isForgotten?: boolean
}

/** The entries of one partition. Those before `first` were deleted. */
export class Partition {
  #entries: StoredEntry[] = []
  #first = 0
  /** Number of entries that were forgotten and whose place is there. */
  #forgotten = 0

  /** The number of entries that were deleted. */
  get first(): number {
    return this.#first
  }

  /** The number of entries that it has ever had. */
  get length(): number {
    return this.#first + this.#entries.length
  }

  /** The number of entries that it has. */
  get size(): number {
    return this.#entries.length - this.#forgotten
  }

  /** The index of the first entry from this one on that was not forgotten. */
  next(index: number): number {
    let at = index
    while (this.get(at)?.isForgotten === true) at += 1
    return at
  }

  /** Forgets some entries. Returns them. */
  forget(isForgotten: (entry: StoredEntry) => boolean): readonly StoredEntry[] {
    const found: StoredEntry[] = []
    this.#entries = this.#entries.map((entry) => {
      if (entry.isForgotten === true || !isForgotten(entry)) return entry
      found.push(entry)
      return { ...entry, id: '', source: '', type: '', json: '{}', isForgotten: true }
    })
    this.#forgotten += found.length
    return found
  }

  get(index: number): StoredEntry | undefined {
    return this.#entries[index - this.#first]
  }

  push(entry: StoredEntry): void {
    this.#entries.push(entry)
  }

  /** Deletes the entries before this index. */
  trim(first: number): void {
    const trimmed = this.#entries.splice(0, first - this.#first)
    this.#forgotten -= trimmed.filter((entry) => entry.isForgotten === true).length
    this.#first = first
  }

  /** The index of the first entry that was recorded at this time or later. */
  firstAt(time: number): number {
    return this.#first + firstIndex(this.#entries, ({ recorded }) => recorded >= time)
  }
}
