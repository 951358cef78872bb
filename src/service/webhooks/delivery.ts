import type { DatabaseSync } from 'node:sqlite'
import { WEBHOOK_HORIZON } from '../../protocol/limits.ts'
import type { WebhookPayload } from '../../protocol/webhook.ts'
import { createAlarm } from '../alarm.ts'
import type { Clock } from '../clock.ts'
import { identifier } from '../identifier.ts'
import type { Faults } from '../faults/faults.ts'
import type { Outbox } from './outbox.ts'
import { createPoster } from './poster.ts'
import { nextAttempt } from './retry.ts'
import { signatures } from './sign.ts'
import { type DeadWebhook, originOf, type PendingWebhook, WebhookStore } from './store.ts'

/** Maximum number of concurrent attempts. */
const CONCURRENCY = 32
/** Maximum number of concurrent attempts to one receiver, so that a hanging receiver does not block the others. */
const CONCURRENCY_PER_RECEIVER = 4
/** How long an attempt may take, in ms of real time. */
const ATTEMPT_TIMEOUT = 10_000
/** How long closing waits for running attempts before it aborts them, in ms of real time. */
const CLOSE_GRACE = 1_000
/** How long the `reorder` fault delays a webhook at most, in ms of the service's clock. */
const MAX_HOLD = 60_000

/** Settings of {@link DeliveringOutbox}. */
export interface OutboxOptions {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly faults: Faults
  /** Returns the current webhook secrets. Called at every attempt, so that they can be rotated. */
  readonly secrets: () => readonly string[]
  /** Whether a webhook may be sent to this IP address. Called before each connection. Default: to any. */
  readonly isAllowed?: (address: string) => boolean
  /** How long an attempt may take, in ms of real time. Default 10,000. */
  readonly timeout?: number
  /** Called when the database fails; delivery then pauses for 5 s. Default: the error is thrown, uncaught. */
  readonly onError?: (error: unknown) => void
}

/**
 * Delivers webhooks as in §6.1: signed, with the same id and bytes at every attempt. Retries after 5 s, 10 s, 20 s and so on
 * for 48 hours, until the receiver responds with 2xx. Pending webhooks are in the database and survive a restart.
 *
 * Retries and their 48 hours use the service's clock. The `webhook-timestamp` header is always real time, since receivers
 * compare it with their own clock. On a clock with a speed, the `timestamp` of a body is real time too.
 */
export class DeliveringOutbox implements Outbox {
  readonly #clock: Clock
  readonly #faults: Faults
  readonly #store: WebhookStore
  readonly #attempts: Attempts
  readonly #alarm: ReturnType<typeof createAlarm>
  readonly #inFlight = new Map<string, { readonly origin: string; readonly done: Promise<void> }>()
  /** Webhooks that the `reorder` fault delays, by URL. */
  readonly #held = new Map<string, { readonly webhook: PendingWebhook; readonly cancel: () => void }>()
  /** Ids of webhooks that the `delay` fault has delayed once. */
  readonly #delayedIds = new Set<string>()
  #state: 'new' | 'started' | 'closing' | 'aborted' = 'new'
  #isWakeQueued = false
  #closed: Promise<void> | undefined

  constructor(options: OutboxOptions) {
    const { database, clock, faults, onError } = options
    this.#clock = clock
    this.#faults = faults
    this.#store = new WebhookStore(database)
    this.#attempts = new Attempts(options)
    this.#alarm = createAlarm(clock, (now) => this.#startDue(now), onError)
  }

  post(url: string, payload: WebhookPayload): void {
    const body = JSON.stringify(this.#atRealTime(payload))
    this.#store.add(identifier('whk'), url, body, this.#clock.now())
    this.#queueWake()
  }

  /** Starts to deliver, beginning with webhooks of an earlier process. */
  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'started'
    // Receivers may forget an id after 48 hours, so older webhooks are not sent.
    this.#store.expire(this.#clock.now() - WEBHOOK_HORIZON)
    this.#alarm.start()
  }

  /** Number of undelivered webhooks. */
  pending(): number {
    return this.#store.pending()
  }

  /** Webhooks that were given up after 48 hours, oldest first. */
  dead(): readonly DeadWebhook[] {
    return this.#store.dead()
  }

  /** Resolves when no attempt is running. Retries may still be scheduled. */
  async settled(): Promise<void> {
    // Webhooks that were just posted are sent in a queued microtask.
    await Promise.resolve()
    if (this.#inFlight.size === 0) return
    await Promise.all([...this.#inFlight.values()].map(({ done }) => done))
    return this.settled()
  }

  /** Stops. Running attempts get a second to end; undelivered webhooks stay stored. */
  close(): Promise<void> {
    return (this.#closed ??= this.#shutDown())
  }

  async #shutDown(): Promise<void> {
    this.#state = 'closing'
    this.#alarm.stop()
    for (const { cancel } of this.#held.values()) cancel()
    const abortTimer = setTimeout(() => {
      this.#state = 'aborted'
      void this.#attempts.close()
    }, CLOSE_GRACE)
    await this.settled()
    clearTimeout(abortTimer)
    await this.#attempts.close()
  }

  /** Runs after the caller's transaction has ended, and once for all webhooks that it posts. */
  #queueWake(): void {
    if (this.#isWakeQueued) return
    this.#isWakeQueued = true
    queueMicrotask(() => {
      this.#isWakeQueued = false
      this.#alarm.wake()
    })
  }

  /** The body's timestamp is real time, as the header's is, on a clock with another speed too. */
  #atRealTime(payload: WebhookPayload): WebhookPayload {
    if (this.#clock.realTime === undefined) return payload
    return { ...payload, timestamp: new Date(this.#clock.realTime.now()).toISOString() }
  }

  #startDue(now: number): number | undefined {
    this.#sendDue(now)
    return this.#store.nextAfter(now)
  }

  #sendDue(now: number): void {
    while (this.#inFlight.size < CONCURRENCY) {
      // Webhooks in flight and delayed ones are still due in the store.
      const taken = [...this.#inFlight.keys(), ...[...this.#held.values()].map(({ webhook }) => webhook.id)]
      const webhook = this.#store.due(now, taken, this.#busyReceivers())
      if (webhook === undefined) return
      if (!this.#delay(webhook, now) && !this.#reorder(webhook)) this.#send(webhook)
    }
  }

  /** Origins at their limit of concurrent attempts. */
  #busyReceivers(): string[] {
    const attempts = Map.groupBy(this.#inFlight.values(), ({ origin }) => origin)
    return [...attempts]
      .filter(([, { length }]) => length >= CONCURRENCY_PER_RECEIVER)
      .map(([origin]) => origin)
  }

  #delay({ id, attempts }: PendingWebhook, now: number): boolean {
    if (attempts > 0 || this.#delayedIds.has(id)) return false
    const fault = this.#faults.take('delay')
    if (fault === undefined) return false
    this.#store.postpone(id, now + fault.by)
    this.#delayedIds.add(id)
    return true
  }

  #send(webhook: PendingWebhook): void {
    this.#delayedIds.delete(webhook.id)
    this.#inFlight.set(webhook.id, { origin: originOf(webhook.url), done: this.#deliver(webhook) })
  }

  async #deliver(webhook: PendingWebhook): Promise<void> {
    const failure = await this.#attempts.deliver(webhook)
    this.#inFlight.delete(webhook.id)
    // An aborted attempt is no failure of the receiver.
    if (this.#state === 'aborted') return
    try {
      this.#record(webhook, failure)
    } catch (error) {
      return this.#alarm.pause(error)
    }
    if (failure === undefined) this.#release(webhook.url)
    this.#alarm.wake()
  }

  #record({ id, createdAt, attempts }: PendingWebhook, failure: string | undefined): void {
    if (failure === undefined) this.#store.delivered(id)
    else this.#store.failed(id, failure, nextAttempt(createdAt, attempts + 1, this.#clock.now()))
  }

  #reorder(webhook: PendingWebhook): boolean {
    const { url } = webhook
    if (webhook.attempts > 0 || this.#held.has(url) || this.#faults.take('reorder') === undefined)
      return false
    this.#held.set(url, { webhook, cancel: this.#clock.schedule(MAX_HOLD, () => this.#release(url)) })
    return true
  }

  #release(url: string): void {
    const entry = this.#held.get(url)
    if (entry === undefined || this.#state !== 'started') return
    entry.cancel()
    this.#held.delete(url)
    this.#send(entry.webhook)
  }
}

/** Attempts to deliver webhooks, and the faults of single attempts. */
class Attempts {
  readonly #faults: Faults
  readonly #secrets: () => readonly string[]
  readonly #poster: ReturnType<typeof createPoster>

  constructor({ faults, secrets, timeout = ATTEMPT_TIMEOUT, isAllowed = () => true }: OutboxOptions) {
    this.#faults = faults
    this.#secrets = secrets
    this.#poster = createPoster(timeout, isAllowed)
  }

  /** Resolves with the failure, or with undefined after a 2xx. */
  async deliver(webhook: PendingWebhook): Promise<string | undefined> {
    const failure = await this.#attemptWithFaults(webhook)
    if (failure === undefined && this.#faults.take('repeat') !== undefined) await this.#attempt(webhook)
    return failure
  }

  /** Aborts the attempts. */
  close(): Promise<void> {
    return this.#poster.close()
  }

  /** One attempt with the faults `lose` and `lose-answer`; resolves like {@link deliver}. */
  async #attemptWithFaults(webhook: PendingWebhook): Promise<string | undefined> {
    if (this.#faults.take('lose') !== undefined) return 'lost by the fault lose'
    const failure = await this.#attempt(webhook)
    if (failure !== undefined || this.#faults.take('lose-answer') === undefined) return failure
    return 'delivered, but the response was lost by the fault lose-answer'
  }

  /** Sends one POST; resolves with the failure, or with undefined after a 2xx. */
  async #attempt({ id, url, body }: PendingWebhook): Promise<string | undefined> {
    try {
      const timestamp = Math.floor(Date.now() / 1000)
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatures(this.#secrets(), { id, timestamp, body }),
      }
      const status = await this.#poster.post(url, headers, body)
      return status >= 200 && status <= 299 ? undefined : `answered with ${status}`
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }
}
