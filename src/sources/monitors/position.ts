import { Queue } from '../../../operators/queue.ts'
import { isObject, parseJson } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'

/** How many of the newest ids are remembered. More than one, since the service may have deleted the last one. */
const MAX_REMEMBERED = 1_000
/** How many of them are saved across restarts. */
const SAVED = 20

/** The position in a monitor's events, kept across polls and, as text, across restarts. */
export class MonitorPosition {
  /** Id of the last event that was emitted. */
  lastId: string | undefined
  /** Time of that event; null if unknown. */
  time: string | null = null
  /** Whether the events that existed before are still being walked through for the first time. */
  isFirstWalk = true
  readonly #recent = new Set<string>()
  /** The same ids, oldest first. */
  readonly #order = new Queue<string>()
  /** The newest ids, for the text. Never modified in place, since snapshots share it. */
  #saved: readonly string[] = []

  /** @param after Id of the event to start after. */
  constructor(after: string | undefined) {
    this.lastId = after
    if (after !== undefined) this.#remember(after)
  }

  /** Parses the text of a {@link snapshot}; undefined if the text is not valid. */
  static parse(text: string): MonitorPosition | undefined {
    const parsed = parseJson(text)
    if (!isObject(parsed)) return undefined
    const { mark, time, before, first = false } = parsed
    if (!isStringOrNull(mark) || !isStringOrNull(time)) return undefined
    if (!isStringArray(before) || typeof first !== 'boolean') return undefined
    const position = new MonitorPosition(undefined)
    position.lastId = mark ?? undefined
    position.time = time
    position.isFirstWalk = first
    for (const id of before) position.#remember(id)
    if (mark !== null) position.#remember(mark)
    return position
  }

  /** An immutable copy of the position. {@link parse} reads its text. */
  get snapshot(): StreamPosition {
    return new MonitorPositionSnapshot(this.lastId, this.time, this.#saved, this.isFirstWalk)
  }

  /** Whether the event is remembered as emitted. */
  has(id: string): boolean {
    return this.#recent.has(id)
  }

  /** Called after a gap was reported, so that it is not reported again. */
  forgetLast(): void {
    this.lastId = undefined
  }

  /** Called before each event is emitted. */
  advance(event: ResearchEvent): void {
    this.lastId = event.id
    this.time = timeOf(event)
    this.#remember(event.id)
  }

  #remember(id: string): void {
    if (this.#recent.has(id)) return
    this.#recent.add(id)
    this.#order.push(id)
    this.#saved = [...this.#saved.slice(1 - SAVED), id]
    const oldest = this.#order.size > MAX_REMEMBERED ? this.#order.shift() : undefined
    if (oldest !== undefined) this.#recent.delete(oldest)
  }
}

/** A {@link MonitorPosition} at one moment. */
class MonitorPositionSnapshot implements StreamPosition {
  readonly #lastId: string | undefined
  readonly #time: string | null
  readonly #before: readonly string[]
  readonly #isFirstWalk: boolean

  constructor(
    lastId: string | undefined,
    time: string | null,
    before: readonly string[],
    isFirstWalk: boolean,
  ) {
    this.#lastId = lastId
    this.#time = time
    this.#before = before
    this.#isFirstWalk = isFirstWalk
  }

  text(): string {
    // Not only the last id: a completion is not listed without `include_completions`.
    return JSON.stringify({
      mark: this.#lastId ?? null,
      time: this.#time,
      before: this.#before,
      first: this.#isFirstWalk || undefined,
    })
  }
}

/** When an event occurred: a change has a date, the others a time. */
export function timeOf(event: ResearchEvent | undefined): string | null {
  if (event?.type === 'monitor.event_stream' || event?.type === 'monitor.snapshot')
    return event.data.event_date
  return event?.time ?? null
}

function isStringOrNull(value: unknown): value is string | null {
  return typeof value === 'string' || value === null
}

function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
