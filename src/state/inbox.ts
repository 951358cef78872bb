import type { InboxOutcome, WebhookDelivery } from '../protocol/webhook.ts'

/**
 * Where verified webhooks wait for their subscriber. A receiver answers 2xx once a delivery is stored or a duplicate,
 * and 503 where the inbox is full or fails, so that the sender tries again (§6.1).
 *
 * Storing may take its time: an inbox on a disk commits a burst together. Handing out is synchronous, so that no
 * delivery is ever on its way between the inbox and a subscriber that leaves.
 */
export interface Inbox {
  /**
   * Stores a delivery whose id the inbox does not know. Resolves only when the delivery survives whatever this inbox
   * promises to survive; for a duplicate, when the first copy does. A rejection means that nothing was stored.
   *
   * @param json The text that the payload was parsed from, where it is at hand: whoever stores text need not make it
   * again. An inbox that has no use for it leaves the parameter out.
   */
  put(delivery: WebhookDelivery, json?: string): Promise<InboxOutcome>
  /**
   * Whether {@link put} would find no room for a delivery with this id, as far as that is known without waiting. A receiver
   * asks before it reads a body, so that a full inbox costs no memory; without this method it reads every body.
   */
  isFull?(id: string): boolean
  /**
   * Hands out the oldest stored delivery that was not handed out yet, undefined where there is none.
   *
   * In memory that is the end of it, but for its id. A durable inbox keeps the delivery until whoever handles it says
   * that it is done, and hands it out again if a restart or a {@link rewind} comes first.
   */
  take(): WebhookDelivery | undefined
  /**
   * Goes back to the oldest delivery that was handed out and is not done: {@link take} hands out again from there on. Only
   * where what was handed out is kept. A receiver calls it before it hands out to somebody who subscribes alone.
   */
  rewind?(): void
  /**
   * The delivery with this id was handled. In memory that changes nothing; a durable inbox hands it out no more. Ids that
   * are not known are passed over.
   */
  done(id: string): void | Promise<void>
  /** Whether what waits here outlives the process. Default false. */
  readonly durable?: boolean
}
