import type { DeadLetterError } from './dead-letter-store.ts'
import type { Position } from './entry.ts'
import type { StateChange } from './process-store.ts'
import type { Timer } from '../../streams/timers.ts'
import type { Partitions } from './sharing-store.ts'

/** How many entries a source reads at once, and after how many characters of their events it stops: there may be long ones. */
export const COPIED_PAGE = { entries: 250, length: 1024 * 1024 } as const

/**
 * Reads or writes a whole log. Positions are numbers in the order of the log, 0 for its start; texts are those that were given, not as
 * they are stored.
 */
export interface CopyStore {
  /**
   * Opens the log as a source. Others are kept from writing to it as far as the store can. Rejects with a `LogInUseError` while an
   * open log has claimed anything of it.
   */
  source(): Promise<CopySource>
  /** Begins a new log, which cannot be opened before it is finished. Rejects if there is one that is not empty. */
  target(): Promise<CopyTarget>
}

/** How far a log goes. */
export interface CopyHead {
  /** Number of entries. */
  readonly entries: number
  /** The number of the last entry that the log has ever had; 0 for none. */
  readonly last: number
  /** The last entry that retention has deleted, with all before it: its number, 0 for none, and when it was recorded. */
  readonly trimmed: { readonly number: number; readonly recorded: number }
}

/** The copied fields of an entry, here and in a dead letter. */
interface CopiedEvent {
  readonly number: number
  readonly recorded: number
  readonly revision: number
  readonly backfill: boolean
  /** The event. */
  readonly json: string
}

/** An entry. Numbers without an entry were forgotten. */
export interface CopiedEntry extends CopiedEvent {
  readonly completeness: number
}

/** The identity of an entry that was deleted. */
export interface CopiedIdentity {
  readonly kind: 'identity'
  /** See `identityKey`. */
  readonly key: string
  readonly revision: number
  readonly completeness: number
  /** The number of an entry that was forgotten and would not be trimmed yet: nothing is appended because of it. Null for others. */
  readonly forgotten: number | null
}

/** A name that can be claimed. The records that belong to it follow it, up to the next name. */
export interface CopiedName {
  readonly kind: 'name'
  readonly name: string
  /** The upstream position; null if it is no stream. */
  readonly position: string | null
  /** Null for a name that is no reader. */
  readonly reader: CopiedReader | null
}

/** A `ReaderState` with numbers as positions. */
export interface CopiedReader {
  readonly cursor: number
  readonly acknowledged: readonly number[]
  readonly isCopy?: boolean
}

/** The record that makes a reader a process. */
export interface CopiedProcess {
  readonly kind: 'process'
  readonly name: string
  readonly holdsRetention: boolean
  readonly lastChange: number
  readonly forgotten: number
  /** Checkpoint with numbers as positions, of entries and of changes. See `movedCheckpoint`. */
  readonly checkpoint: string
}

/** The last change of a key of a process, in the order of the changes. */
interface CopiedState extends StateChange {
  readonly kind: 'state'
  readonly name: string
  readonly change: number
}

interface CopiedTimer {
  readonly kind: 'timer'
  readonly name: string
  readonly timer: Timer
}

/** A dead letter of a reader, with its copy of the entry. */
export interface CopiedDeadLetter extends CopiedEvent {
  readonly kind: 'letter'
  readonly name: string
  readonly error: DeadLetterError
  readonly attempts: number
  readonly failed: number
  /** Its redelivery number, from 1; null if it is not to be redelivered. */
  readonly redelivery: number | null
}

/** A webhook that is stored and not recorded yet, in the order of arrival. */
export interface CopiedDelivery {
  readonly kind: 'delivery'
  readonly id: string
  readonly timestamp: number
  readonly received: number
  readonly json: string
}

/** The id of a webhook that was recorded. */
export interface CopiedDeliveryId {
  readonly kind: 'deliveryId'
  readonly id: string
  /** When it was stored or recorded, in Unix ms. */
  readonly received: number
}

/** A record of a log beside its entries. */
export type CopiedRecord =
  | CopiedName
  | CopiedProcess
  | CopiedState
  | CopiedTimer
  | CopiedDeadLetter
  | CopiedDelivery
  | CopiedDeliveryId
  | CopiedIdentity

/** A log that is being copied. */
export interface CopySource {
  readonly head: CopyHead
  /** The division of its sources into partitions. */
  readonly partitions: Partitions
  /** Path of the file, without symbolic links; undefined for a log on a server. */
  readonly file: string | undefined
  /** The number of a position. Rejects with a `LogPositionError` for one that is not of this log, beyond its end, or of a lost state. */
  numberOf(position: Position): Promise<number>
  /** All entries in their order, some at a time. */
  entries(): AsyncIterable<readonly CopiedEntry[]>
  /** All other records. May be read several times. */
  records(): AsyncIterable<CopiedRecord>
  /** Rejects if the log was written to since it was opened as a source. */
  checkUnchanged(): Promise<void>
  close(): Promise<void>
}

/** A log that is being made. */
export interface CopyTarget {
  /** Into how many partitions its sources are divided. */
  readonly partitionCount: number
  /** Sets the end of the log. Called before all other methods. */
  begin(head: CopyHead): Promise<void>
  addEntries(entries: readonly CopiedEntry[]): Promise<void>
  /** Adds a record. Called after all entries, in the order in which a source has the records. */
  add(record: CopiedRecord): Promise<void>
  /** Reads the new log. Called after all records. */
  written(): Promise<CopySource>
  /** The position with a number. Called after {@link written}. */
  positionOf(number: number): Promise<Position>
  /** Makes it a log. */
  finish(): Promise<void>
  /** Gives up an unfinished log: it is no log, and the next target begins anew. */
  close(): Promise<void>
}
