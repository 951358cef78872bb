import { isObject } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus } from '../../protocol/task.ts'
import { isCount, partsOf, ResumedPosition } from '../shapes/resumed-position.ts'
import type { Shortfall } from '../shapes/resumed-position.ts'
import { SeenEvents } from './seen.ts'
import type { EndedCounts } from './seen.ts'

/** Statuses of a run that has ended. Each produces one event. */
const ENDED = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunStatus[]

/** A group has two streams. The events stream sends the group's statuses too. */
export type StreamKind = 'runs' | 'events'

/**
 * The position of a group's stream.
 *
 * The runs stream is done when the number of distinct runs seen with each status equals the inactive group's counts. The events stream is
 * done with the status that has these counts. If fewer were seen, events are missing.
 *
 * Completeness is unknown if the caller chose the first cursor or the group has no usable counts. It is unknown too if more runs were seen
 * before a restart than the saved position holds, so that one may count twice. Then time without a new event decides.
 */
export class GroupPosition extends ResumedPosition<TaskGroupStatus> {
  readonly #kind: StreamKind
  /** The status by which the stream filters runs; undefined for all of {@link ENDED}. */
  readonly #statusFilter: RunStatus | undefined
  readonly #seen = new SeenEvents()
  /** The group's status in the last status event. */
  #lastStatus: LastStatus | undefined

  /** @param statusFilter The status by which the stream filters runs. */
  constructor(cursor: string | undefined, statusFilter: RunStatus | undefined, kind: StreamKind = 'runs') {
    super(cursor)
    this.#kind = kind
    this.#statusFilter = statusFilter
  }

  /** Parses the text of a {@link snapshot}; undefined if the text is not valid. */
  static parse(
    text: string,
    statusFilter: RunStatus | undefined,
    kind: StreamKind = 'runs',
  ): GroupPosition | undefined {
    const { fields, seen } = partsOf(text) ?? {}
    if (fields === undefined || seen === undefined) return undefined
    const { ended, last } = fields
    const position = new GroupPosition(undefined, statusFilter, kind)
    if (!position.restoreFields(fields)) return undefined
    // Without a cursor, the stream starts at its beginning.
    if (position.cursor === undefined && !position.isWhole) return undefined
    position.#lastStatus = lastStatusOf(last)
    if (last !== undefined && position.#lastStatus === undefined) return undefined
    return isEndedCounts(ended) && position.#seen.restore(seen, ended) ? position : undefined
  }

  get snapshot(): StreamPosition {
    const { counts, snapshot } = this.#seen
    const last = this.#lastStatus
    return this.snapshotOf(snapshot, () => ({ last, ended: counts }))
  }

  protected see(event: ResearchEvent): boolean {
    const { cursor } = event
    if (!this.#addSeen(event)) return false
    if (cursor !== undefined) this.cursor = cursor
    if (event.type === 'task_group.status') this.#lastStatus = lastStatusOf(event.data.status)
    return true
  }

  protected seeWithoutEvent(kind: 'move' | 'skipped', text: string): boolean {
    return kind === 'move' ? this.#seen.addMove(text) : this.#seen.addSkipped(text)
  }

  protected restart(): void {
    this.#seen.forgetPositions()
    this.#lastStatus = undefined
  }

  protected activityOf(status: TaskGroupStatus | undefined): 'active' | 'empty' | 'done' {
    const group = status ?? this.#lastStatus
    if (group?.is_active === true) return 'active'
    // Runs are still to be added to a group without any.
    return group?.num_task_runs === 0 ? 'empty' : 'done'
  }

  protected completenessOf(status: TaskGroupStatus | undefined): 'done' | Shortfall | undefined {
    if (status === undefined) return this.#lastStatus === undefined ? undefined : 'done'
    const isEnded = this.#isLast(status)
    const expected = this.isWhole ? this.#expected(status) : undefined
    const missing = this.#missing(status, expected, isEnded === true)
    if (missing > this.skipped || isEnded === false) {
      // The service may have lost the missing events, which a `stream.gap` has reported.
      if (this.rewinds > 0) return undefined
      return { missing, expected: expected === undefined ? status.num_task_runs : sumOf(expected) }
    }
    if (expected === undefined || this.#kind === 'events') {
      // The events stream may send no status.
      if (isEnded === undefined) return undefined
    }
    return missing === 0 && !this.#seen.isPartial ? 'done' : undefined
  }

  protected get isPartial(): boolean {
    return this.#seen.isPartial
  }

  /** Number of runs of the group that were not seen. */
  #missing(
    { num_task_runs }: TaskGroupStatus,
    expected: readonly number[] | undefined,
    isEnded: boolean,
  ): number {
    const { counts } = this.#seen
    if (expected === undefined) {
      // All runs of an inactive group have ended, whatever its counts per status are.
      const isTotal = this.#kind === 'runs' && this.isWhole && this.#statusFilter === undefined
      return isTotal && isCount(num_task_runs) ? Math.max(0, num_task_runs - sumOf(counts)) : 0
    }
    // An events stream may have no runs; then only the runs stream has them.
    if (this.#kind === 'events' && isEnded && sumOf(counts) === 0) return 0
    return sumOf(expected.map((count, n) => Math.max(0, count - (counts[n] ?? 0))))
  }

  /** Whether the last status event has the group's final status; undefined without a status event. */
  #isLast(status: TaskGroupStatus): boolean | undefined {
    // Runs may have been added after an earlier status without active runs.
    const last = this.#lastStatus
    return last && !last.is_active && last.num_task_runs === status.num_task_runs
  }

  /** How many runs of each status the stream must send; undefined without usable counts. */
  #expected({ num_task_runs, task_run_status_counts: counts }: TaskGroupStatus): number[] | undefined {
    if (!isObject(counts) || !ENDED.some((status) => this.#isCounted(status))) return undefined
    const all: unknown[] = Object.values(counts)
    // The counts are usable only if they add up.
    if (!all.every(isCount) || sumOf(all) !== num_task_runs) return undefined
    return ENDED.map((status) => (this.#isCounted(status) ? (counts[status] ?? 0) : 0))
  }

  /** Whether the stream has an event for each run that ended with this status. */
  #isCounted(status: RunStatus): boolean {
    return this.#statusFilter === undefined || this.#statusFilter === status
  }

  /** Remembers the event. Returns whether it is new. */
  #addSeen(event: ResearchEvent): boolean {
    const { cursor } = event
    if (event.type === 'task_run.state') {
      const { run_id, status } = event.data.run
      const ended = ENDED.findIndex((each) => each === status)
      if (ended !== -1) return this.#seen.addRun(run_id, ended + 1, cursor)
    }
    return cursor !== undefined && this.#seen.addEvent(cursor)
  }
}

/** The fields of a status that decide whether a stream is complete. */
type LastStatus = Pick<TaskGroupStatus, 'is_active' | 'num_task_runs'>

function isEndedCounts(value: unknown): value is EndedCounts {
  return Array.isArray(value) && value.length === ENDED.length && value.every(isCount)
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Reads these fields; undefined if one is missing or malformed. */
function lastStatusOf(status: unknown): LastStatus | undefined {
  if (!isObject(status)) return undefined
  const { is_active, num_task_runs } = status
  return typeof is_active === 'boolean' && isCount(num_task_runs) ? { is_active, num_task_runs } : undefined
}
