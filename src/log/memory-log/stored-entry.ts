import type { PreparedEntry } from '../store/prepared-entry.ts'

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
