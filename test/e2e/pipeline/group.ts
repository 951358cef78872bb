import type { SchedulerLike } from 'rxjs'
import type { RunStatus, TaskGroupStatus } from 'rivulet'
import { EventLog } from './event-log.ts'
import type { Ledger } from './ledger.ts'
import { endedRun, outputOf, TIME } from './run.ts'
import type { RunScript } from './run.ts'
import type { Reply } from './wire.ts'

/** What one group does. Times are in ms. */
export interface GroupScript {
  readonly runs: readonly RunScript[]
  /** What else its streams tell. */
  readonly remarks: readonly { readonly at: number; readonly kind: 'error' | 'odd' }[]
  /** How long a connection may last while runs are active. */
  readonly hour: number
  /** How many events up to the position are told again at each resumption. */
  readonly repeats: number
  /** When all cursors become invalid, and how many of the oldest events are gone then. */
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

  constructor(id: string, script: GroupScript, scheduler: SchedulerLike, ledger: Ledger) {
    this.id = id
    this.script = script
    this.#scheduler = scheduler
    this.events = new EventLog('events', id, script.include_input, ledger)
    this.runs = new EventLog('runs', id, script.include_input, ledger)
    this.#tellStatus()
    for (const [n, run] of script.runs.entries()) {
      scheduler.schedule(() => this.#end(`${id}-r${n}`, run), run.ends)
    }
    for (const [n, { at, kind }] of script.remarks.entries()) {
      scheduler.schedule(() => this.#remark(`${id}-${n}`, kind), at)
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
        log.tell(connection, cursor === null ? start : start - this.script.repeats, wanted)
        if (!this.#active) return log.hangUp(connection)
        this.#scheduler.schedule(() => log.hangUp(connection), this.script.hour)
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
    const happening = {
      type: 'task_run.state',
      run: endedRun(run_id, script, script.explained),
      input: { input: `look into ${run_id}` },
      ...(script.status === 'completed' && { output: outputOf(run_id) }),
    }
    this.runs.append(happening)
    this.events.append(happening, false)
    this.#tellStatus()
    if (!this.#active) for (const log of this.#logs) log.hangUpAll()
  }

  #tellStatus(): void {
    this.events.append({ type: 'task_group_status', status: this.#status() })
  }

  #remark(ref_id: string, kind: 'error' | 'odd'): void {
    // Nobody would come back for it.
    if (!this.#active) return
    const happening =
      kind === 'error'
        ? { type: 'error', error: { ref_id, message: 'stumbled' } }
        : { type: 'task_group.dreamt', of: ref_id }
    for (const log of this.#logs) log.append(happening)
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
