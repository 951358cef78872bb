import { isObject, isText } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { isCandidateChange } from '../../protocol/identified.ts'
import { parseJson } from '../../protocol/json.ts'
import type { FindAllRunStatus } from '../../protocol/find-all.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { MAX_MALFORMED } from '../shapes/protocol-error-limit.ts'
import type { Decision, ReaderPosition, Shortfall, SkippedEvent } from '../shapes/positioned-reader.ts'
import { SeenCandidates } from './seen-candidates.ts'
import type { CandidateCounts } from './seen-candidates.ts'

/** Connections in a row without a new event after which a stream whose completeness is unknown is idle. */
const IDLE_CONNECTIONS = 2

/** Statuses of a run that has ended, for a service that leaves out `is_active`. */
const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** The fields of a status that decide whether the stream is complete. */
interface KnownStatus {
  readonly isActive: boolean
  /** Undefined if they are not usable. */
  readonly counts: CandidateCounts | undefined
}

/**
 * The position of a FindAll run's stream, kept across connections and, as text, across restarts.
 *
 * An event is known by its id, which is made of its content; a status by its cursor, since a run may have the same status again
 * after it was extended. A heartbeat, which repeats the last status with another cursor, moves the position and is not new.
 *
 * The stream is complete when the run is not active, its last status was seen, and as many candidates were seen as the status
 * counts. Only a stream that was read from its beginning can compare these counts.
 */
export class FindAllPosition implements ReaderPosition<FindAllRunStatus> {
  cursor: string | undefined
  /** Whether the last event was a heartbeat of a run that has ended. */
  isOver = false
  /** Whether the stream is complete. */
  isDone = false
  /** The caller's cursor. If the service rejects it, the stream errors. */
  #callerCursor: string | undefined
  /** Whether the stream was read from its beginning. */
  #isWhole: boolean
  /** How many times the service rejected a position, and so may have lost the events before it. */
  #rewinds = 0
  #seen = new SeenCandidates()
  /** Number of distinct events that were skipped as oversized. */
  #skipped = 0
  /** The id of the last status event. */
  #lastStatusId: string | undefined
  /** Whether no status came since the service rejected a position. */
  #isRestarted = false
  /** The last status event of a run that has ended. */
  #final: KnownStatus | undefined
  #isActive: boolean | undefined
  /** The cursor of this connection's last event, new or not, and how many events were skipped after it. */
  #latestCursor: string | undefined
  #skippedSinceLatest = 0
  #hasNew = false
  /** Connections in a row without a new event, made after the run was over. */
  #idleConnections = 0
  #wasInactive = false
  #malformed = 0

  constructor(cursor: string | undefined) {
    this.cursor = this.#callerCursor = cursor
    this.#isWhole = cursor === undefined
  }

  /** Parses the text of a {@link snapshot}; undefined if the text is not valid. */
  static parse(text: string): FindAllPosition | undefined {
    const lineEnd = text.indexOf('\n')
    const parsed = parseJson(text.slice(0, lineEnd))
    if (lineEnd === -1 || !isObject(parsed)) return undefined
    const { cursor, whole = false, rewinds = 0, skipped = 0, last, active, final, done = false } = parsed
    const { generated, matched, size } = parsed
    if ((cursor !== undefined && !isText(cursor)) || (last !== undefined && !isText(last))) return undefined
    if (typeof whole !== 'boolean' || typeof done !== 'boolean') return undefined
    if (active !== undefined && typeof active !== 'boolean') return undefined
    if (!isCount(rewinds) || !isCount(skipped)) return undefined
    if (!isCount(generated) || !isCount(matched) || !isCount(size)) return undefined
    if (final !== undefined && final !== null && !isCounts(final)) return undefined
    const position = new FindAllPosition(undefined)
    if (!position.#seen.restore(text.slice(lineEnd + 1), { generated, matched }, size)) return undefined
    position.cursor = cursor
    position.#isWhole = whole
    position.#rewinds = rewinds
    position.#isRestarted = rewinds > 0 && cursor === undefined
    position.#skipped = skipped
    position.#lastStatusId = last
    position.#isActive = active
    if (final !== undefined) position.#final = { isActive: false, counts: final ?? undefined }
    position.isDone = done
    return position
  }

  get snapshot(): StreamPosition {
    const { generated, matched } = this.#seen.counts
    const fields = {
      cursor: this.cursor,
      whole: this.#isWhole || undefined,
      rewinds: this.#rewinds || undefined,
      skipped: this.#skipped || undefined,
      last: this.#lastStatusId,
      active: this.#isActive,
      final: this.#final && (this.#final.counts ?? null),
      generated,
      matched,
      size: this.#seen.size,
      done: this.isDone || undefined,
    }
    const seen = this.#seen.snapshot
    return { text: () => `${JSON.stringify(fields)}\n${seen()}` }
  }

  connect(): void {
    this.#hasNew = this.isOver = false
    this.#latestCursor = this.cursor
    this.#skippedSinceLatest = 0
  }

  advance(event: ResearchEvent): boolean {
    this.#malformed = 0
    this.isOver = false
    const { cursor } = event
    if (cursor !== undefined) this.#moveLatest(cursor)
    const isNew =
      event.type === 'findall.status'
        ? this.#addStatus(event.id, cursor, event.data.data.status)
        : this.#add(event)
    if (isNew) this.#hasNew = true
    return isNew
  }

  moveTo(cursor: string): boolean {
    this.#moveLatest(cursor)
    if (!this.#seen.addText(`move ${this.#rewinds} ${cursor}`)) return false
    this.cursor = cursor
    this.#hasNew = true
    return true
  }

  skip(): SkippedEvent {
    const cursor = this.#latestCursor
    this.#skippedSinceLatest += 1
    const key = `skipped ${this.#rewinds} ${this.#skippedSinceLatest} ${cursor ?? ''}`
    const isNew = this.#seen.addText(key)
    if (isNew) {
      this.#skipped += 1
      this.#hasNew = true
    }
    return { isNew, cursor, count: this.#skippedSinceLatest }
  }

  permitsRetry(): boolean {
    return ++this.#malformed < MAX_MALFORMED
  }

  rewind(): boolean {
    if (this.cursor === this.#callerCursor) return false
    this.cursor = this.#callerCursor = this.#final = undefined
    this.#isWhole = true
    // Distinguishes the cursors from now on from equal ones before: the service may use them for other events.
    this.#rewinds += 1
    this.#isRestarted = true
    return true
  }

  decide(state: FindAllRunStatus | undefined, hasNoContent: boolean): Decision {
    this.#idleConnections = this.#wasInactive && !this.#hasNew ? this.#idleConnections + 1 : 0
    const status = knownStatus(state)
    this.#wasInactive = (status?.isActive ?? this.#isActive) !== true
    if (!this.#wasInactive) return 'reconnect'
    const completeness = this.#completeness(status)
    if (completeness !== undefined) return completeness
    if (hasNoContent) return 'done'
    return this.#idleConnections < IDLE_CONNECTIONS ? 'reconnect' : 'idle'
  }

  /** Whether the stream of a run that has ended is complete; undefined if that is unknown. */
  #completeness(status: KnownStatus | undefined): 'done' | Shortfall | undefined {
    // The service cannot be asked, so the last status event decides.
    if (status === undefined) return this.#isActive === false ? 'done' : undefined
    const { counts } = status
    const missing = this.#isWhole && counts !== undefined ? this.#missing(counts) : 0
    const hasFinal = this.#hasFinal(counts)
    if (missing > this.#skipped || hasFinal === false) {
      // The service may have lost the missing events, which a `stream.gap` has reported.
      return this.#rewinds > 0 ? undefined : { missing, expected: counts?.generated ?? 0 }
    }
    return hasFinal === true && missing === 0 && !this.#seen.isPartial ? 'done' : undefined
  }

  /** Number of candidates that were not seen, or not as matched. */
  #missing({ generated, matched }: CandidateCounts): number {
    const seen = this.#seen.counts
    return Math.max(0, generated - seen.generated, matched - seen.matched)
  }

  /** Whether the run's last status was seen; undefined if none was seen. */
  #hasFinal(counts: CandidateCounts | undefined): boolean | undefined {
    if (this.#lastStatusId === undefined) return undefined
    if (this.#final === undefined) return false
    const seen = this.#final.counts
    if (seen === undefined || counts === undefined) return true
    return seen.generated === counts.generated && seen.matched === counts.matched
  }

  /** Remembers a status. Returns whether it differs from the last one. */
  #addStatus(id: string, cursor: string | undefined, status: unknown): boolean {
    const known = knownStatus(status)
    if (known?.isActive === false) this.#final = known
    const isRepeat = id === this.#lastStatusId
    // Heartbeats are not remembered: they would push the candidates out of a saved position. But the first status after a restart is no
    // heartbeat, even if it is the same.
    const isHeartbeat = isRepeat && !this.#isRestarted
    this.#isRestarted = false
    if (cursor !== undefined && !isHeartbeat && !this.#seen.addText(`status ${this.#rewinds} ${cursor}`))
      return false
    if (cursor !== undefined) this.cursor = cursor
    this.#isActive = known?.isActive
    this.isOver = isRepeat && known?.isActive === false
    this.#lastStatusId = id
    return !isRepeat
  }

  #add(event: ResearchEvent): boolean {
    if (isCandidateChange(event)) this.#seen.count(event, event.data.data.candidate_id)
    const { cursor } = event
    const { isNew, isElsewhere } = this.#seen.add(event, `${this.#rewinds} ${cursor ?? ''}`)
    if (cursor !== undefined && (isNew || isElsewhere)) this.cursor = cursor
    return isNew
  }

  #moveLatest(cursor: string): void {
    this.#latestCursor = cursor
    this.#skippedSinceLatest = 0
  }
}

/** Reads these fields; undefined if the value is not a status. */
function knownStatus(status: unknown): KnownStatus | undefined {
  if (!isObject(status)) return undefined
  const { is_active, metrics } = status
  const isActive = typeof is_active === 'boolean' ? is_active : !ENDED.has(status['status'])
  const { generated_candidates_count: generated, matched_candidates_count: matched } = isObject(metrics)
    ? metrics
    : {}
  return { isActive, counts: isCount(generated) && isCount(matched) ? { generated, matched } : undefined }
}

function isCounts(value: unknown): value is CandidateCounts {
  return isObject(value) && isCount(value['generated']) && isCount(value['matched'])
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
