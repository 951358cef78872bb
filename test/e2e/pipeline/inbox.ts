import { setImmediate as nextTurn } from 'node:timers/promises'
import type { InboxOutcome, WebhookDelivery } from 'rivulet'
import type { Inbox } from '../../../src/state/inbox.ts'

/** The stored rows of an inbox: deliveries in order of arrival, undefined when they are done. */
export type InboxRows = Map<string, WebhookDelivery | undefined>

/** A durable inbox whose writes take a turn, and that loses pending writes when it is killed. */
export class KillableInbox implements Inbox {
  readonly durable = true
  readonly #rows: InboxRows
  #handedOut = new Set<string>()
  #killed = false

  constructor(rows: InboxRows) {
    this.#rows = rows
  }

  async put(delivery: WebhookDelivery): Promise<InboxOutcome> {
    await nextTurn()
    if (this.#killed) throw new Error('killed')
    if (this.#rows.has(delivery.id)) return 'duplicate'
    this.#rows.set(delivery.id, delivery)
    return 'stored'
  }

  take(): WebhookDelivery | undefined {
    for (const [id, delivery] of this.#rows) {
      if (delivery === undefined || this.#handedOut.has(id)) continue
      this.#handedOut.add(id)
      return structuredClone(delivery)
    }
    return undefined
  }

  rewind(): void {
    this.#handedOut = new Set()
  }

  async done(id: string): Promise<void> {
    await nextTurn()
    if (!this.#killed) this.#rows.set(id, undefined)
  }

  kill(): void {
    this.#killed = true
  }
}
