import { checkDuration, checkFunction, checkInteger, checkOptions } from '../protocol/check.ts'
import { WEBHOOK_HORIZON } from '../protocol/limits.ts'
import type { InboxOutcome, WebhookDelivery, WebhookInbox } from '../protocol/webhook.ts'

/** The inbox of a receiver that emits its deliveries itself. They are lost with the process. */
export interface MemoryInbox extends WebhookInbox {
  put(delivery: WebhookDelivery): Promise<InboxOutcome>
  /** Removes and returns the oldest delivery, whose id stays known; undefined if there is none. */
  take(): WebhookDelivery | undefined
}

/** Settings of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /** Maximum number of deliveries that wait for a subscriber; then the inbox is full. Default 1,000. */
  readonly maxPending?: number
  /**
   * Maximum number of ids by which duplicates are recognized. Beyond that the oldest are forgotten, up to half of them at
   * once. At least twice `maxPending`. Default 100,000.
   */
  readonly maxIds?: number
  /** How long an id is known at least, in ms. Default 48 hours, as long as the service retries (§6.1). */
  readonly remember?: number
  /** Returns the current time, Unix ms. Default `Date.now`. */
  readonly clock?: () => number
}

const OPTIONS = Object.keys({
  maxPending: true,
  maxIds: true,
  remember: true,
  clock: true,
} satisfies Record<keyof MemoryInboxOptions, true>)

/**
 * An inbox in memory, with a bounded number of deliveries. A delivery that was answered with 2xx and not taken is lost with the
 * process; `log.inbox` keeps it.
 *
 * @throws {ArgumentError} for an invalid option.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): MemoryInbox {
  checkOptions('options', options, OPTIONS)
  const { maxPending = 1_000, maxIds = 100_000, remember = WEBHOOK_HORIZON, clock = Date.now } = options
  checkInteger('maxPending', maxPending, 1)
  checkInteger('maxIds', maxIds, 2 * maxPending)
  checkDuration('remember', remember, true)
  checkFunction('clock', clock)

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
  }
}
