import { monitorEvent } from 'rivulet'
import type { SchedulerLike } from 'rxjs'
import { keyOf } from './ledger.ts'
import type { Fact, Ledger } from './ledger.ts'
import { TIME } from './run.ts'
import type { Reply } from './wire.ts'

/** One execution of a monitor. Times are in ms. */
export interface ExecutionScript {
  readonly at: number
  /** From its webhook to its first event in the list. */
  readonly lag: number
  /** From one of its events in the list to the next. */
  readonly spread: number
  /** How many changes it found, or its other outcomes; `odd` is one that the client does not know. */
  readonly finds: number | 'completion' | 'error' | 'odd'
}

/** What one monitor does. Times are in ms. */
export interface MonitorScript {
  readonly executions: readonly ExecutionScript[]
  /** Whether a cursor stands for an event, or for how many are newer. */
  readonly cursors: 'event' | 'offset'
  readonly limit: number
  readonly include_completions: boolean
  /** When the oldest events are gone, and how many. */
  readonly forgets: readonly { readonly at: number; readonly events: number }[]
}

/** An entry of the list. */
interface Entry {
  readonly wire: Readonly<Record<string, unknown>>
  readonly fact: Fact
}

const START = Date.parse(TIME)

/** A monitor with its list of events. */
export class ScriptedMonitor {
  readonly id: string
  readonly script: MonitorScript
  readonly #ledger: Ledger
  readonly #entries: Entry[] = []
  #forgotten = 0

  constructor(id: string, script: MonitorScript, scheduler: SchedulerLike, ledger: Ledger) {
    this.id = id
    this.script = script
    this.#ledger = ledger
    for (const [n, execution] of script.executions.entries()) {
      const { at, lag, spread } = execution
      for (const [k, wire] of this.wires(n).entries()) {
        scheduler.schedule(() => this.#list(wire), at + lag + k * spread)
      }
    }
    for (const { at, events } of script.forgets) scheduler.schedule(() => this.#forget(events), at)
  }

  /** Its name in a checkpoint. */
  get stream(): string {
    return `monitors/${this.id}`
  }

  get source(): string {
    return `/v1/monitors/${this.id}`
  }

  /** What an execution comes to, oldest first. */
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

  /** Where a listed event stands, from the oldest on. */
  indexOf(key: string): number {
    return this.#entries.findIndex(({ fact }) => fact.keys.has(key))
  }

  /** Id of the newest event that the client asks for. */
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

  /** Where the page behind the cursor ends; undefined where the cursor is not known any more. */
  #endOf(cursor: string, visible: readonly Entry[]): number | undefined {
    const place = Number(cursor.split(' ')[1])
    if (this.script.cursors === 'offset') return Math.max(0, visible.length - place)
    const entry = this.#entries[place]
    const end = entry === undefined ? -1 : visible.indexOf(entry)
    return end === -1 ? undefined : end
  }

  #visible(completions: boolean): readonly Entry[] {
    return this.#entries
      .slice(this.#forgotten)
      .filter(({ wire }) => completions || wire['event_type'] !== 'completion')
  }

  #list(wire: Readonly<Record<string, unknown>>): void {
    const fact = this.#ledger.note(keyOf(monitorEvent(this.id, wire, 'poll')), this.source)
    this.#entries.push({ wire, fact })
    if (wire['event_type'] === 'completion' && !this.script.include_completions) return
    fact.places.set(this.stream, 0)
  }

  #forget(events: number): void {
    const until = Math.min(this.#forgotten + events, this.#entries.length)
    for (const { fact } of this.#entries.slice(this.#forgotten, until)) this.#ledger.forget(fact, this.stream)
    this.#forgotten = until
  }
}
