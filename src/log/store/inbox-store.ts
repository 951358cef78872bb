import { checkInteger, checkOptions } from '../../protocol/check.ts'
import type { InboxOutcome, WebhookDelivery } from '../../protocol/webhook.ts'

/** A place in an inbox, after a delivery. Opaque; null is before all. */
export type InboxPlace = string

/** A stored delivery that is not done. */
export interface PendingDelivery extends WebhookDelivery {
  /** The place after it. */
  readonly place: InboxPlace
  /** When it was stored, in Unix ms. */
  readonly received: number
  /** Length of the payload as JSON, in characters. */
  readonly length: number
}

/**
 * The webhooks of a log: stored by receivers in any process, and done once a recorder has appended their events, in the
 * transaction of that append (see `LogStore.append`).
 *
 * The id of a delivery is known for at least 48 hours, since the service repeats a webhook for so long (§6.1), and until 100,000
 * later ones are stored.
 */
export interface InboxStore {
  /**
   * Stores a delivery in a transaction that survives a power cut. Concurrent calls share one. Resolves with `full` if
   * {@link InboxLimits} are reached; rejects if nothing was stored.
   *
   * @param json The text that the payload was parsed from.
   */
  put(delivery: WebhookDelivery, json: string): Promise<InboxOutcome>
  /** Whether {@link put} would probably resolve with `full`, as far as that is known without waiting. */
  isFull(id: string): boolean
  /** Deliveries that are not done, in the order of arrival, after a place: at least one if there is any, at most `limit`. */
  pending(after: InboxPlace | null, limit: number): Promise<readonly PendingDelivery[]>
  /** Resolves once there may be deliveries after this place. Rejects with the signal's reason. */
  wait(after: InboxPlace | null, signal: AbortSignal): Promise<void>
}

/** How much an inbox holds. Deliveries that are done do not count. */
export interface InboxLimits {
  /** Number of deliveries at which it is full. Default 10,000. */
  readonly maxDeliveries?: number
  /** Size of their bodies at which it is full, in bytes. Default 256 MiB. */
  readonly maxBytes?: number
}

/** How many later deliveries must be stored before an id is forgotten. */
export const MIN_KNOWN_IDS = 100_000

/** The limits with their defaults. Throws an ArgumentError for one that cannot be right. */
export function inboxLimits(limits: InboxLimits | undefined): Required<InboxLimits> {
  checkOptions('inbox', limits, ['maxDeliveries', 'maxBytes'])
  const { maxDeliveries = 10_000, maxBytes = 256 * 1024 * 1024 } = limits ?? {}
  checkInteger('inbox.maxDeliveries', maxDeliveries, 1)
  checkInteger('inbox.maxBytes', maxBytes, 1)
  return { maxDeliveries, maxBytes }
}

/** A delivery as a store writes it. */
export interface PreparedDelivery {
  readonly id: string
  readonly timestamp: number
  readonly json: string
}
