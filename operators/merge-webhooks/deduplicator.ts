import { ReplaySubject } from 'rxjs'
import type { Observable } from 'rxjs'
import { completeness, isAtLeastAsComplete } from '../../src/protocol/event.ts'
import type { ResearchEvent } from '../../src/protocol/event.ts'
import type { RecentIds } from '../dedupe/recent-ids.ts'

/** An event that is delayed, because a more complete duplicate may replace it. */
export interface HeldEvent {
  readonly event: ResearchEvent
  /** Emits once, to late subscribers too, when a duplicate that is at least as complete replaces the event. */
  readonly superseded: Observable<void>
}

interface Entry extends HeldEvent {
  readonly superseded: ReplaySubject<void>
}

/** Callbacks of a {@link Deduplicator}. */
export interface DeduplicatorCallbacks {
  /** Called with every event that is dropped. */
  readonly onDuplicate?: ((event: ResearchEvent) => void) | undefined
  /** Called with the number of held events whenever it changes. */
  readonly onHeld?: ((count: number) => void) | undefined
}

/** Drops duplicates among the events of all transports, and holds partial events until they are released or superseded. */
export class Deduplicator {
  readonly #emitted: RecentIds
  readonly #held = new Map<string, Entry>()
  readonly #callbacks: DeduplicatorCallbacks

  constructor(emitted: RecentIds, callbacks: DeduplicatorCallbacks = {}) {
    this.#emitted = emitted
    this.#callbacks = callbacks
  }

  /** The held events, in the order of arrival. */
  get held(): readonly ResearchEvent[] {
    return Array.from(this.#held.values(), ({ event }) => event)
  }

  /** Whether the event or a duplicate of it was emitted. */
  wasEmitted(event: ResearchEvent): boolean {
    return this.#emitted.has(event)
  }

  /** Whether to emit the event: true if it is new or more complete than its emitted duplicates. */
  admit(event: ResearchEvent): boolean {
    if (this.#emitted.admit(event)) return true
    this.#callbacks.onDuplicate?.(event)
    return false
  }

  /** Drops the held duplicate of an event that is about to be emitted, unless the duplicate is more complete. */
  supersede(event: ResearchEvent): void {
    // Usually nothing is held; then no key is built.
    if (this.#held.size === 0) return
    const held = this.#held.get(identityOf(event))
    if (held !== undefined && isAtLeastAsComplete(completeness(event), completeness(held.event)))
      this.#drop(held)
  }

  /** Holds the event; undefined when a duplicate that is at least as complete is held already. */
  hold(event: ResearchEvent): HeldEvent | undefined {
    const key = identityOf(event)
    const duplicate = this.#held.get(key)
    if (duplicate !== undefined && isAtLeastAsComplete(completeness(duplicate.event), completeness(event))) {
      this.#callbacks.onDuplicate?.(event)
      return undefined
    }
    if (duplicate !== undefined) this.#drop(duplicate)
    const held = { event, superseded: new ReplaySubject<void>(1) }
    this.#held.set(key, held)
    this.#callbacks.onHeld?.(this.#held.size)
    return held
  }

  /** Stops holding the event, which is about to be emitted. */
  release(held: HeldEvent): void {
    this.#held.delete(identityOf(held.event))
    this.#callbacks.onHeld?.(this.#held.size)
  }

  #drop(held: Entry): void {
    this.release(held)
    held.superseded.next()
    this.#callbacks.onDuplicate?.(held.event)
  }
}

function identityOf({ source, id }: ResearchEvent): string {
  return `${source}\n${id}`
}
