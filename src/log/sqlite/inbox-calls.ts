import { checkInteger, checkSignal } from '../../protocol/check.ts'
import type { InboxOutcome, WebhookDelivery } from '../../protocol/webhook.ts'
import { prepareDelivery } from '../store/inbox-store.ts'
import type { InboxPlace, InboxStore, PendingDelivery, PreparedDelivery } from '../store/inbox-store.ts'
import type { WallAndMonotonic } from '../store/log-clock.ts'
import { GroupCommit } from './group-commit.ts'
import type { Transactions } from './open-log.ts'

/** How long a webhook waits for other writers until its sender gets a 503 and tries again, in ms. */
const PATIENCE = 5_000

/** The inbox of a log, for any process. */
export class InboxCalls implements InboxStore {
  readonly #transactions: Transactions
  readonly #clocks: WallAndMonotonic
  readonly #puts: GroupCommit<PreparedDelivery, InboxOutcome>

  constructor(transactions: Transactions, clocks: WallAndMonotonic) {
    this.#transactions = transactions
    this.#clocks = clocks
    this.#puts = new GroupCommit(
      (deliveries) => this.#put(deliveries),
      ({ json }) => json.length,
    )
  }

  async put(delivery: WebhookDelivery, json: string): Promise<InboxOutcome> {
    return this.#puts.add(prepareDelivery(delivery, json))
  }

  isFull(id: string): boolean {
    try {
      return this.#transactions.opened()?.inbox.isFull(id) === true
    } catch {
      // `put` reports what is wrong with the file.
      return false
    }
  }

  async pending(after: InboxPlace | null, limit: number): Promise<readonly PendingDelivery[]> {
    checkInteger('limit', limit, 1)
    return this.#transactions.read((log) => log.inbox.pending(after, limit))
  }

  async wait(after: InboxPlace | null, signal: AbortSignal): Promise<void> {
    checkSignal('signal', signal)
    signal.throwIfAborted()
    await this.#transactions.until((log) => log.inbox.hasMore(after), signal)
    signal.throwIfAborted()
  }

  /** Stores them in one transaction. */
  async #put(deliveries: readonly PreparedDelivery[]): Promise<readonly InboxOutcome[]> {
    const outcomes = await this.#transactions.write(
      'FULL',
      (log) => log.inbox.put(deliveries, log.entries.now(this.#clocks)),
      PATIENCE,
    )
    this.#transactions.opened()?.inbox.counted()
    if (outcomes.includes('stored')) this.#transactions.notify()
    return outcomes
  }
}
