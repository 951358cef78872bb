import type { SchedulerLike } from 'rxjs'
import { monitorEvent, runEvent } from 'rivulet'
import type { ResearchEvent, TaskRun } from 'rivulet'
import { completeness } from '../../../src/protocol/event.ts'
import { ScriptedGroup } from './group.ts'
import type { GroupScript } from './group.ts'
import { keyOf, Ledger } from './ledger.ts'
import { ScriptedMonitor } from './monitor.ts'
import type { MonitorScript } from './monitor.ts'
import { Postman } from './postman.ts'
import type { PostScript } from './postman.ts'
import { endedRun, outputOf, TIME } from './run.ts'
import type { RunScript } from './run.ts'
import { ScriptedWire } from './wire.ts'
import type { Asked, Reply, WireScript } from './wire.ts'

/** What a service does. */
export interface ServiceScript {
  readonly groups: readonly GroupScript[]
  readonly monitors: readonly MonitorScript[]
  /** Runs that belong to no group that is watched: only webhooks tell of them. */
  readonly singles: readonly RunScript[]
  /** For each thing that a webhook tells, in turn. */
  readonly posts: readonly PostScript[]
  /** Whether a run's result can be asked for. */
  readonly results: boolean
  /** Whether a group's status can be asked for. */
  readonly statuses: boolean
  readonly wire: WireScript
}

const NOT_FOUND = { status: 404, body: { type: 'error', error: { ref_id: 'r', message: 'not found' } } }

/** A research service in virtual time, whose every move is in its script. */
export class ScriptedService {
  readonly script: ServiceScript
  readonly ledger = new Ledger()
  readonly postman: Postman
  readonly wire: ScriptedWire
  readonly groups: readonly ScriptedGroup[]
  readonly monitors: readonly ScriptedMonitor[]
  readonly #ended = new Map<string, RunScript>()

  constructor(script: ServiceScript, scheduler: SchedulerLike) {
    this.script = script
    this.postman = new Postman(scheduler)
    this.wire = new ScriptedWire(scheduler, script.wire, (asked) => this.#serve(asked))
    this.groups = script.groups.map((group, n) => new ScriptedGroup(`g${n}`, group, scheduler, this.ledger))
    this.monitors = script.monitors.map(
      (monitor, n) => new ScriptedMonitor(`m${n}`, monitor, scheduler, this.ledger),
    )
    const posts = script.posts.values()
    const post = (at: number, tell: (how: PostScript) => void) => {
      const { value: how } = posts.next()
      if (how !== undefined) scheduler.schedule(() => tell(how), at)
    }
    const runs = [
      ...script.groups.flatMap(({ runs: all }, g) => all.map((run, n) => [`g${g}-r${n}`, run] as const)),
      ...script.singles.map((run, n) => [`s-r${n}`, run] as const),
    ]
    for (const [run_id, run] of runs) {
      scheduler.schedule(() => this.#ended.set(run_id, run), run.ends)
      post(run.ends, (how) => this.#postRun(run_id, run, how))
    }
    for (const monitor of this.monitors) {
      for (const [n, { at }] of monitor.script.executions.entries()) {
        post(at, (how) => this.#postExecution(monitor, n, how))
      }
    }
  }

  /** Whether there can be a gap of this source. */
  forgets(source: string): boolean {
    const group = this.groups.find(({ id }) => source === `/v1/tasks/groups/${id}`)
    const monitor = this.monitors.find((one) => source === one.source)
    return (group ?? monitor)?.script.forgets.length !== 0
  }

  /** Whether the list of the execution that this webhook is about may have been empty when it was asked for. */
  mayBeEmpty(payload: unknown): boolean {
    return this.monitors.some((monitor) =>
      monitor.script.executions.some(
        ({ lag }, n) =>
          (lag > 0 || monitor.script.forgets.length > 0) &&
          JSON.stringify(payload).includes(`"${monitor.wires(n)[0]?.['event_group_id']}"`),
      ),
    )
  }

  /** Whether the output of the run can be had. */
  hasOutput({ status }: TaskRun): boolean {
    return status === 'completed' && this.script.results
  }

  #serve({ path, query }: Asked): Reply {
    const [, area, kind, id = '', stream] = path.slice(1).split('/')
    if (area === 'monitors') return this.monitors.find((one) => one.id === kind)?.list(query) ?? NOT_FOUND
    if (kind === 'runs') return this.#result(id)
    const group = this.groups.find((one) => one.id === id)
    if (group === undefined) return NOT_FOUND
    if (stream === 'runs') return group.stream(group.runs, query)
    if (stream === 'events') return group.stream(group.events, query)
    return this.script.statuses ? group.show() : NOT_FOUND
  }

  #result(run_id: string): Reply {
    const run = this.#ended.get(run_id)
    if (run === undefined || !this.script.results) return NOT_FOUND
    const output = run.status === 'completed' ? outputOf(run_id) : undefined
    return { status: 200, body: { run: endedRun(run_id, run, true), output } }
  }

  #postRun(run_id: string, script: RunScript, how: PostScript): void {
    const data = endedRun(run_id, script, true)
    const payload = { type: 'task_run.status', timestamp: TIME, data }
    this.postman.post(how, payload, () => this.#accepted(runEvent({ run: data }, 'webhook')))
  }

  #postExecution(monitor: ScriptedMonitor, n: number, how: PostScript): void {
    const [wire] = monitor.wires(n)
    if (wire === undefined) return
    const timestamp = TIME
    const { event_type, event_group_id } = wire
    const data = { monitor_id: monitor.id, event: event_type === 'event_stream' ? { event_group_id } : wire }
    if (event_type === 'event_stream') {
      // Its events are told by the list, so they stand and fall with that.
      this.postman.post(how, { type: 'monitor.event.detected', timestamp, data }, () => {})
    } else if (event_type === 'completion' || event_type === 'error') {
      const type = `monitor.execution.${event_type === 'error' ? 'failed' : 'completed'}`
      const event = monitorEvent(monitor.id, wire, 'webhook')
      this.postman.post(how, { type, timestamp, data }, () => this.#accepted(event))
    }
  }

  /** The webhook of the event was answered with 2xx. */
  #accepted(event: ResearchEvent): void {
    const fact = this.ledger.note(keyOf(event), event.source)
    fact.accepted = (fact.accepted ?? 0) | completeness(event)
  }
}
