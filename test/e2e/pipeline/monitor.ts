import { monitorEvent } from 'rivulet'
import type { SchedulerLike } from 'rxjs'
import { keyOf } from './expected-events.ts'
import type { ExpectedEvent, ExpectedEvents } from './expected-events.ts'
import { TIME } from './run.ts'
import type { Reply } from './wire.ts'

/** One execution of a monitor. Times are in ms. */
export interface ExecutionScript {
  readonly at: number
  /** The delay from its webhook to its first event in the list. */
  readonly lag: number
  /** The delay between its events in the list. */
  readonly spread: number
  /** The number of changes, or another outcome; `odd` is one that the client does not know. */
  readonly finds: number | 'completion' | 'error' | 'odd'
}

/** The script of one monitor. Times are in ms. */
export interface MonitorScript {
  readonly executions: readonly ExecutionScript[]
  /** Whether a cursor is an event, or the number of newer events. */
  readonly cursors: 'event' | 'offset'
  readonly limit: number
  readonly include_completions: boolean
  /** When the oldest events are dropped, and how many. */
  readonly forgets: readonly { readonly at: number; readonly events: number }[]
}

/** An entry of the list. */
interface Entry {
  readonly wire: Readonly<Record<string, unknown>>
  readonly expected: ExpectedEvent
}

const START = Date.parse(TIME)

/** A monitor with its list of events. */
export class ScriptedMonitor {
  readonly id: string
  readonly script: MonitorScript
  readonly #expectedEvents: ExpectedEvents
  readonly #entries: Entry[] = []
  #forgotten = 0

  constructor(id: string, script: MonitorScript, scheduler: SchedulerLike, expectedEvents: ExpectedEvents) {
    this.id = id
    this.script = script
    this.#expectedEvents = expectedEvents
    for (const [n, execution] of script.executions.entries()) {
      const { at, lag, spread } = execution
      for (const [k, wire] of this.wires(n).entries()) {
        scheduler.schedule(() => this.#list(wire), at + lag + k * spread)
      }
    }
    for (const { at, events } of script.forgets) scheduler.schedule(() => this.#forget(events), at)
  }

  /** Its name in a log. */
  get stream(): string {
    return `monitors/${this.id}`
  }

  get source(): string {
    return `/v1/monitors/${this.id}`
  }

  /** The events of an execution, oldest first. */
  wires(n: number): readonly Readonly<Record<string, unknown>>[] {
    const execution = this.script.executions[n]
    if (execution === undefined) return []
    const { finds, at } = execution
    const timestamp = new Date(START + at).toISOString().replace('Z', '+00:00')
    if (finds === 'completion') return [{ event_type: 'completion', timestamp }]
    if (finds === 'error') return [{ event_type: 'error', error_message: 'no credit', timestamp }]
    if (finds === 'odd') return [{ event_type: 'dreamt', of: `${this.id}-x${n}` }]
    return Array.from({ length: finds }, (_, k) => ({
      event_type: 'event_stream',
      event_id: `${this.id}-x${n}-e${k}`,
      event_group_id: `${this.id}-x${n}`,
      event_date: null,
      output: { type: 'text', content: 'aé€😀', basis: [] },
    }))
  }

  /** The index of a listed event, from the oldest. */
  indexOf(key: string): number {
    return this.#entries.findIndex(({ expected }) => expected.keys.has(key))
  }

  /** The id of the newest event that the client requests. */
  get newest(): string | undefined {
    const wire = this.#visible(this.script.include_completions).at(-1)?.wire
    return wire && monitorEvent(this.id, wire, 'poll').id
  }

  /** Answers `GET …/monitors/{id}/events`. */
  list(query: URLSearchParams): Reply {
    const group = query.get('event_group_id')
    const visible = this.#visible(query.get('include_completions') === 'true')
    if (group !== null) {
      return this.#page(visible.filter(({ wire }) => wire['event_group_id'] === group))
    }
    const limit = Number(query.get('limit') ?? 20)
    const cursor = query.get('cursor')
    const end = cursor === null ? visible.length : this.#endOf(cursor, visible)
    if (end === undefined) {
      return { status: 422, body: { type: 'error', error: { ref_id: 'r', message: 'invalid cursor' } } }
    }
    const start = Math.max(0, end - limit)
    const page = visible.slice(start, end)
    if (start === 0) return this.#page(page)
    const next =
      this.script.cursors === 'event' ? page[0] && this.#entries.indexOf(page[0]) : visible.length - start
    return this.#page(page, `${this.script.cursors} ${next}`)
  }

  #page(entries: readonly Entry[], next_cursor?: string): Reply {
    const events = entries.map(({ wire }) => wire).toReversed()
    return { status: 200, body: { events, ...(next_cursor !== undefined && { next_cursor }) } }
  }

  /** The end of the page after the cursor; undefined for an unknown cursor. */
  #endOf(cursor: string, visible: readonly Entry[]): number | undefined {
    const position = Number(cursor.split(' ')[1])
    if (this.script.cursors === 'offset') return Math.max(0, visible.length - position)
    const entry = this.#entries[position]
    const end = entry === undefined ? -1 : visible.indexOf(entry)
    return end === -1 ? undefined : end
  }

  #visible(completions: boolean): readonly Entry[] {
    return this.#entries
      .slice(this.#forgotten)
      .filter(({ wire }) => completions || wire['event_type'] !== 'completion')
  }

  #list(wire: Readonly<Record<string, unknown>>): void {
    const expected = this.#expectedEvents.add(keyOf(monitorEvent(this.id, wire, 'poll')), this.source)
    this.#entries.push({ wire, expected })
    if (wire['event_type'] === 'completion' && !this.script.include_completions) return
    expected.streams.set(this.stream, 0)
  }

  #forget(events: number): void {
    const until = Math.min(this.#forgotten + events, this.#entries.length)
    for (const { expected } of this.#entries.slice(this.#forgotten, until))
      this.#expectedEvents.forget(expected, this.stream)
    this.#forgotten = until
  }
}
