import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { WEBHOOK_HORIZON } from '../../protocol/limits.ts'
import type { Clock } from '../clock.ts'
import type { Faults } from '../faults.ts'
import type { Outbox } from './outbox.ts'
import { createPoster } from './poster.ts'
import { nextAttempt } from './retry.ts'
import { signatures } from './sign.ts'
import { type DeadWebhook, originOf, type PendingWebhook, WebhookStore } from './store.ts'

/** Attempts under way at one time. */
const CONCURRENCY = 32
/** Attempts under way at one time to one receiver: one that never answers shall not take the places of the others. */
const CONCURRENCY_PER_RECEIVER = 4
/** How long an attempt may take, in ms of real time. */
const ATTEMPT_TIMEOUT = 10_000
/** How long closing waits for attempts under way before it cuts them, in ms of real time. */
const CLOSE_GRACE = 1_000
/** How long the `reorder` fault waits for another webhook, in ms of the service's clock. */
const LONGEST_HOLD = 60_000
/** How long to wait when the database fails, in ms of the service's clock. */
const PAUSE = 5_000

/** What an outbox needs. */
export interface OutboxOptions {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly faults: Faults
  /** The account's current webhook secrets; asked at every attempt, so that they can be rotated. */
  readonly secrets: () => readonly string[]
  /** How long an attempt may take, in ms of real time. Default 10,000. */
  readonly timeout?: number
  /** Hears when the database fails; delivery then pauses for 5 s. Default: the error is thrown and nobody catches it. */
  readonly onError?: (error: unknown) => void
}

/** An outbox that also delivers. */
export interface DeliveringOutbox extends Outbox {
  /** Begins to deliver, with what an earlier process left. */
  start(): void
  /** How many webhooks are still to be delivered. */
  pending(): number
  /** Webhooks that were given up after 48 hours, oldest first. */
  dead(): readonly DeadWebhook[]
  /** Resolves when no attempt is under way. Retries may still be waiting for their time. */
  settled(): Promise<void>
  /** Stops. Attempts under way get a second to end; what is not delivered by then stays stored. */
  close(): Promise<void>
}

/**
 * Delivers webhooks as §6.1 has it: signed, the same id and bytes at every attempt, until the receiver answers 2xx; after
 * a failure again 5 s later, then 10 s, 20 s and so on over 48 hours. What waits is in the database, so that a restart
 * loses none.
 *
 * Retries and their 48 hours go by the service's clock. The `webhook-timestamp` header is always real time, since
 * receivers hold it against their own clock to refuse stale requests.
 */
export function createOutbox(options: OutboxOptions): DeliveringOutbox {
  const { database, clock, faults, secrets, timeout = ATTEMPT_TIMEOUT, onError } = options
  const store = new WebhookStore(database)
  const poster = createPoster(timeout)
  const inFlight = new Map<string, { readonly origin: string; readonly done: Promise<void> }>()
  /** Held back by the `reorder` fault, by URL: a change of order is seen by one receiver only. */
  const held = new Map<string, { readonly webhook: PendingWebhook; readonly cancel: () => void }>()
  /** Ids of those that the `delay` fault has put off: once is enough. */
  const putOff = new Set<string>()
  let state: 'new' | 'started' | 'closing' | 'cut' = 'new'
  let cancelAlarm: (() => void) | undefined
  let wakingSoon = false
  let closed: Promise<void> | undefined

  /** Not before the caller's transaction has ended, well or badly; and once for all that it posts. */
  function wakeSoon(): void {
    if (wakingSoon) return
    wakingSoon = true
    queueMicrotask(() => {
      wakingSoon = false
      wake()
    })
  }

  function wake(): void {
    if (state !== 'started') return
    cancelAlarm?.()
    try {
      const now = clock.now()
      sendDue(now)
      const next = store.nextAfter(now)
      cancelAlarm = next === undefined ? undefined : clock.schedule(next - now, wake)
    } catch (error) {
      pause(error)
    }
  }

  function sendDue(now: number): void {
    while (inFlight.size < CONCURRENCY) {
      // Those in flight and those held are still due in the store.
      const taken = [...inFlight.keys(), ...[...held.values()].map(({ webhook }) => webhook.id)]
      const webhook = store.due(now, taken, busyReceivers())
      if (webhook === undefined) return
      if (!delayed(webhook, now) && !holdBack(webhook)) send(webhook)
    }
  }

  /** Origins that have as many attempts under way as they may. */
  function busyReceivers(): string[] {
    const attempts = Map.groupBy(inFlight.values(), ({ origin }) => origin)
    return [...attempts]
      .filter(([, { length }]) => length >= CONCURRENCY_PER_RECEIVER)
      .map(([origin]) => origin)
  }

  /** What cannot be written down would be sent again at once, and again: so nothing is sent for a while. */
  function pause(error: unknown): void {
    cancelAlarm?.()
    if (state === 'started') cancelAlarm = clock.schedule(PAUSE, wake)
    if (onError === undefined) throw error
    onError(error)
  }

  function delayed({ id, attempts }: PendingWebhook, now: number): boolean {
    if (attempts > 0 || putOff.has(id)) return false
    const fault = faults.take('delay')
    if (fault === undefined) return false
    store.postpone(id, now + fault.by)
    putOff.add(id)
    return true
  }

  function send(webhook: PendingWebhook): void {
    putOff.delete(webhook.id)
    inFlight.set(webhook.id, { origin: originOf(webhook.url), done: deliver(webhook) })
  }

  async function deliver(webhook: PendingWebhook): Promise<void> {
    const failure = await carry(webhook)
    if (failure === undefined && faults.take('repeat') !== undefined) await attempt(webhook)
    inFlight.delete(webhook.id)
    // An attempt that closing cut says nothing of the receiver.
    if (state === 'cut') return
    try {
      record(webhook, failure)
    } catch (error) {
      return pause(error)
    }
    if (failure === undefined) release(webhook.url)
    wake()
  }

  function record({ id, createdAt, attempts }: PendingWebhook, failure: string | undefined): void {
    if (failure === undefined) store.delivered(id)
    else store.failed(id, failure, nextAttempt(createdAt, attempts + 1, clock.now()))
  }

  /** One attempt over a way on which the request, or the answer to it, may be lost; resolves as {@link attempt} does. */
  async function carry(webhook: PendingWebhook): Promise<string | undefined> {
    if (faults.take('lose') !== undefined) return 'lost on its way, as the service was told'
    const failure = await attempt(webhook)
    if (failure !== undefined || faults.take('lose-answer') === undefined) return failure
    return 'taken, but the answer was lost on its way, as the service was told'
  }

  /** One POST; resolves with what went wrong, or with undefined when the receiver took it. */
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

  function holdBack(webhook: PendingWebhook): boolean {
    const { url } = webhook
    if (webhook.attempts > 0 || held.has(url) || faults.take('reorder') === undefined) return false
    held.set(url, { webhook, cancel: clock.schedule(LONGEST_HOLD, () => release(url)) })
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
    // What was posted a moment ago is taken up in a microtask that is already queued.
    await Promise.resolve()
    if (inFlight.size === 0) return
    await Promise.all([...inFlight.values()].map(({ done }) => done))
    return settled()
  }

  async function shut(): Promise<void> {
    state = 'closing'
    cancelAlarm?.()
    for (const { cancel } of held.values()) cancel()
    const cut = setTimeout(() => {
      state = 'cut'
      void poster.close()
    }, CLOSE_GRACE)
    await settled()
    clearTimeout(cut)
    await poster.close()
  }

  return {
    post(url, payload) {
      store.add(`whk_${randomUUID().replaceAll('-', '')}`, url, JSON.stringify(payload), clock.now())
      wakeSoon()
    },
    start() {
      if (state !== 'new') return
      state = 'started'
      // Receivers may forget an id after 48 hours: what is older is not sent any more.
      store.expire(clock.now() - WEBHOOK_HORIZON)
      wake()
    },
    pending: () => store.pending(),
    dead: () => store.dead(),
    settled,
    close: () => (closed ??= shut()),
  }
}
