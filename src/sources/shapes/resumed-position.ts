import type { ResearchEvent } from '../../protocol/event.ts'
import { isObject, parseJson } from '../../protocol/json.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { MAX_MALFORMED } from './protocol-error-limit.ts'

/** Connections in a row without a new event after which a stream whose completeness is unknown is idle. */
const IDLE_CONNECTIONS = 2
/** The same if more may be counted than were seen, or if the service has lost events. */
const IDLE_CONNECTIONS_UNCERTAIN = 3

/** The events that are missing from the stream of a resource that is done. */
export interface Shortfall {
  /** Number of missing runs or candidates; 0 if only the last status is missing. */
  readonly missing: number
  /** Number of them that the stream must send. */
  readonly expected: number
}

/** An oversized event that was skipped. */
export interface SkippedEvent {
  readonly isNew: boolean
  /** The cursor of the event before it. */
  readonly cursor: string | undefined
  /** How many events were skipped after that cursor, including this one. */
  readonly count: number
}

/**
 * The next step after a clean close. A shortfall means that events are missing. `idle` means that completeness is unknown, and
 * that several connections had no new event.
 */
export type Decision = 'reconnect' | 'done' | 'idle' | Shortfall

/** The fields of the text of a position, which may be anything. */
type Fields = Readonly<Record<string, unknown>>

/**
 * The position of a stream: the last event id, from which the service resumes, and what was seen before it. Kept across connections and, as
 * text, across restarts.
 *
 * A resumed connection may repeat any event in any order. So only a new event advances the position, which never moves back. Neither a
 * clean close nor an empty connection means that the stream is complete. A subclass remembers the events, and decides what is missing.
 */
export abstract class ResumedPosition<State> {
  /** The `last_event_id` to resume after: the cursor of the last new event, or the caller's; undefined for the beginning. */
  cursor: string | undefined
  /** Whether the stream was read from its beginning. */
  protected isWhole: boolean
  /** How many times the service rejected a position, and so may have lost the events before it. */
  protected rewinds = 0
  /** Number of distinct events that were skipped as oversized. */
  protected skipped = 0
  /** The caller's cursor. If the service rejects it, the stream errors. */
  #callerCursor: string | undefined
  /** The cursor of this connection's last event, new or not, and how many events were skipped after it. */
  #latestCursor: string | undefined
  #skippedSinceLatest = 0
  /** Whether this connection had a new event. */
  #hasNew = false
  /** Connections in a row without a new event, made after the resource was inactive. */
  #idleConnections = 0
  #wasInactive = false
  /** Connections in a row that ended at a malformed event. */
  #malformed = 0

  constructor(cursor: string | undefined) {
    this.cursor = this.#callerCursor = cursor
    this.isWhole = cursor === undefined
  }

  /** An immutable copy. */
  abstract get snapshot(): StreamPosition

  /** Remembers an event, and moves the cursor if it is new. Returns whether it is. */
  protected abstract see(event: ResearchEvent): boolean

  /** Remembers a cursor that came without an event, or a skipped event. Returns whether it is new. */
  protected abstract seeWithoutEvent(kind: 'move' | 'skipped', text: string): boolean

  /** Forgets what a stream that restarts from its beginning sends again. */
  protected abstract restart(): void

  /** What the resource is doing: `done` when no more events are made, `empty` if it has not begun. */
  protected abstract activityOf(state: State | undefined): 'active' | 'empty' | 'done'

  /** Whether the stream of a resource that is done is complete; undefined if that is unknown. */
  protected abstract completenessOf(state: State | undefined): 'done' | Shortfall | undefined

  /** Whether some of what was seen is forgotten. */
  protected abstract get isPartial(): boolean

  /** Called before each connection. */
  connect(): void {
    this.#hasNew = false
    this.#moveLatest(this.cursor)
  }

  /** Called before each event is emitted. Returns whether it is new. */
  advance(event: ResearchEvent): boolean {
    this.#malformed = 0
    if (event.cursor !== undefined) this.#moveLatest(event.cursor)
    const isNew = this.see(event)
    if (isNew) this.#hasNew = true
    return isNew
  }

  /** Called when the service advances the position without an event. Returns whether the cursor is new. */
  moveTo(cursor: string): boolean {
    this.#moveLatest(cursor)
    if (!this.seeWithoutEvent('move', cursor)) return false
    this.cursor = cursor
    this.#hasNew = true
    return true
  }

  /** Called for each oversized event. The service sends it again when the stream resumes. */
  skip(): SkippedEvent {
    const cursor = this.#latestCursor
    this.#skippedSinceLatest += 1
    const isNew = this.seeWithoutEvent('skipped', `${this.#skippedSinceLatest} ${cursor ?? ''}`)
    if (isNew) {
      this.skipped += 1
      this.#hasNew = true
    }
    return { isNew, cursor, count: this.#skippedSinceLatest }
  }

  /** Counts a malformed event. Returns whether to reconnect for it. */
  permitsRetry(): boolean {
    return ++this.#malformed < MAX_MALFORMED
  }

  /** Resets the cursor to the beginning of the stream. Returns false, without a reset, for the caller's own cursor. */
  rewind(): boolean {
    if (this.cursor === this.#callerCursor) return false
    this.cursor = this.#callerCursor = undefined
    this.isWhole = true
    this.rewinds += 1
    this.restart()
    return true
  }

  /**
   * Decides what to do after a clean close.
   *
   * @param state The resource's state after it; undefined if the service lacks that endpoint.
   * @param hasNoContent Whether the service answered with 204, a request not to reconnect.
   */
  decide(state: State | undefined, hasNoContent = false): Decision {
    this.#idleConnections = this.#wasInactive && !this.#hasNew ? this.#idleConnections + 1 : 0
    const activity = this.activityOf(state)
    this.#wasInactive = activity !== 'active'
    if (activity !== 'done') return 'reconnect'
    // More may be counted than were seen, or fewer sent than existed.
    const isUncertain = this.isPartial || this.rewinds > 0 || this.skipped > 0
    const limit = isUncertain ? IDLE_CONNECTIONS_UNCERTAIN : IDLE_CONNECTIONS
    const completeness = this.completenessOf(state)
    if (completeness !== undefined) return completeness
    if (hasNoContent) return 'done'
    return this.#idleConnections < limit ? 'reconnect' : 'idle'
  }

  /** @param fields The fields of the subclass. */
  protected snapshotOf(seen: () => string, fields: () => Fields): StreamPosition {
    const { cursor, isWhole, rewinds, skipped } = this
    return {
      text() {
        const whole = isWhole || undefined
        const common = { cursor, whole, rewinds: rewinds || undefined, skipped: skipped || undefined }
        // The entries are not inside the JSON: each save would copy them and search them for characters to escape.
        return `${JSON.stringify({ ...common, ...fields() })}\n${seen()}`
      },
    }
  }

  /** Restores the fields of every position. Returns whether they are valid. */
  protected restoreFields({ cursor, whole = false, rewinds = 0, skipped = 0 }: Fields): boolean {
    if (cursor !== undefined && typeof cursor !== 'string') return false
    if (typeof whole !== 'boolean' || !isCount(rewinds) || !isCount(skipped)) return false
    this.cursor = cursor
    this.isWhole = whole
    this.rewinds = rewinds
    this.skipped = skipped
    return true
  }

  #moveLatest(cursor: string | undefined): void {
    this.#latestCursor = cursor
    this.#skippedSinceLatest = 0
  }
}

/** The two parts of the text of a snapshot; undefined if the text is not valid. */
export function partsOf(text: string): { readonly fields: Fields; readonly seen: string } | undefined {
  const lineEnd = text.indexOf('\n')
  const fields = parseJson(text.slice(0, lineEnd))
  return lineEnd === -1 || !isObject(fields) ? undefined : { fields, seen: text.slice(lineEnd + 1) }
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
