import { isObject } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { TaskGroupStatus } from '../protocol/task-group.ts'
import type { RunStatus } from '../protocol/task.ts'

/** Statuses of a run that has ended, each of which makes one event. */
const ENDED = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunStatus[]

/** Connections in a row that may bring nothing, or nothing that can be read, although there is more. */
const PATIENCE = 6
/** The same where nothing says whether there is more. One alone may be a service that accepts and closes. */
const PATIENCE_UNKNOWN = 2

/** Whether a stream that closed cleanly goes on, is done, or is done without all that there was. */
export type Verdict = 'go on' | 'done' | 'incomplete'

/**
 * Where a group's stream stands, kept over its connections and, as text, over restarts.
 *
 * A clean close alone does not say that the group is done: the service closes after an hour too, and events may have
 * come up since. What is known decides: the events stream ends with the status that no run is active; of the runs
 * stream, the group tells how many runs it has to tell of. A stream that was opened in the middle by somebody else's
 * cursor knows neither, and is done when connections bring nothing more.
 */
export class GroupPosition {
  /** The last event that the subscriber got, or what the stream was opened with. */
  cursor: string | undefined
  /** Runs that were told since the beginning; undefined where the beginning is not known. */
  #told: number | undefined
  /** The last status that was told. */
  #last: Pick<TaskGroupStatus, 'is_active' | 'num_task_runs'> | undefined
  readonly #status: RunStatus | undefined
  /** The cursor that somebody else chose; the service's word on that is final. */
  #opened: string | undefined
  /** Connections in a row that brought nothing, opened after the group was seen inactive. */
  #empty = 0
  #inactive = false
  /** Connections in a row that broke on one event. */
  #broken = 0
  #moved = false

  /** @param status The one status that the stream was asked for. */
  constructor(cursor: string | undefined, status: RunStatus | undefined) {
    this.cursor = this.#opened = cursor
    this.#told = cursor === undefined ? 0 : undefined
    this.#status = status
  }

  /** The position that was written as text before; at the beginning where there is none. */
  static parse(text: string | undefined, status: RunStatus | undefined): GroupPosition {
    const parsed: unknown = text === undefined ? {} : JSON.parse(text)
    const { cursor, told, last } = isObject(parsed) ? parsed : {}
    const position = new GroupPosition(undefined, status)
    if (typeof cursor === 'string') position.cursor = cursor
    position.#told = undefined
    if (typeof told === 'number') position.#told = told
    if (isObject(last)) {
      position.#last = { is_active: last['is_active'] === true, num_task_runs: Number(last['num_task_runs']) }
    }
    return position
  }

  /** The position as text, for {@link parse}. */
  toString(): string {
    return JSON.stringify({ cursor: this.cursor, told: this.#told, last: this.#last })
  }

  /** A connection is opened. */
  opened(): void {
    this.#moved = false
  }

  /** The event is about to be told. */
  advance(event: ResearchEvent): void {
    this.#moved = true
    this.#broken = 0
    if (event.cursor !== undefined) this.cursor = event.cursor
    if (event.type === 'task_group.status') {
      const { is_active, num_task_runs } = event.data.status
      this.#last = { is_active, num_task_runs }
    }
    if (event.type === 'task_run.state' && this.#told !== undefined) this.#told += 1
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
    return true
  }

  /** Decides over a clean close, by the group's status after it; undefined where the service does not tell that. */
  verdict(status: TaskGroupStatus | undefined): Verdict {
    this.#empty = this.#inactive && !this.#moved ? this.#empty + 1 : 0
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
    if (Object.values(counts).reduce((sum, count) => sum + count, 0) !== num_task_runs) return undefined
    const statuses = this.#status === undefined ? ENDED : [this.#status]
    return this.#told >= statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0)
  }
}
