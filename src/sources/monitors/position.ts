import { Queue } from '../../../operators/queue.ts'
import { isObject } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Place } from '../../state/progress-log.ts'

/** Newest ids that are remembered to recognise where the last poll ended; the last one alone may be pruned away. */
const REMEMBERED = 1_000
/** As many of them outlive a restart. */
const KEPT = 20

/** What of a monitor's events was given out, kept over its polls and, as text, over restarts. */
export class MonitorPosition {
  /** Id of the newest event that was given out. */
  mark: string | undefined
  /** When that was, where it is known. */
  time: string | null = null
  readonly #recent = new Set<string>()
  /** The same, the oldest first. */
  readonly #order = new Queue<string>()
  /** The newest of them, which go into the text. Never changed in place, since places have it. */
  #kept: readonly string[] = []

  /** @param after The event to begin behind. */
  constructor(after: string | undefined) {
    this.mark = after
    if (after !== undefined) this.#remember(after)
  }

  /** The position that {@link toString} wrote before; undefined for a text that it cannot have written. */
  static parse(text: string): MonitorPosition | undefined {
    const parsed = parseJson(text)
    if (!isObject(parsed)) return undefined
    const { mark, time, before } = parsed
    if (typeof mark !== 'string' || !(typeof time === 'string' || time === null)) return undefined
    if (!isTexts(before)) return undefined
    const position = new MonitorPosition(undefined)
    position.mark = mark
    position.time = time
    for (const id of [...before, mark]) position.#remember(id)
    return position
  }

  /** The position behind the last event. Its text is for {@link parse}. */
  get place(): Place {
    return new MonitorPlace(this.mark, this.time, this.#kept)
  }

  /** Whether the event was given out, as far as that is remembered. */
  has(id: string): boolean {
    return this.#recent.has(id)
  }

  /** The mark is gone for good: its loss has been told, and is not told again. */
  forget(): void {
    this.mark = undefined
  }

  /** The event is about to be told. */
  advance(event: ResearchEvent): void {
    this.mark = event.id
    this.time = whenOf(event)
    this.#remember(event.id)
  }

  #remember(id: string): void {
    if (this.#recent.has(id)) return
    this.#recent.add(id)
    this.#order.push(id)
    this.#kept = [...this.#kept.slice(1 - KEPT), id]
    const oldest = this.#order.size > REMEMBERED ? this.#order.shift() : undefined
    if (oldest !== undefined) this.#recent.delete(oldest)
  }
}

/** What a {@link MonitorPosition} is at one moment. */
class MonitorPlace implements Place {
  readonly #mark: string | undefined
  readonly #time: string | null
  readonly #before: readonly string[]

  constructor(mark: string | undefined, time: string | null, before: readonly string[]) {
    this.#mark = mark
    this.#time = time
    this.#before = before
  }

  text(): string {
    // The mark alone may be one that the next start does not ask for: a completion.
    return JSON.stringify({ mark: this.#mark, time: this.#time, before: this.#before })
  }
}

/** When an event was: a change has a date, the rest a time. */
export function whenOf(event: ResearchEvent | undefined): string | null {
  if (event?.type === 'monitor.event_stream' || event?.type === 'monitor.snapshot')
    return event.data.event_date
  return event?.time ?? null
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
