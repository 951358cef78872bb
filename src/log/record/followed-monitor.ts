import { defer, of, ReplaySubject, Subject } from 'rxjs'
import type { Observable } from 'rxjs'
import { executionOf } from '../../protocol/event.ts'
import { isText } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { RecentKeys } from './recent-keys.ts'

/** How many of its latest events a monitor remembers, for webhooks that arrive after them. */
const MAX_REMEMBERED = 1_000

interface Expected {
  /** Whether a poll has begun since the webhook arrived. */
  isPolled: boolean
  readonly outcome: ReplaySubject<boolean>
}

/**
 * A monitor that this recording polls, and what webhooks have announced of it. A webhook wakes the poll and waits for it, so that
 * the monitor's events are recorded in their order.
 */
export class FollowedMonitor {
  /** Emits when a webhook arrives. */
  readonly wake = new Subject<void>()
  readonly #recorded = new RecentKeys(MAX_REMEMBERED)
  readonly #expected = new Map<string, Expected>()
  #hasEnded = false

  /**
   * Wakes the poll. Emits true once the monitor's own stream has brought the event or the group; false if a whole poll has not brought it,
   * or the monitor is no longer polled.
   */
  brings(key: string): Observable<boolean> {
    return defer(() => {
      if (this.#recorded.has(key)) return of(true)
      if (this.#hasEnded) return of(false)
      let expected = this.#expected.get(key)
      if (expected === undefined) {
        expected = { isPolled: false, outcome: new ReplaySubject(1) }
        this.#expected.set(key, expected)
      }
      this.wake.next()
      return expected.outcome
    })
  }

  /** Called after an event of the monitor's own stream was passed to the recorder. */
  saw(event: ResearchEvent): void {
    for (const key of [eventKey(event.id), groupKeyOf(event)]) {
      if (key === undefined) continue
      this.#recorded.add(key)
      this.#settle(key, true)
    }
  }

  /** A poll begins. */
  polling(): void {
    for (const expected of this.#expected.values()) expected.isPolled = true
  }

  /** A poll has brought all that the service lists. */
  caughtUp(): void {
    const polled = Array.from(this.#expected).filter(([, { isPolled }]) => isPolled)
    // A key that is settled may be expected again at once.
    for (const [key] of polled) this.#settle(key, false)
  }

  /** The monitor is no longer polled. */
  end(): void {
    this.#hasEnded = true
    for (const key of this.#expected.keys()) this.#settle(key, false)
  }

  #settle(key: string, isRecorded: boolean): void {
    const outcome = this.#expected.get(key)?.outcome
    this.#expected.delete(key)
    outcome?.next(isRecorded)
    outcome?.complete()
  }
}

/** The key of an event. */
export function eventKey(id: string): string {
  return `event ${id}`
}

/** The key of the events that one execution has detected (§2.2). */
export function groupKey(eventGroupId: string): string {
  return `group ${eventGroupId}`
}

function groupKeyOf({ data }: ResearchEvent): string | undefined {
  const eventGroupId = executionOf(data)
  return isText(eventGroupId) ? groupKey(eventGroupId) : undefined
}
