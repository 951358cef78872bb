import { isObject } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus } from '../../protocol/task.ts'
import type { Place } from '../../state/progress-log.ts'
import { SeenEvents } from './seen.ts'
import type { EndedCounts, SeenMoment } from './seen.ts'

/** Statuses of a run that has ended, each of which makes one event. */
const ENDED = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunStatus[]

/** Connections in a row that may break on one event. */
const BROKEN = 6
/** Connections in a row without a new event after which a stream is quiet, where its end is not known. */
const EMPTY = 2
/** The same where the count of runs may be too high, or the service has lost events. */
const EMPTY_UNCERTAIN = 3

/** What a stream sends to its end: the runs stream runs, the events stream the group's statuses too. */
export type StreamEnd = 'runs' | 'statuses'

/** What an inactive group has and its stream has not sent. */
export interface Shortfall {
  /** Runs whose end was not sent. 0 where only the group's last status is missing. */
  readonly missing: number
  /** Runs whose end the stream has to send. */
  readonly expected: number
}

/** An event that was skipped. */
export interface SkippedEvent {
  readonly isNew: boolean
  /** The position before it. */
  readonly cursor: string | undefined
  /** How many were skipped behind that position, this one included. */
  readonly count: number
}

/**
 * Whether a stream that closed goes on, is done, or is known to be incomplete; `quiet` where that cannot be known, and
 * several connections brought nothing new.
 */
export type Verdict = 'go on' | 'done' | 'quiet' | Shortfall

/**
 * Where a group's stream stands, kept over its connections and, as text, over restarts.
 *
 * A resumed connection may repeat any event in any order. So the position moves with events alone that were not seen
 * before, and never back; {@link SeenEvents} knows which were.
 *
 * A clean close does not say that the group is done, nor does an empty connection. The group's own counts decide: the
 * stream is done when as many distinct runs were seen with each status as the inactive group has; the events stream ends
 * with the status that says so. Where less was seen, the stream is known to be incomplete.
 *
 * Three things make this uncertain, and then a time without a new event decides: a stream that was opened in the middle
 * by a cursor of the caller, a group that does not say its counts, and more runs seen before a restart than the text
 * remembers, since one of those would count twice.
 */
export class GroupPosition {
  /** The position of the last new event, or what the stream was opened with. */
  cursor: string | undefined
  readonly #end: StreamEnd
  /** The one status whose runs the stream has; undefined for all of {@link ENDED}. */
  readonly #asked: RunStatus | undefined
  /** The cursor that the caller chose; the service's refusal of that one is final. */
  #opened: string | undefined
  /** Whether the stream was read from its beginning. */
  #isWhole: boolean
  /** Whether the service refused a position, and so may have lost what was before it. */
  #isRewound = false
  #seen = new SeenEvents()
  /** Distinct events that were skipped since they were too long. */
  #skipped = 0
  /** The last status of the group that was sent. */
  #last: LastStatus | undefined
  /** The cursor of the last event of this connection, new or not, and how many were skipped behind it. */
  #latest: string | undefined
  #skippedSince = 0
  /** Whether this connection brought a new event. */
  #hasNew = false
  /** Connections in a row without a new event, opened after the group was seen inactive. */
  #empty = 0
  #isInactive = false
  /** Connections in a row that broke on one event. */
  #broken = 0

  /** @param asked The one status that the stream was asked for. */
  constructor(cursor: string | undefined, asked: RunStatus | undefined, end: StreamEnd = 'runs') {
    this.#end = end
    this.cursor = this.#opened = cursor
    this.#isWhole = cursor === undefined
    this.#asked = asked
  }

  /** The position whose text a {@link place} wrote before; undefined for a text that it cannot have written. */
  static parse(
    text: string,
    asked: RunStatus | undefined,
    end: StreamEnd = 'runs',
  ): GroupPosition | undefined {
    const lineEnd = text.indexOf('\n')
    const seen = text.slice(lineEnd + 1)
    const parsed = parseJson(text.slice(0, lineEnd))
    if (lineEnd === -1 || !isObject(parsed)) return undefined
    const { cursor, whole = false, rewound = false, ended, skipped = 0, last } = parsed
    if (cursor !== undefined && typeof cursor !== 'string') return undefined
    if (typeof whole !== 'boolean' || typeof rewound !== 'boolean') return undefined
    // Only behind a cursor of the caller the beginning is not known.
    if (cursor === undefined && !whole) return undefined
    if (!isEndedCounts(ended) || !isCount(skipped)) return undefined
    const status = lastStatus(last)
    if (last !== undefined && status === undefined) return undefined
    const position = new GroupPosition(undefined, asked, end)
    if (!position.#seen.read(seen, ended)) return undefined
    position.cursor = cursor
    position.#isWhole = whole
    position.#isRewound = rewound
    position.#skipped = skipped
    position.#last = status
    return position
  }

  /** The position at this moment. Its text is for {@link parse}. */
  get place(): Place {
    return new GroupPlace(
      this.cursor,
      this.#seen.moment,
      this.#isWhole,
      this.#isRewound,
      this.#skipped,
      this.#last,
    )
  }

  /** A connection is opened. */
  opened(): void {
    this.#hasNew = false
    this.#latest = this.cursor
    this.#skippedSince = 0
  }

  /** The event is about to be emitted. Returns whether it is new. */
  advance(event: ResearchEvent): boolean {
    this.#broken = 0
    const { cursor } = event
    if (cursor !== undefined) this.#moveLatest(cursor)
    if (!this.#isUnseen(event)) return false
    this.#hasNew = true
    if (cursor !== undefined) this.cursor = cursor
    if (event.type === 'task_group.status') this.#last = lastStatus(event.data.status)
    return true
  }

  /** The service moved the position without an event. Returns whether the position is new. */
  moveTo(cursor: string): boolean {
    this.#moveLatest(cursor)
    if (!this.#seen.move(cursor)) return false
    this.cursor = cursor
    this.#hasNew = true
    return true
  }

  /** An event was skipped since it is too long. It comes again when the stream is resumed. */
  skip(): SkippedEvent {
    const cursor = this.#latest
    this.#skippedSince += 1
    const isNew = this.#seen.skipped(`${this.#skippedSince} ${cursor ?? ''}`)
    if (isNew) {
      this.#skipped += 1
      this.#hasNew = true
    }
    return { isNew, cursor, count: this.#skippedSince }
  }

  /** Whether the next event, which cannot be read, may come whole another time. It may not when it came so too often. */
  mayBeBroken(): boolean {
    return ++this.#broken < BROKEN
  }

  /** Goes back to the beginning, if the position is one that the stream has come to by itself. */
  rewind(): boolean {
    if (this.cursor === this.#opened) return false
    this.cursor = this.#opened = undefined
    this.#isWhole = true
    this.#isRewound = true
    this.#seen.forgetPositions()
    this.#last = undefined
    return true
  }

  /**
   * Decides over a clean close.
   *
   * @param status The group's status after it; undefined where the service has no such endpoint.
   * @param isRefused Whether the service asks not to connect again.
   */
  verdict(status: TaskGroupStatus | undefined, isRefused = false): Verdict {
    this.#empty = this.#isInactive && !this.#hasNew ? this.#empty + 1 : 0
    const group = status ?? this.#last
    this.#isInactive = group?.is_active !== true
    // A group that never had a run is about to have one.
    if (!this.#isInactive || group?.num_task_runs === 0) return 'go on'
    const patience = this.#isUncertain ? EMPTY_UNCERTAIN : EMPTY
    const complete = this.#complete(status)
    if (complete !== undefined) return complete
    if (isRefused) return 'done'
    return this.#empty < patience ? 'go on' : 'quiet'
  }

  /** Whether everything was sent that an inactive group has; undefined where that cannot be known. */
  #complete(status: TaskGroupStatus | undefined): 'done' | Shortfall | undefined {
    if (status === undefined) return this.#last === undefined ? undefined : 'done'
    const isEnded = this.#isLast(status)
    const expected = this.#isWhole ? this.#expected(status) : undefined
    const missing = this.#missing(status, expected, isEnded === true)
    if (missing > this.#skipped || isEnded === false) {
      // What the service has lost does not come, and a `stream.gap` has said that.
      if (this.#isRewound) return undefined
      return { missing, expected: expected === undefined ? status.num_task_runs : sumOf(expected) }
    }
    if (expected === undefined || this.#end === 'statuses') {
      // The events stream may send no status at all.
      if (isEnded === undefined) return undefined
    }
    return missing === 0 && !this.#seen.isPartial ? 'done' : undefined
  }

  /** How many runs were not seen that the group has. */
  #missing(
    { num_task_runs }: TaskGroupStatus,
    expected: readonly number[] | undefined,
    isEnded: boolean,
  ): number {
    const { counts } = this.#seen
    if (expected === undefined) {
      // All runs of an inactive group have ended, whatever its counts say of how.
      const isTotal = this.#end === 'runs' && this.#isWhole && this.#asked === undefined
      return isTotal && isCount(num_task_runs) ? Math.max(0, num_task_runs - sumOf(counts)) : 0
    }
    // An events stream that came to its end without any run leaves them to the runs stream.
    if (this.#end === 'statuses' && isEnded && sumOf(counts) === 0) return 0
    return sumOf(expected.map((count, n) => Math.max(0, count - (counts[n] ?? 0))))
  }

  /** Whether the status that was sent last is the group's last one; undefined where none was sent. */
  #isLast(status: TaskGroupStatus): boolean | undefined {
    // After an older one that said that no run was active, more runs may have been added.
    return this.#last && !this.#last.is_active && this.#last.num_task_runs === status.num_task_runs
  }

  /** How many runs of each status the stream has to send, where the group says that. */
  #expected({ num_task_runs, task_run_status_counts: counts }: TaskGroupStatus): number[] | undefined {
    if (!isObject(counts) || !ENDED.some((status) => this.#isCounted(status))) return undefined
    const all: unknown[] = Object.values(counts)
    // Counts that do not add up cannot be relied on.
    if (!all.every(isCount) || sumOf(all) !== num_task_runs) return undefined
    return ENDED.map((status) => (this.#isCounted(status) ? (counts[status] ?? 0) : 0))
  }

  /** Whether the end of a run with this status makes an event of the stream. */
  #isCounted(status: RunStatus): boolean {
    return this.#asked === undefined || this.#asked === status
  }

  /** Whether more may be counted than was seen, or less may come than there was. */
  get #isUncertain(): boolean {
    return this.#seen.isPartial || this.#isRewound || this.#skipped > 0
  }

  #isUnseen(event: ResearchEvent): boolean {
    const { cursor } = event
    if (event.type === 'task_run.state') {
      const { run_id, status } = event.data.run
      const ended = ENDED.findIndex((each) => each === status)
      if (ended !== -1) return this.#seen.run(run_id, ended + 1, cursor)
    }
    return cursor !== undefined && this.#seen.place(cursor)
  }

  #moveLatest(cursor: string): void {
    this.#latest = cursor
    this.#skippedSince = 0
  }
}

/** What a {@link GroupPosition} is at one moment. */
class GroupPlace implements Place {
  readonly #cursor: string | undefined
  readonly #seen: SeenMoment
  readonly #isWhole: boolean
  readonly #isRewound: boolean
  readonly #skipped: number
  readonly #last: LastStatus | undefined

  constructor(
    cursor: string | undefined,
    seen: SeenMoment,
    isWhole: boolean,
    isRewound: boolean,
    skipped: number,
    last: LastStatus | undefined,
  ) {
    this.#cursor = cursor
    this.#seen = seen
    this.#isWhole = isWhole
    this.#isRewound = isRewound
    this.#skipped = skipped
    this.#last = last
  }

  text(): string {
    const position = JSON.stringify({
      cursor: this.#cursor,
      whole: this.#isWhole || undefined,
      rewound: this.#isRewound || undefined,
      skipped: this.#skipped || undefined,
      last: this.#last,
      ended: this.#seen.counts,
    })
    // As a value of the JSON, the entries would be copied and searched for characters to escape on each save.
    return `${position}\n${this.#seen.text()}`
  }
}

/** What decides in a status. */
type LastStatus = Pick<TaskGroupStatus, 'is_active' | 'num_task_runs'>

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isEndedCounts(value: unknown): value is EndedCounts {
  return Array.isArray(value) && value.length === ENDED.length && value.every(isCount)
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Of a status, what decides; undefined where it does not say that. */
function lastStatus(status: unknown): LastStatus | undefined {
  if (!isObject(status)) return undefined
  const { is_active, num_task_runs } = status
  return typeof is_active === 'boolean' && isCount(num_task_runs) ? { is_active, num_task_runs } : undefined
}
