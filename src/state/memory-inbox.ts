import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkInteger } from '../protocol/check.ts'
import { WEBHOOK_HORIZON } from '../protocol/limits.ts'
import type { InboxOutcome, WebhookDelivery } from '../protocol/webhook.ts'
import type { Inbox } from './inbox.ts'

/** Settings of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /** Deliveries that may wait for a subscriber; the inbox is full beyond that. Default 1,000. */
  readonly maxPending?: number
  /**
   * Ids kept for the recognition of duplicates, at the most. Beyond that the oldest are forgotten, up to half of them
   * at once. At least twice `maxPending`. Default 100,000.
   */
  readonly maxIds?: number
  /** How long an id is known at the least, in ms. Default 48 hours, for as long as the service retries (§6.1). */
  readonly remember?: number
  /** Unix time in ms. Default `Date.now`. */
  readonly clock?: () => number
}

/**
 * An inbox in memory: bounded, quick, and empty after a restart. A delivery that was answered 2xx and not handed out
 * is lost with the process.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): Inbox {
  const { maxPending = 1_000, maxIds = 100_000, remember = WEBHOOK_HORIZON, clock = Date.now } = options
  checkInteger('maxPending', maxPending, 1)
  checkInteger('maxIds', maxIds, 2 * maxPending)
  checkDuration('remember', remember, true)
  if (typeof clock !== 'function') throw new ArgumentError('clock', 'a function', clock)

  const pending: WebhookDelivery[] = []

  // Two generations instead of an age for each id: the older one is dropped as a whole, so forgetting costs nothing.
  // Each has room for half of the ids, and is dropped `remember` after its last id came.
  let recent = new Set<string>()
  let older = new Set<string>()
  let recentSince = clock()

  function turnOver(): void {
    const now = clock()
    if (recent.size < Math.floor(maxIds / 2) && now - recentSince < remember) return
    older = recent
    recent = new Set()
    recentSince = now
  }

  const isKnown = (id: string) => recent.has(id) || older.has(id)
  const hasRoom = () => pending.length < maxPending

  function put(delivery: WebhookDelivery): InboxOutcome {
    turnOver()
    if (isKnown(delivery.id)) return 'duplicate'
    if (!hasRoom()) return 'full'
    recent.add(delivery.id)
    pending.push(delivery)
    return 'stored'
  }

  return {
    put: async (delivery) => put(delivery),
    isFull: (id) => !hasRoom() && !isKnown(id),
    take: () => pending.shift(),
    // What was taken is no longer here: it cannot be handed out again either.
    done: () => {},
  }
}
