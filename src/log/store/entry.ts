import type { ResearchEvent } from '../../protocol/event.ts'
import type { StreamEntry } from '../../streams/process-functions.ts'

/**
 * A position in a log: after an entry, or at the start. Opaque: it carries the epoch of its log, and nothing but equality may
 * be relied on. A position of another log or another epoch is refused with a `LogPositionError`.
 *
 * Reading on after the same position gives the same entries at the same positions, in the same order, whatever was appended
 * since. Entries that retention has deleted are reported by a `log.gap`.
 */
export type Position = string

/** An event with what the log knows of it. Entries of one source are read in the order in which they were appended. */
export type Entry<Event extends ResearchEvent = ResearchEvent> = StreamEntry<Event> & {
  /** The position after this entry. */
  readonly position: Position
}
