import { isObject } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { TaskGroupStatus } from '../protocol/task-group.ts'
import type { RunStatus } from '../protocol/task.ts'
import type { Place } from '../state/progress-log.ts'

/** Statuses of a run that has ended, each of which makes one event. */
const ENDED = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunStatus[]

/** Connections in a row that may bring nothing, or nothing that can be read, although there is more. */
const PATIENCE = 6
/** The same where nothing says whether there is more. One alone may be a service that accepts and closes. */
const PATIENCE_UNKNOWN = 2

/** Cursors that are remembered to have been resumed from. What is repeated comes by the last of them, or the one before. */
const RESUMED = 16

/** What a stream tells to its end: the runs stream runs, the events stream the group's statuses. */
export type StreamEnd = 'runs' | 'statuses'

/** Whether a stream that closed cleanly goes on, is done, or is done without all that there was. */
export type Verdict = 'go on' | 'done' | 'incomplete'

/**
 * Where a group's stream stands, kept over its connections and, as text, over restarts.
 *
 * A clean close alone does not say that the group is done: the service closes after an hour too, and events may have
 * come up since. What is known decides: the events stream ends with the status that no run is active; of the runs
 * stream, the group tells how many runs it has to tell of. A stream that was opened in the middle by somebody else's
 * cursor knows neither, and is done when connections bring nothing more.
 *
 * What a service tells again when a stream is resumed must not count twice. Nobody remembers all runs for that: the order
 * of a stream stays, so whatever is repeated comes by the place from which the stream was resumed, and what had been told
 * there is known, after a restart too. In between the count may be too high. So one that was reached after a resumption is
 * believed when one more connection has brought nothing new.
 */
export class GroupPosition {
  /** The last event that the subscriber got, or what the stream was opened with. */
  cursor: string | undefined
  /** Runs that the stream tells from its beginning up to the cursor; undefined where the beginning is not known. */
  #told: number | undefined
  /** The last status that was told. */
  #last: LastStatus | undefined
  readonly #tells: StreamEnd
  /** The statuses that make an event of the runs stream. */
  readonly #statuses: readonly RunStatus[]
  /** The cursor that somebody else chose; the service's word on that is final. */
  #opened: string | undefined
  /** Where connections were opened, the latest last. */
  #resumed: readonly Resumption[] = []
  /** What the present connection was opened with. */
  #from: string | undefined
  /** Connections in a row that brought nothing new, opened after the group was seen inactive. */
  #empty = 0
  #inactive = false
  /** Connections in a row that broke on one event. */
  #broken = 0

  /** @param asked The one status that the stream was asked for. */
  constructor(cursor: string | undefined, asked: RunStatus | undefined, tells: StreamEnd = 'runs') {
    this.#tells = tells
    this.cursor = this.#opened = cursor
    this.#told = cursor === undefined ? 0 : undefined
    this.#statuses = asked === undefined ? ENDED : [asked]
  }

  /** The position whose text a {@link place} wrote before; undefined for a text that it cannot have written. */
  static parse(
    text: string,
    asked: RunStatus | undefined,
    tells: StreamEnd = 'runs',
  ): GroupPosition | undefined {
    const parsed = parseJson(text)
    if (!isObject(parsed)) return undefined
    const { cursor, told, last, resumed = [] } = parsed
    if (cursor !== undefined && typeof cursor !== 'string') return undefined
    if (told !== undefined && !isCount(told)) return undefined
    const status = lastStatus(last)
    if (last !== undefined && status === undefined) return undefined
    if (!Array.isArray(resumed) || !resumed.every(isResumption)) return undefined
    // What is told is not known only behind a cursor that somebody else chose.
    if (cursor === undefined && told === undefined) return undefined
    const position = new GroupPosition(undefined, asked, tells)
    position.cursor = cursor
    position.#told = told
    position.#last = status
    position.#resumed = resumed
    return position
  }

  /** The position at this moment. Its text is for {@link parse}. */
  get place(): Place {
    return new GroupPlace(this.cursor, this.#told, this.#last, this.#resumed)
  }

  /** A connection is opened. */
  opened(): void {
    if (this.#isNew) this.#empty = 0
    this.#from = this.cursor
    // From the beginning everything comes, whatever was told of it.
    if (this.cursor === undefined) this.#told = 0
    else this.#remember(this.cursor)
  }

  /** The event is about to be told. */
  advance(event: ResearchEvent): void {
    this.#broken = 0
    if (event.type === 'task_group.status') this.#last = lastStatus(event.data.status)
    const { cursor } = event
    const isSame = cursor !== undefined && cursor === this.cursor
    const resumption = this.#resumptionAt(cursor)
    if (cursor !== undefined) this.cursor = cursor
    if (resumption !== undefined) this.#told = resumption.told ?? this.#told
    else if (!isSame && this.#told !== undefined && this.#isCounted(event)) this.#told += 1
  }

  /** Whether the next event, which cannot be read, may come whole another time. It may not when it came so too often. */
  mayBeBroken(): boolean {
    return ++this.#broken < PATIENCE
  }

  /** Goes back to the beginning, if the position is one that the stream has come to by itself. */
  rewind(): boolean {
    if (this.cursor === this.#opened) return false
    this.cursor = this.#opened = undefined
    this.#told = 0
    this.#last = undefined
    this.#resumed = []
    return true
  }

  /** Decides over a clean close, by the group's status after it; undefined where the service does not tell that. */
  verdict(status: TaskGroupStatus | undefined): Verdict {
    this.#empty = this.#inactive && !this.#isNew ? this.#empty + 1 : 0
    this.#inactive = status?.is_active !== true
    if (!this.#inactive) return 'go on'
    const complete =
      status === undefined ? this.#last?.is_active === false || undefined : this.#complete(status)
    if (complete === true) return 'done'
    if (complete === undefined) return this.#empty < PATIENCE_UNKNOWN ? 'go on' : 'done'
    return this.#empty < PATIENCE ? 'go on' : 'incomplete'
  }

  /** Whether all was told that an inactive group has to tell; undefined where that cannot be known. */
  #complete({ num_task_runs, task_run_status_counts: counts }: TaskGroupStatus): boolean | undefined {
    // The events stream tells statuses, the runs stream does not. An older one may have said that no run was active, and
    // then more were added.
    if (this.#last !== undefined) return !this.#last.is_active && this.#last.num_task_runs === num_task_runs
    if (this.#told === undefined || !isObject(counts)) return undefined
    // Counts that do not add up cannot be counted on.
    const each: readonly unknown[] = Object.values(counts)
    if (!each.every(isCount) || each.reduce((sum, count) => sum + count, 0) !== num_task_runs)
      return undefined
    // Once the stream was resumed, what this connection brought may be a repetition.
    if (this.#resumed.length > 0 && this.cursor !== this.#from) return false
    const isTold = this.#told >= this.#statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0)
    // All runs, and not a single status of those that tell where the events stream ends.
    return isTold && this.#tells === 'statuses' ? undefined : isTold
  }

  /** Whether the stream is where it was not before: elsewhere all that has come may have been repeated. */
  get #isNew(): boolean {
    return this.cursor !== undefined && this.#resumptionAt(this.cursor) === undefined
  }

  #isCounted(event: ResearchEvent): boolean {
    return event.type === 'task_run.state' && this.#statuses.includes(event.data.run.status)
  }

  #resumptionAt(cursor: string | undefined): Resumption | undefined {
    // Most streams are never resumed, and then nothing is looked up.
    return this.#resumed.length === 0 ? undefined : this.#resumed.find((each) => each.cursor === cursor)
  }

  #remember(cursor: string): void {
    const others = this.#resumed.filter((each) => each.cursor !== cursor)
    this.#resumed = [...others, { cursor, told: this.#told }].slice(-RESUMED)
  }
}

/** What a {@link GroupPosition} is at one moment. */
class GroupPlace implements Place {
  readonly #cursor: string | undefined
  readonly #told: number | undefined
  readonly #last: LastStatus | undefined
  readonly #resumed: readonly Resumption[]

  constructor(
    cursor: string | undefined,
    told: number | undefined,
    last: LastStatus | undefined,
    resumed: readonly Resumption[],
  ) {
    this.#cursor = cursor
    this.#told = told
    this.#last = last
    this.#resumed = resumed
  }

  text(): string {
    const resumed = this.#resumed.length === 0 ? undefined : this.#resumed
    return JSON.stringify({ cursor: this.#cursor, told: this.#told, last: this.#last, resumed })
  }
}

/** A cursor that a connection was opened with, and how many runs had been told there, where that is known. */
interface Resumption {
  readonly cursor: string
  readonly told?: number | undefined
}

function isResumption(value: unknown): value is Resumption {
  if (!isObject(value)) return false
  const { cursor, told } = value
  return typeof cursor === 'string' && (told === undefined || isCount(told))
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

/** Of a status, what decides; undefined where it does not tell that. */
function lastStatus(status: unknown): LastStatus | undefined {
  if (!isObject(status)) return undefined
  const { is_active, num_task_runs } = status
  return typeof is_active === 'boolean' && isCount(num_task_runs) ? { is_active, num_task_runs } : undefined
}
