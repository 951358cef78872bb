import type { EventLog } from '../../log/event-log/event-log.ts'
import type { Entry, Position } from '../../log/store/contract.ts'
import type { Access } from '../access/access.ts'

/** Maximum number of entries that are read at once. */
const PAGE = 500

/** Maximum number of pages that are read for one response. After that, it has no entries, and the offset has moved. */
const MAX_PAGES = 20

/** The part of an access that decides which entries of a log are visible. */
export type EntryAccess = Pick<Access, 'types' | 'maySeeSource' | 'maySeeEntry' | 'omit'>

/** A part of the log, as a grant sees it. */
export interface VisiblePage {
  /** Entries as JSON. */
  readonly messages: readonly string[]
  /** The position after the last entry that was looked at, visible or not. */
  readonly position: Position
  /** Whether there was nothing more. */
  readonly isEnd: boolean
  /** Whether entries after the position were deleted. A message says so, whatever the grant is. */
  readonly isAfterGap: boolean
}

/** The entries of a log that a grant makes visible. */
export class VisibleEntries {
  readonly #log: EventLog
  readonly #access: EntryAccess
  readonly #types: readonly string[]

  constructor(log: EventLog, access: EntryAccess) {
    this.#log = log
    this.#access = access
    this.#types = access.types
  }

  /** Whether the grant names no type of entries. */
  get isEmpty(): boolean {
    return this.#types.length === 0
  }

  /** The first visible entries after a position. Rejects with a `LogPositionError`. */
  async read(after: Position): Promise<VisiblePage> {
    let position = after
    let isAfterGap = false
    for (let pages = 1; ; pages++) {
      const page = await this.#log.read(position, { limit: PAGE, types: this.#types })
      isAfterGap ||= page.gap !== undefined && position === after
      position = page.position
      const entries =
        page.gap === undefined
          ? page.entries.filter((entry) => this.#access.maySeeEntry(entry))
          : page.entries
      if (entries.length > 0 || page.isEnd || pages === MAX_PAGES) {
        return {
          messages: entries.map((entry) => this.#text(entry)),
          position,
          isEnd: page.isEnd,
          isAfterGap,
        }
      }
    }
  }

  #text(entry: Entry): string {
    const { cause } = entry
    // A process names the entry because of which it has appended this one.
    const isCauseVisible =
      cause === undefined ||
      [cause.source, cause.origin ?? cause.source].every((source) => this.#access.maySeeSource(source))
    return JSON.stringify(this.#access.omit(isCauseVisible ? entry : { ...entry, cause: undefined }))
  }
}
