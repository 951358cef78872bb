import type { SchedulerLike } from 'rxjs'
import { monitorEvent, runEvent } from 'rivulet'
import type { ResearchEvent, TaskRun } from 'rivulet'
import { completeness } from '../../../src/protocol/event.ts'
import { ScriptedGroup } from './group.ts'
import type { GroupScript } from './group.ts'
import { keyOf, ExpectedEvents } from './expected-events.ts'
import { ScriptedMonitor } from './monitor.ts'
import type { MonitorScript } from './monitor.ts'
import { WebhookSender } from './webhook-sender.ts'
import type { PostScript } from './webhook-sender.ts'
import { endedRun, outputOf, TIME } from './run.ts'
import type { RunScript } from './run.ts'
import { ScriptedWire } from './wire.ts'
import type { ServiceRequest, Reply, WireScript } from './wire.ts'

/** The script of a service. */
export interface ServiceScript {
  readonly groups: readonly GroupScript[]
  readonly monitors: readonly MonitorScript[]
  /** Runs without a watched group, which only webhooks report. */
  readonly singles: readonly RunScript[]
  /** For each webhook in turn. */
  readonly posts: readonly PostScript[]
  /** Whether the service returns a run's result. */
  readonly results: boolean
  /** Whether the service returns a group's status. */
  readonly statuses: boolean
  readonly wire: WireScript
}

const NOT_FOUND = { status: 404, body: { type: 'error', error: { ref_id: 'r', message: 'not found' } } }

/** A research service in virtual time that follows its script. */
export class ScriptedService {
  readonly script: ServiceScript
  readonly expectedEvents = new ExpectedEvents()
  readonly sender: WebhookSender
  readonly wire: ScriptedWire
  readonly groups: readonly ScriptedGroup[]
  readonly monitors: readonly ScriptedMonitor[]
  readonly #ended = new Map<string, RunScript>()

  constructor(script: ServiceScript, scheduler: SchedulerLike) {
    this.script = script
    this.sender = new WebhookSender(scheduler)
    this.wire = new ScriptedWire(scheduler, script.wire, (request) => this.#serve(request))
    this.groups = script.groups.map(
      (group, n) => new ScriptedGroup(`g${n}`, group, scheduler, this.expectedEvents),
    )
    this.monitors = script.monitors.map(
      (monitor, n) => new ScriptedMonitor(`m${n}`, monitor, scheduler, this.expectedEvents),
    )
    const posts = script.posts.values()
    const post = (at: number, send: (how: PostScript) => void) => {
      const { value: how } = posts.next()
      if (how !== undefined) scheduler.schedule(() => send(how), at)
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

  /** Whether the source may have a gap. */
  forgets(source: string): boolean {
    const group = this.groups.find(({ id }) => source === `/v1/tasks/groups/${id}`)
    const monitor = this.monitors.find((one) => source === one.source)
    return (group ?? monitor)?.script.forgets.length !== 0
  }

  /** Whether the list of this webhook's execution may have been empty when it was read. */
  mayBeEmpty(payload: unknown): boolean {
    return this.monitors.some((monitor) =>
      monitor.script.executions.some(
        ({ lag }, n) =>
          (lag > 0 || monitor.script.forgets.length > 0) &&
          JSON.stringify(payload).includes(`"${monitor.wires(n)[0]?.['event_group_id']}"`),
      ),
    )
  }

  /** Whether the service returns the output of the run. */
  #hasOutput({ status }: TaskRun): boolean {
    return status === 'completed' && this.script.results
  }

  #serve({ path, query }: ServiceRequest): Reply {
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
    const output = this.#hasOutput(data) ? { output: outputOf(run_id) } : {}
    const event = runEvent({ run: data }, 'webhook')
    this.#post(how, payload, event, runEvent({ run: data, ...output }, 'webhook'))
  }

  #postExecution(monitor: ScriptedMonitor, n: number, how: PostScript): void {
    const [wire] = monitor.wires(n)
    if (wire === undefined) return
    const timestamp = TIME
    const { event_type, event_group_id } = wire
    const data = { monitor_id: monitor.id, event: event_type === 'event_stream' ? { event_group_id } : wire }
    if (event_type === 'event_stream') {
      // Its events are in the list, so they are checked there.
      this.sender.post(how, { type: 'monitor.event.detected', timestamp, data }, () => {})
    } else if (event_type === 'completion' || event_type === 'error') {
      const type = `monitor.execution.${event_type === 'error' ? 'failed' : 'completed'}`
      const event = monitorEvent(monitor.id, wire, 'webhook')
      this.#post(how, { type, timestamp, data }, event, event)
    }
  }

  /** @param fetched The event with what the client fetches for its webhook. */
  #post(how: PostScript, payload: object, event: ResearchEvent, fetched: ResearchEvent): void {
    // It may be recorded before its sender has the answer.
    const expected = this.expectedEvents.add(keyOf(event), event.source)
    this.sender.post(how, payload, () => {
      expected.sent = (expected.sent ?? 0) | completeness(event)
      expected.accepted = (expected.accepted ?? 0) | completeness(fetched)
    })
  }
}
