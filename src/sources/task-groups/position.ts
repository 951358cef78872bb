import { isObject } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { parseJson } from '../../protocol/json.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus } from '../../protocol/task.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { MAX_MALFORMED } from '../shapes/protocol-error-limit.ts'
import type { Decision, ReaderPosition, Shortfall, SkippedEvent } from '../shapes/positioned-reader.ts'
import { SeenEvents } from './seen.ts'
import type { EndedCounts, SeenSnapshot } from './seen.ts'

/** Statuses of a run that has ended. Each produces one event. */
const ENDED = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunStatus[]

/** Connections in a row without a new event after which a stream of unknown length is idle. */
const IDLE_CONNECTIONS = 2
/** The same if more runs may be counted than were seen, or if the service has lost events. */
const IDLE_CONNECTIONS_UNCERTAIN = 3

/** A group has two streams. The events stream sends the group's statuses too. */
export type StreamKind = 'runs' | 'events'

/**
 * The position of a group's stream, kept across connections and, as text, across restarts.
 *
 * A resumed connection may repeat any event in any order. So only a new event advances the position, which never moves back.
 * {@link SeenEvents} remembers which events were seen.
 *
 * Neither a clean close nor an empty connection means that the group is done. The runs stream is done when the number of
 * distinct runs seen with each status equals the inactive group's counts. The events stream is done with the status that
 * has these counts. If fewer were seen, events are missing.
 * docs/architecture.md, "Sources", lists when completeness is unknown; then time without a new event decides.
 */
export class GroupPosition implements ReaderPosition<TaskGroupStatus> {
  /** The cursor of the last new event, or the caller's. */
  cursor: string | undefined
  readonly #kind: StreamKind
  /** The status by which the stream filters runs; undefined for all of {@link ENDED}. */
  readonly #statusFilter: RunStatus | undefined
  /** The caller's cursor. If the service rejects it, the stream errors. */
  #callerCursor: string | undefined
  /** Whether the stream was read from its beginning. */
  #isWhole: boolean
  /** Whether the service rejected a position, and so may have lost the events before it. */
  #isRewound = false
  #seen = new SeenEvents()
  /** Number of distinct events that were skipped as oversized. */
  #skipped = 0
  /** The group's status in the last status event. */
  #lastStatus: LastStatus | undefined
  /** The cursor of this connection's last event, new or not, and how many events were skipped after it. */
  #latestCursor: string | undefined
  #skippedSinceLatest = 0
  /** Whether this connection had a new event. */
  #hasNew = false
  /** Connections in a row without a new event, made after the group was inactive. */
  #idleConnections = 0
  #isInactive = false
  /** Connections in a row that ended at a malformed event. */
  #malformed = 0

  /** @param statusFilter The status by which the stream filters runs. */
  constructor(cursor: string | undefined, statusFilter: RunStatus | undefined, kind: StreamKind = 'runs') {
    this.#kind = kind
    this.cursor = this.#callerCursor = cursor
    this.#isWhole = cursor === undefined
    this.#statusFilter = statusFilter
  }

  /** Parses the text of a {@link snapshot}; undefined if the text is not valid. */
  static parse(
    text: string,
    statusFilter: RunStatus | undefined,
    kind: StreamKind = 'runs',
  ): GroupPosition | undefined {
    const lineEnd = text.indexOf('\n')
    const seen = text.slice(lineEnd + 1)
    const parsed = parseJson(text.slice(0, lineEnd))
    if (lineEnd === -1 || !isObject(parsed)) return undefined
    const { cursor, whole = false, rewound = false, ended, skipped = 0, last } = parsed
    if (cursor !== undefined && typeof cursor !== 'string') return undefined
    if (typeof whole !== 'boolean' || typeof rewound !== 'boolean') return undefined
    // Without a cursor, the stream starts at its beginning.
    if (cursor === undefined && !whole) return undefined
    if (!isEndedCounts(ended) || !isCount(skipped)) return undefined
    const status = lastStatusOf(last)
    if (last !== undefined && status === undefined) return undefined
    const position = new GroupPosition(undefined, statusFilter, kind)
    if (!position.#seen.restore(seen, ended)) return undefined
    position.cursor = cursor
    position.#isWhole = whole
    position.#isRewound = rewound
    position.#skipped = skipped
    position.#lastStatus = status
    return position
  }

  /** An immutable copy of the position. {@link parse} reads its text. */
  get snapshot(): StreamPosition {
    return new GroupSnapshot(
      this.cursor,
      this.#seen.snapshot,
      this.#isWhole,
      this.#isRewound,
      this.#skipped,
      this.#lastStatus,
    )
  }

  /** Called before each connection. */
  connect(): void {
    this.#hasNew = false
    this.#latestCursor = this.cursor
    this.#skippedSinceLatest = 0
  }

  /** Called before each event is emitted. Returns whether it is new. */
  advance(event: ResearchEvent): boolean {
    this.#malformed = 0
    const { cursor } = event
    if (cursor !== undefined) this.#moveLatest(cursor)
    if (!this.#addSeen(event)) return false
    this.#hasNew = true
    if (cursor !== undefined) this.cursor = cursor
    if (event.type === 'task_group.status') this.#lastStatus = lastStatusOf(event.data.status)
    return true
  }

  /** Called when the service advances the position without an event. Returns whether the cursor is new. */
  moveTo(cursor: string): boolean {
    this.#moveLatest(cursor)
    if (!this.#seen.addMove(cursor)) return false
    this.cursor = cursor
    this.#hasNew = true
    return true
  }

  /** Called for each oversized event. The service sends it again when the stream resumes. */
  skip(): SkippedEvent {
    const cursor = this.#latestCursor
    this.#skippedSinceLatest += 1
    const isNew = this.#seen.addSkipped(`${this.#skippedSinceLatest} ${cursor ?? ''}`)
    if (isNew) {
      this.#skipped += 1
      this.#hasNew = true
    }
    return { isNew, cursor, count: this.#skippedSinceLatest }
  }

  /** Counts a malformed event. Returns whether to reconnect for it: false for the sixth in a row. */
  permitsRetry(): boolean {
    return ++this.#malformed < MAX_MALFORMED
  }

  /** Resets the cursor to the beginning of the stream. Returns false, without a reset, for the caller's own cursor. */
  rewind(): boolean {
    if (this.cursor === this.#callerCursor) return false
    this.cursor = this.#callerCursor = undefined
    this.#isWhole = true
    this.#isRewound = true
    this.#seen.forgetPositions()
    this.#lastStatus = undefined
    return true
  }

  /**
   * Decides what to do after a clean close.
   *
   * @param status The group's status after it; undefined if the service lacks that endpoint.
   * @param hasNoContent Whether the service answered with 204, a request not to reconnect.
   */
  decide(status: TaskGroupStatus | undefined, hasNoContent = false): Decision {
    this.#idleConnections = this.#isInactive && !this.#hasNew ? this.#idleConnections + 1 : 0
    const group = status ?? this.#lastStatus
    this.#isInactive = group?.is_active !== true
    // Runs are still to be added to a group without any.
    if (!this.#isInactive || group?.num_task_runs === 0) return 'reconnect'
    const limit = this.#isUncertain ? IDLE_CONNECTIONS_UNCERTAIN : IDLE_CONNECTIONS
    const completeness = this.#completeness(status)
    if (completeness !== undefined) return completeness
    if (hasNoContent) return 'done'
    return this.#idleConnections < limit ? 'reconnect' : 'idle'
  }

  /** Whether the stream of an inactive group is complete; undefined if that is unknown. */
  #completeness(status: TaskGroupStatus | undefined): 'done' | Shortfall | undefined {
    if (status === undefined) return this.#lastStatus === undefined ? undefined : 'done'
    const isEnded = this.#isLast(status)
    const expected = this.#isWhole ? this.#expected(status) : undefined
    const missing = this.#missing(status, expected, isEnded === true)
    if (missing > this.#skipped || isEnded === false) {
      // The service may have lost the missing events, which a `stream.gap` has reported.
      if (this.#isRewound) return undefined
      return { missing, expected: expected === undefined ? status.num_task_runs : sumOf(expected) }
    }
    if (expected === undefined || this.#kind === 'events') {
      // The events stream may send no status.
      if (isEnded === undefined) return undefined
    }
    return missing === 0 && !this.#seen.isPartial ? 'done' : undefined
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
      const isTotal = this.#kind === 'runs' && this.#isWhole && this.#statusFilter === undefined
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

  /** Whether more runs may be counted than were seen, or fewer events sent than existed. */
  get #isUncertain(): boolean {
    return this.#seen.isPartial || this.#isRewound || this.#skipped > 0
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

  #moveLatest(cursor: string): void {
    this.#latestCursor = cursor
    this.#skippedSinceLatest = 0
  }
}

/** A {@link GroupPosition} at one moment. */
class GroupSnapshot implements StreamPosition {
  readonly #cursor: string | undefined
  readonly #seen: SeenSnapshot
  readonly #isWhole: boolean
  readonly #isRewound: boolean
  readonly #skipped: number
  readonly #lastStatus: LastStatus | undefined

  constructor(
    cursor: string | undefined,
    seen: SeenSnapshot,
    isWhole: boolean,
    isRewound: boolean,
    skipped: number,
    lastStatus: LastStatus | undefined,
  ) {
    this.#cursor = cursor
    this.#seen = seen
    this.#isWhole = isWhole
    this.#isRewound = isRewound
    this.#skipped = skipped
    this.#lastStatus = lastStatus
  }

  text(): string {
    const position = JSON.stringify({
      cursor: this.#cursor,
      whole: this.#isWhole || undefined,
      rewound: this.#isRewound || undefined,
      skipped: this.#skipped || undefined,
      last: this.#lastStatus,
      ended: this.#seen.counts,
    })
    // Not inside the JSON: each save would copy the entries and search them for characters to escape.
    return `${position}\n${this.#seen.text()}`
  }
}

/** The fields of a status that decide whether a stream is complete. */
type LastStatus = Pick<TaskGroupStatus, 'is_active' | 'num_task_runs'>

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

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
