import type { Entry, Position } from '../../store/contract.ts'
import type { PreparedEntry } from '../../store/new-entry.ts'

/** The calls of a log's entries that journals need. */
export interface JournaledEntries {
  /** Rejects with a LogPositionError for the first position that is not one of this log, or beyond its end. */
  checkPositions(positions: readonly Position[]): Promise<void>
  /** A number that grows in the order of the log. Throws a LogPositionError for a position of another log. */
  order(position: Position): number
  /** The entry that a reader gets at this position; undefined for none. */
  entryAt(position: Position): Promise<Entry | undefined>
  /** Appends the entries of a commit, except those that the log has. It may be called again with the same entries. */
  publish(entries: readonly PreparedEntry[]): Promise<void>
  /** Reports that there are dead letters to redeliver, to calls that wait for entries. */
  notify(): void
}
