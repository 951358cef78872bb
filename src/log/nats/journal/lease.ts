import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject, parseJson } from '../../../protocol/json.ts'
import type { Connection } from '../server/connection.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'

/** Number of renewals within the duration of a lease. */
const RENEWALS = 3

/** Interval at which a lease is read that has run out and may be renewed, in ms. */
const INTERVAL = 200

/**
 * The lease of an open log: a key of a bucket whose keys expire, which the log renews while it lives. It only says when others may take
 * over the names that it has claimed. The fence in the journal refuses writes of an earlier owner, even while its lease is good.
 */
export class Lease {
  /** Id of this open log. */
  readonly instance = randomBytes(12).toString('hex')
  /** Duration of a lease without a renewal, in ms. */
  readonly duration: number
  readonly #connection: Connection
  readonly #owner: string
  readonly #opened = performance.now()
  /** When the last renewal that was stored was sent, by `performance.now`. */
  #renewed = -Infinity
  /** Time until which an expired lease may be that of an open log that lives, by `performance.now`. */
  #grace = -Infinity
  #timer: NodeJS.Timeout | undefined
  #isReleased = false

  constructor(connection: Connection, owner: string, duration: number) {
    this.#connection = connection
    this.#owner = owner
    this.duration = duration
    void this.#noticeReconnects()
  }

  /** Takes the lease, or renews it if that is due: a log that was suspended may have lost it. From then on it is renewed. */
  async hold(): Promise<void> {
    if (performance.now() - this.#renewed >= this.duration / RENEWALS) await this.take()
  }

  /** Takes or renews the lease in any case. From then on it is renewed. */
  async take(): Promise<void> {
    await retryTransient(this.#connection, () => this.#renew())
    if (this.#isReleased) return
    this.#timer ??= setInterval(() => {
      // The next time is soon, and the owner is fenced if another one was faster.
      this.#renew().catch(() => {})
    }, this.duration / RENEWALS).unref()
  }

  /**
   * Whether an open log lives. If its lease has run out, it first has the time to renew it: see {@link isExpiryFinal}. Takes the own lease,
   * by whose renewals the absence of the server is known. Resolves with true when the signal is aborted.
   */
  async isAlive(instance: string, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      if (signal.aborted) return true
      await this.hold()
      const renewal = await this.renewal(instance)
      if (typeof renewal === 'number') return true
      if (renewal === 'ended' || this.isExpiryFinal) return false
      await delay(INTERVAL, undefined, { signal }).catch(() => {})
    }
  }

  /** The number of the last renewal of an open log, which changes with each renewal. Without one, whether the lease has ended or has expired. */
  async renewal(instance: string): Promise<number | 'ended' | 'expired'> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.lease(instance) }
    // Asks the leader: a copy may not have it yet.
    const found = await retryTransient(this.#connection, () =>
      jsm.streams.getMessage(names.leaseStream, query),
    )
    if (found === null) return 'expired'
    return ownerOf(found.data) === undefined ? 'ended' : found.seq
  }

  /**
   * Whether a lease that has run out is that of an open log that is gone. Otherwise the server may have been away, also just before this
   * log was opened, or this process suspended: others have not had the time of a lease since.
   */
  get isExpiryFinal(): boolean {
    const isKnown = this.#renewed > -Infinity && performance.now() >= this.#opened + this.duration
    return isKnown && !this.#mayBeLate
  }

  /** Whether open logs that live may have been unable to renew their leases in time, as far as this one knows from its own renewals. */
  get #mayBeLate(): boolean {
    return performance.now() < this.#grace || this.#isSilent
  }

  /**
   * Whether the server may have been away for so long since the last renewal that the lease of another log has run out, which was renewed
   * before that as late as it may be.
   */
  get #isSilent(): boolean {
    const silence = performance.now() - this.#renewed
    return this.#renewed > -Infinity && silence > this.duration - this.duration / RENEWALS
  }

  /** The open logs that live: their owners, by instance. */
  async alive(): Promise<ReadonlyMap<string, string>> {
    const { names } = this.#connection
    const alive = new Map<string, string>()
    const cursor = new MessageCursor(this.#connection, { stream: names.leaseStream })
    for await (const { subject, data } of cursor.all()) {
      const instance = subject.slice(names.lease('').length)
      const owner = ownerOf(data)
      if (owner === undefined) alive.delete(instance)
      else alive.set(instance, owner)
    }
    return alive
  }

  /** Gives the lease up. */
  async release(): Promise<void> {
    this.#isReleased = true
    clearInterval(this.#timer)
    this.#timer = undefined
    if (this.#renewed === -Infinity) return
    this.#renewed = -Infinity
    await this.#connection.leases.delete(this.instance)
  }

  async #noticeReconnects(): Promise<void> {
    for await (const { type } of this.#connection.nats.status()) {
      if (type !== 'reconnect') continue
      this.#startGrace()
      if (this.#timer !== undefined) this.#renew().catch(() => {})
    }
  }

  async #renew(): Promise<void> {
    const started = performance.now()
    await this.#connection.leases.put(this.instance, JSON.stringify({ owner: this.#owner }))
    // The connection is not always lost when the server does not answer. It answers what was sent meanwhile once it is back.
    if (this.#isSilent) this.#startGrace()
    this.#renewed = started
  }

  /**
   * While a server is down, leases expire that no owner can renew. When it is back, the owners have the duration of a lease to renew them,
   * before others take over their names.
   */
  #startGrace(): void {
    this.#grace = performance.now() + this.duration
  }
}

/** The owner in the value of a key; undefined for a deleted key, which has no value. */
function ownerOf(data: Uint8Array): string | undefined {
  const value = parseJson(new TextDecoder().decode(data))
  return isObject(value) && typeof value['owner'] === 'string' ? value['owner'] : undefined
}
