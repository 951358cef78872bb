import { WEBHOOK_HORIZON } from '../../protocol/limits.ts'
import type { InboxOutcome } from '../../protocol/webhook.ts'
import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import { MIN_KNOWN_IDS } from '../store/inbox-store.ts'
import type { InboxLimits, InboxPlace, PendingDelivery, PreparedDelivery } from '../store/inbox-store.ts'
import { WaitingCalls } from './waiting-calls.ts'

interface StoredDelivery extends PreparedDelivery {
  readonly received: number
  readonly bytes: number
}

/** Ids that are forgotten with each put, so that none takes long. */
const FORGOTTEN_PER_PUT = 8

/** The webhooks of a log in memory. */
export class MemoryInbox<Caller> {
  /** Calls that wait for deliveries, each with the place after which it waits. */
  readonly waiting = new WaitingCalls<Caller, true>()
  readonly #limits: Required<InboxLimits>
  /** Pending deliveries by number, in the order of arrival. */
  readonly #pending = new Map<number, StoredDelivery>()
  /** Each known id, oldest first, with its number and when it was stored. */
  readonly #known = new Map<string, { readonly number: number; readonly received: number }>()
  #last = 0
  #bytes = 0

  constructor(limits: Required<InboxLimits>) {
    this.#limits = limits
  }

  put(delivery: PreparedDelivery, now: number): InboxOutcome {
    this.#forget(now)
    const { id, json } = delivery
    if (this.#known.has(id)) return 'duplicate'
    if (this.#hasNoRoom) return 'full'
    const number = ++this.#last
    const bytes = new TextEncoder().encode(json).length
    this.#known.set(id, { number, received: now })
    this.#pending.set(number, { ...delivery, received: now, bytes })
    this.#bytes += bytes
    this.waiting.settle(() => true)
    return 'stored'
  }

  /** Removes the deliveries whose payload, as JSON, is one of these. Their ids stay known. */
  forget(isForgotten: (payload: string) => boolean): void {
    for (const [number, { json, bytes }] of this.#pending) {
      if (!isForgotten(json)) continue
      this.#pending.delete(number)
      this.#bytes -= bytes
    }
  }

  /** Deliveries that are not done. */
  get totals(): { readonly pending: number; readonly bytes: number } {
    return { pending: this.#pending.size, bytes: this.#bytes }
  }

  isFull(id: string): boolean {
    return this.#hasNoRoom && !this.#known.has(id)
  }

  /** Marks deliveries as done. Their ids stay known. */
  done(ids: readonly string[]): void {
    for (const id of ids) {
      const number = this.#known.get(id)?.number
      const delivery = number === undefined ? undefined : this.#pending.get(number)
      if (number === undefined || delivery === undefined) continue
      this.#pending.delete(number)
      this.#bytes -= delivery.bytes
    }
  }

  pending(after: InboxPlace | null, limit: number): readonly PendingDelivery[] {
    const page: PendingDelivery[] = []
    let length = 0
    for (const [number, { id, timestamp, json, received }] of this.#pending) {
      if (number <= Number(after)) continue
      if (page.length >= limit || length >= MAX_PAGE_LENGTH) break
      const payload: unknown = JSON.parse(json)
      page.push({ id, timestamp, payload, place: String(number), received, length: json.length })
      length += json.length
    }
    return page
  }

  hasMore(after: InboxPlace | null): boolean {
    for (const number of this.#pending.keys()) if (number > Number(after)) return true
    return false
  }

  get #hasNoRoom(): boolean {
    const { maxDeliveries, maxBytes } = this.#limits
    return this.#pending.size >= maxDeliveries || this.#bytes >= maxBytes
  }

  #forget(now: number): void {
    let examined = 0
    for (const [id, { number, received }] of this.#known) {
      const isOld = number <= this.#last - MIN_KNOWN_IDS && now - received > WEBHOOK_HORIZON
      if (!isOld || examined++ === FORGOTTEN_PER_PUT) return
      if (this.#pending.has(number)) continue
      this.#known.delete(id)
    }
  }
}
