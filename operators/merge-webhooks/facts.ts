import { ReplaySubject } from 'rxjs'
import type { Observable } from 'rxjs'
import { isAtLeastAsComplete, completeness } from '../../src/protocol/event.ts'
import type { ResearchEvent } from '../../src/protocol/event.ts'
import type { RecentIds } from '../dedupe/recent-ids.ts'

/** An event that is held back, because something better may come in its place. */
export interface Held {
  readonly event: ResearchEvent
  /** Emits once, to late subscribers too, when a copy that says as much is told instead. */
  readonly settled: Observable<void>
}

interface HeldCopy extends Held {
  readonly settled: ReplaySubject<void>
}

/** What hears of decisions. */
export interface FactsListeners {
  /** Hears of every copy that is not told. */
  readonly onDuplicate?: ((event: ResearchEvent) => void) | undefined
  /** Hears of those of them whose fact was told before. */
  readonly onDrop?: ((event: ResearchEvent) => void) | undefined
  /** Hears how many are held, whenever that changes. */
  readonly onHeld?: ((count: number) => void) | undefined
}

/** What was told, and what is held back: decides over each copy of each fact, whatever brought it. */
export class Facts {
  readonly #told: RecentIds
  readonly #held = new Map<string, HeldCopy>()
  readonly #listeners: FactsListeners

  constructor(told: RecentIds, listeners: FactsListeners = {}) {
    this.#told = told
    this.#listeners = listeners
  }

  /** The events that are held, in the order of their coming. */
  get held(): readonly ResearchEvent[] {
    return Array.from(this.#held.values(), ({ event }) => event)
  }

  /** Whether a copy of the event was told. */
  isTold(event: ResearchEvent): boolean {
    return this.#told.has(event)
  }

  /** Whether the event is to be told: nothing was told of it, or less than this copy says. */
  admit(event: ResearchEvent): boolean {
    if (this.#told.admit(event)) return true
    this.#listeners.onDuplicate?.(event)
    this.#listeners.onDrop?.(event)
    return false
  }

  /** Drops the held copy of an event that is about to be told, unless that copy says more. */
  settle(event: ResearchEvent): void {
    // Most of the time nothing is held, and then no key is made.
    if (this.#held.size === 0) return
    const copy = this.#held.get(identityOf(event))
    if (copy !== undefined && isAtLeastAsComplete(completeness(event), completeness(copy.event)))
      this.#drop(copy)
  }

  /** Holds the event back; undefined when a copy that says as much is held already. */
  hold(event: ResearchEvent): Held | undefined {
    const key = identityOf(event)
    const copy = this.#held.get(key)
    if (copy !== undefined && isAtLeastAsComplete(completeness(copy.event), completeness(event))) {
      this.#listeners.onDuplicate?.(event)
      return undefined
    }
    if (copy !== undefined) this.#drop(copy)
    const held = { event, settled: new ReplaySubject<void>(1) }
    this.#held.set(key, held)
    this.#listeners.onHeld?.(this.#held.size)
    return held
  }

  /** Holds the event no more, since its own turn has come. */
  release(held: Held): void {
    this.#held.delete(identityOf(held.event))
    this.#listeners.onHeld?.(this.#held.size)
  }

  #drop(held: HeldCopy): void {
    this.release(held)
    held.settled.next()
    this.#listeners.onDuplicate?.(held.event)
  }
}

function identityOf({ source, id }: ResearchEvent): string {
  return `${source}\n${id}`
}
