import { isObject, isText } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { isCandidateChange } from '../../protocol/identified.ts'
import type { FindAllRunStatus } from '../../protocol/find-all.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { isCount, partsOf, ResumedPosition } from '../shapes/resumed-position.ts'
import type { Shortfall } from '../shapes/resumed-position.ts'
import { SeenCandidates } from './seen-candidates.ts'
import type { CandidateCounts } from './seen-candidates.ts'

/** Statuses of a run that has ended, for a service that leaves out `is_active`. */
const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** The fields of a status that decide whether the stream is complete. */
interface KnownStatus {
  readonly isActive: boolean
  /** Undefined if they are not usable. */
  readonly counts: CandidateCounts | undefined
}

/**
 * The position of a FindAll run's stream.
 *
 * An event is known by its id, which is made of its content; a status by its cursor, since a run may have the same status again
 * after it was extended. A heartbeat, which repeats the last status with another cursor, moves the position and is not new.
 *
 * The stream is complete when the run is not active, its last status was seen, and as many candidates were seen as the status
 * counts. Only a stream that was read from its beginning can compare these counts.
 */
export class FindAllPosition extends ResumedPosition<FindAllRunStatus> {
  /** Whether the last event was a heartbeat of a run that has ended. */
  isOver = false
  /** Whether the stream is complete. */
  isDone = false
  readonly #seen = new SeenCandidates()
  /** The id of the last status event. */
  #lastStatusId: string | undefined
  /** Whether no status came since the service rejected a position. */
  #isRestarted = false
  /** The last status event of a run that has ended. */
  #final: KnownStatus | undefined
  #isActive: boolean | undefined

  /** Parses the text of a {@link snapshot}; undefined if the text is not valid. */
  static parse(text: string): FindAllPosition | undefined {
    const { fields, seen } = partsOf(text) ?? {}
    if (fields === undefined || seen === undefined) return undefined
    const { last, active, final, done = false, generated, matched, size } = fields
    if (last !== undefined && !isText(last)) return undefined
    if (typeof done !== 'boolean' || (active !== undefined && typeof active !== 'boolean')) return undefined
    if (!isCount(generated) || !isCount(matched) || !isCount(size)) return undefined
    if (final !== undefined && final !== null && !isCounts(final)) return undefined
    const position = new FindAllPosition(undefined)
    if (!position.restoreFields(fields)) return undefined
    if (!position.#seen.restore(seen, { generated, matched }, size)) return undefined
    position.#isRestarted = position.rewinds > 0 && position.cursor === undefined
    position.#lastStatusId = last
    position.#isActive = active
    if (final !== undefined) position.#final = { isActive: false, counts: final ?? undefined }
    position.isDone = done
    return position
  }

  get snapshot(): StreamPosition {
    const { counts, size, snapshot } = this.#seen
    const [last, active, done] = [this.#lastStatusId, this.#isActive, this.isDone || undefined]
    const final = this.#final && (this.#final.counts ?? null)
    return this.snapshotOf(snapshot, () => ({ last, active, final, ...counts, size, done }))
  }

  override connect(): void {
    super.connect()
    this.isOver = false
  }

  protected see(event: ResearchEvent): boolean {
    this.isOver = false
    return event.type === 'findall.status'
      ? this.#addStatus(event.id, event.cursor, event.data.data.status)
      : this.#add(event)
  }

  protected seeWithoutEvent(kind: 'move' | 'skipped', text: string): boolean {
    return this.#seen.addText(`${kind} ${this.rewinds} ${text}`)
  }

  protected restart(): void {
    this.#final = undefined
    this.#isRestarted = true
  }

  protected activityOf(state: FindAllRunStatus | undefined): 'active' | 'done' {
    return (knownStatus(state)?.isActive ?? this.#isActive) === true ? 'active' : 'done'
  }

  protected get isPartial(): boolean {
    return this.#seen.isPartial
  }

  protected completenessOf(state: FindAllRunStatus | undefined): 'done' | Shortfall | undefined {
    const status = knownStatus(state)
    // The service cannot be asked, so the last status event decides.
    if (status === undefined) return this.#isActive === false ? 'done' : undefined
    const { counts } = status
    const missing = this.isWhole && counts !== undefined ? this.#missing(counts) : 0
    const hasFinal = this.#hasFinal(counts)
    if (missing > this.skipped || hasFinal === false) {
      // The service may have lost the missing events, which a `stream.gap` has reported.
      return this.rewinds > 0 ? undefined : { missing, expected: counts?.generated ?? 0 }
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
    if (cursor !== undefined && !isHeartbeat && !this.#seen.addText(`status ${this.rewinds} ${cursor}`))
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
    const { isNew, isElsewhere } = this.#seen.addEvent(event, `${this.rewinds} ${cursor ?? ''}`)
    if (cursor !== undefined && (isNew || isElsewhere)) this.cursor = cursor
    return isNew
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
