import type { SchedulerLike } from 'rxjs'
import type { RunStatus, TaskGroupStatus } from 'rivulet'
import { EventLog } from './event-log.ts'
import type { ExpectedEvents } from './expected-events.ts'
import { endedRun, outputOf, TIME } from './run.ts'
import type { RunScript } from './run.ts'
import type { Reply } from './wire.ts'

/** The script of one group. Times are in ms. */
export interface GroupScript {
  readonly runs: readonly RunScript[]
  /** Other events of its streams. */
  readonly remarks: readonly { readonly at: number; readonly kind: 'error' | 'odd' }[]
  /** How long a connection lasts while runs are active. */
  readonly hour: number
  /** How many events before the position are repeated at each resumption. */
  readonly repeats: number
  /** When all cursors become invalid, and how many of the oldest events are dropped then. */
  readonly forgets: readonly { readonly at: number; readonly events: number }[]
  readonly include_input: boolean
}

/** A task group with its two streams. */
export class ScriptedGroup {
  readonly id: string
  readonly script: GroupScript
  readonly events: EventLog
  readonly runs: EventLog
  readonly #scheduler: SchedulerLike
  readonly #ended: RunScript[] = []

  constructor(id: string, script: GroupScript, scheduler: SchedulerLike, expectedEvents: ExpectedEvents) {
    this.id = id
    this.script = script
    this.#scheduler = scheduler
    this.events = new EventLog('events', id, script.include_input, expectedEvents)
    this.runs = new EventLog('runs', id, script.include_input, expectedEvents)
    this.#appendStatus()
    for (const [n, run] of script.runs.entries()) {
      scheduler.schedule(() => this.#end(`${id}-r${n}`, run), run.ends)
    }
    for (const [n, { at, kind }] of script.remarks.entries()) {
      scheduler.schedule(() => this.#sendOther(`${id}-${n}`, kind), at)
    }
    for (const { at, events } of script.forgets) {
      scheduler.schedule(() => {
        for (const log of this.#logs) log.forget(events)
      }, at)
    }
  }

  /** Answers `GET …/groups/{id}`. */
  show(): Reply {
    return { status: 200, body: { taskgroup_id: this.id, status: this.#status(), created_at: TIME } }
  }

  /** Answers for one of the streams. */
  stream(log: EventLog, query: URLSearchParams): Reply {
    const cursor = query.get('last_event_id')
    const start = log.after(cursor)
    if (start === undefined) {
      return { status: 422, body: { detail: [{ loc: ['last_event_id'], msg: 'unknown', type: 'value' }] } }
    }
    const wanted = {
      input: query.get('include_input') === 'true',
      output: query.get('include_output') === 'true',
    }
    return {
      open: (connection) => {
        log.subscribe(connection, cursor === null ? start : start - this.script.repeats, wanted)
        if (!this.#active) return log.close(connection)
        this.#scheduler.schedule(() => log.close(connection), this.script.hour)
      },
    }
  }

  get #logs(): readonly EventLog[] {
    return [this.events, this.runs]
  }

  get #active(): boolean {
    return this.#ended.length < this.script.runs.length
  }

  #end(run_id: string, script: RunScript): void {
    this.#ended.push(script)
    const record = {
      type: 'task_run.state',
      run: endedRun(run_id, script, script.explained),
      input: { input: `look into ${run_id}` },
      ...(script.status === 'completed' && { output: outputOf(run_id) }),
    }
    this.runs.append(record)
    this.events.append(record, false)
    this.#appendStatus()
    if (!this.#active) for (const log of this.#logs) log.closeAll()
  }

  #appendStatus(): void {
    this.events.append({ type: 'task_group_status', status: this.#status() })
  }

  #sendOther(ref_id: string, kind: 'error' | 'odd'): void {
    // The client would not reconnect for it.
    if (!this.#active) return
    const record =
      kind === 'error'
        ? { type: 'error', error: { ref_id, message: 'stumbled' } }
        : { type: 'task_group.dreamt', of: ref_id }
    for (const log of this.#logs) log.append(record)
  }

  #status(): TaskGroupStatus {
    const counts: Partial<Record<RunStatus, number>> = {}
    for (const { status } of this.#ended) counts[status] = (counts[status] ?? 0) + 1
    const running = this.script.runs.length - this.#ended.length
    return {
      num_task_runs: this.script.runs.length,
      task_run_status_counts: running === 0 ? counts : { ...counts, running },
      is_active: this.#active,
      status_message: '',
      modified_at: TIME,
    }
  }
}
