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

/** Settings of {@link createOutbox}. */
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

/** An outbox that delivers its webhooks. */
export interface DeliveringOutbox extends Outbox {
  /** Starts to deliver, beginning with webhooks of an earlier process. */
  start(): void
  /** Number of undelivered webhooks. */
  pending(): number
  /** Webhooks that were given up after 48 hours, oldest first. */
  dead(): readonly DeadWebhook[]
  /** Resolves when no attempt is running. Retries may still be scheduled. */
  settled(): Promise<void>
  /** Stops. Running attempts get a second to end; undelivered webhooks stay stored. */
  close(): Promise<void>
}

/**
 * Delivers webhooks as in §6.1: signed, with the same id and bytes at every attempt. Retries after 5 s, 10 s, 20 s and so on
 * for 48 hours, until the receiver responds with 2xx. Pending webhooks are in the database and survive a restart.
 *
 * Retries and their 48 hours use the service's clock. The `webhook-timestamp` header is always real time, since receivers
 * compare it with their own clock. On a clock with a speed, the `timestamp` of a body is real time too.
 */
export function createOutbox(options: OutboxOptions): DeliveringOutbox {
  const { database, clock, faults, secrets, timeout = ATTEMPT_TIMEOUT, onError } = options
  const { isAllowed = () => true } = options
  const store = new WebhookStore(database)
  const poster = createPoster(timeout, isAllowed)
  const alarm = createAlarm(clock, startDue, onError)
  const inFlight = new Map<string, { readonly origin: string; readonly done: Promise<void> }>()
  /** Webhooks that the `reorder` fault delays, by URL. */
  const held = new Map<string, { readonly webhook: PendingWebhook; readonly cancel: () => void }>()
  /** Ids of webhooks that the `delay` fault has delayed once. */
  const delayedIds = new Set<string>()
  let state: 'new' | 'started' | 'closing' | 'aborted' = 'new'
  let isWakeQueued = false
  let closed: Promise<void> | undefined

  /** Runs after the caller's transaction has ended, and once for all webhooks that it posts. */
  function queueWake(): void {
    if (isWakeQueued) return
    isWakeQueued = true
    queueMicrotask(() => {
      isWakeQueued = false
      alarm.wake()
    })
  }

  /** The body's timestamp is real time, as the header's is, on a clock with another speed too. */
  function atRealTime(payload: WebhookPayload): WebhookPayload {
    if (clock.realTime === undefined) return payload
    return { ...payload, timestamp: new Date(clock.realTime.now()).toISOString() }
  }

  function startDue(now: number): number | undefined {
    sendDue(now)
    return store.nextAfter(now)
  }

  function sendDue(now: number): void {
    while (inFlight.size < CONCURRENCY) {
      // Webhooks in flight and delayed ones are still due in the store.
      const taken = [...inFlight.keys(), ...[...held.values()].map(({ webhook }) => webhook.id)]
      const webhook = store.due(now, taken, busyReceivers())
      if (webhook === undefined) return
      if (!delay(webhook, now) && !reorder(webhook)) send(webhook)
    }
  }

  /** Origins at their limit of concurrent attempts. */
  function busyReceivers(): string[] {
    const attempts = Map.groupBy(inFlight.values(), ({ origin }) => origin)
    return [...attempts]
      .filter(([, { length }]) => length >= CONCURRENCY_PER_RECEIVER)
      .map(([origin]) => origin)
  }

  function delay({ id, attempts }: PendingWebhook, now: number): boolean {
    if (attempts > 0 || delayedIds.has(id)) return false
    const fault = faults.take('delay')
    if (fault === undefined) return false
    store.postpone(id, now + fault.by)
    delayedIds.add(id)
    return true
  }

  function send(webhook: PendingWebhook): void {
    delayedIds.delete(webhook.id)
    inFlight.set(webhook.id, { origin: originOf(webhook.url), done: deliver(webhook) })
  }

  async function deliver(webhook: PendingWebhook): Promise<void> {
    const failure = await attemptWithFaults(webhook)
    if (failure === undefined && faults.take('repeat') !== undefined) await attempt(webhook)
    inFlight.delete(webhook.id)
    // An aborted attempt is no failure of the receiver.
    if (state === 'aborted') return
    try {
      record(webhook, failure)
    } catch (error) {
      return alarm.pause(error)
    }
    if (failure === undefined) release(webhook.url)
    alarm.wake()
  }

  function record({ id, createdAt, attempts }: PendingWebhook, failure: string | undefined): void {
    if (failure === undefined) store.delivered(id)
    else store.failed(id, failure, nextAttempt(createdAt, attempts + 1, clock.now()))
  }

  /** One attempt with the faults `lose` and `lose-answer`; resolves like {@link attempt}. */
  async function attemptWithFaults(webhook: PendingWebhook): Promise<string | undefined> {
    if (faults.take('lose') !== undefined) return 'lost by the fault lose'
    const failure = await attempt(webhook)
    if (failure !== undefined || faults.take('lose-answer') === undefined) return failure
    return 'delivered, but the response was lost by the fault lose-answer'
  }

  /** Sends one POST; resolves with the failure, or with undefined after a 2xx. */
  async function attempt({ id, url, body }: PendingWebhook): Promise<string | undefined> {
    try {
      const timestamp = Math.floor(Date.now() / 1000)
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatures(secrets(), { id, timestamp, body }),
      }
      const status = await poster.post(url, headers, body)
      return status >= 200 && status <= 299 ? undefined : `answered with ${status}`
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  function reorder(webhook: PendingWebhook): boolean {
    const { url } = webhook
    if (webhook.attempts > 0 || held.has(url) || faults.take('reorder') === undefined) return false
    held.set(url, { webhook, cancel: clock.schedule(MAX_HOLD, () => release(url)) })
    return true
  }

  function release(url: string): void {
    const entry = held.get(url)
    if (entry === undefined || state !== 'started') return
    entry.cancel()
    held.delete(url)
    send(entry.webhook)
  }

  async function settled(): Promise<void> {
    // Webhooks that were just posted are sent in a queued microtask.
    await Promise.resolve()
    if (inFlight.size === 0) return
    await Promise.all([...inFlight.values()].map(({ done }) => done))
    return settled()
  }

  async function shutDown(): Promise<void> {
    state = 'closing'
    alarm.stop()
    for (const { cancel } of held.values()) cancel()
    const abortTimer = setTimeout(() => {
      state = 'aborted'
      void poster.close()
    }, CLOSE_GRACE)
    await settled()
    clearTimeout(abortTimer)
    await poster.close()
  }

  return {
    post(url, payload) {
      store.add(identifier('whk'), url, JSON.stringify(atRealTime(payload)), clock.now())
      queueWake()
    },
    start() {
      if (state !== 'new') return
      state = 'started'
      // Receivers may forget an id after 48 hours, so older webhooks are not sent.
      store.expire(clock.now() - WEBHOOK_HORIZON)
      alarm.start()
    },
    pending: () => store.pending(),
    dead: () => store.dead(),
    settled,
    close: () => (closed ??= shutDown()),
  }
}
