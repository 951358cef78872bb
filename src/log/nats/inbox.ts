import { isObject, parseJson } from '../../protocol/json.ts'
import { WEBHOOK_HORIZON } from '../../protocol/limits.ts'
import type { InboxOutcome } from '../../protocol/webhook.ts'
import { isWebhookOfSource } from '../state/of-source.ts'
import type { CopiedDelivery, CopiedDeliveryId } from '../store/copy-store.ts'
import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import { MIN_KNOWN_IDS } from '../store/inbox-store.ts'
import type { InboxLimits, InboxPlace, PendingDelivery, PreparedDelivery } from '../store/inbox-store.ts'
import type { Changes } from './server/changes.ts'
import { publishConditionally } from './server/conditional-publish.ts'
import type { Connection } from './server/connection.ts'
import { tokenOf } from './entries/entry-message.ts'
import { PARTS } from './server/chunked-payloads.ts'
import type { ChunkedPayloads, Payload } from './server/chunked-payloads.ts'
import { MessageCursor } from './server/message-cursor.ts'
import { hashOf } from './server/names.ts'
import { retryTransient } from './server/retry-transient.ts'

/** A delivery that is not done. */
interface Stored {
  readonly sequence: number
  readonly bytes: number
  /** The field that names its chunks. */
  readonly parts: string
}

/** A call of `put`. */
interface Put {
  readonly delivery: PreparedDelivery
  readonly received: number
  readonly resolve: (outcome: InboxOutcome) => void
  readonly reject: (error: unknown) => void
}

/** Marks a delivery as done, with when that was: its id stays known, and its payload is gone. */
const DONE = 'Rv-Done'

/** Number of ids that each `done` examines to forget them, beside one for each delivery that it marks. */
const EXAMINED = 16

/** The size of a payload, in bytes. */
const BYTES = 'Rv-Bytes'

/** How many messages are asked for at once. */
const CONCURRENCY = 32

/**
 * The webhooks of a log. Each has a subject of its own, on which it is stored only if the subject is empty: so each is stored once,
 * whichever open logs receive it. The other open logs see it there.
 */
export class NatsInbox {
  readonly #connection: Connection
  readonly #payloads: ChunkedPayloads
  readonly #changes: Changes
  readonly #limits: Required<InboxLimits>
  readonly #knownIds: number
  /** The number of the last message that was read. */
  #last = 0
  /** Deliveries that are not done, by the last token of their subject, in the order of arrival. */
  readonly #pending = new Map<string, Stored>()
  #bytes = 0
  /** Deliveries that are done, by the last token of their subject, the oldest first. */
  readonly #known = new Map<string, { readonly sequence: number; readonly done: number }>()
  #puts: Put[] = []
  #isPutting = false
  /** The read of new messages that is in flight, or the last one. */
  #looking: Promise<unknown> = Promise.resolve()
  /** A read of new messages that has not begun, for all calls that wait for one. */
  #nextLook: Promise<void> | undefined

  /** @param knownIds How many later deliveries must be done before an id is forgotten. */
  constructor(
    connection: Connection,
    payloads: ChunkedPayloads,
    changes: Changes,
    limits: Required<InboxLimits>,
    knownIds = MIN_KNOWN_IDS,
  ) {
    this.#connection = connection
    this.#knownIds = knownIds
    this.#payloads = payloads
    this.#changes = changes
    this.#limits = limits
  }

  put(delivery: PreparedDelivery, now: number): Promise<InboxOutcome> {
    return new Promise((resolve, reject) => {
      this.#puts.push({ delivery, received: Math.floor(now), resolve, reject })
      if (!this.#isPutting) void this.#putAll()
    })
  }

  /** Whether the inbox had no room for a delivery at the last read. It starts another read, so that the next answer is newer. */
  isFull(id: string): boolean {
    if (!this.#hasNoRoom(0, 0)) return false
    this.#look().catch(() => {})
    return !this.#pending.has(hashOf(id))
  }

  /** Marks deliveries as done. Others are ignored. */
  async done(ids: readonly string[], now: number): Promise<void> {
    if (ids.length === 0) return
    await this.#look()
    await Promise.all([...new Set(ids)].map((id) => this.#done(id, now)))
    await this.#look()
    await this.#forgetIds(now, EXAMINED + ids.length)
  }

  async pending(after: InboxPlace | null, limit: number): Promise<readonly PendingDelivery[]> {
    await this.#look()
    const wanted = [...this.#pending.values()].filter(({ sequence }) => sequence > Number(after))
    const page: PendingDelivery[] = []
    let length = 0
    for (let at = 0; at < wanted.length; at += CONCURRENCY) {
      const some = wanted.slice(at, at + CONCURRENCY)
      const found = await Promise.all(some.map(({ sequence }) => this.#read(sequence)))
      for (const delivery of found) {
        if (page.length >= limit || length >= MAX_PAGE_LENGTH) return page
        // Done meanwhile.
        if (delivery === undefined) continue
        page.push(delivery)
        length += delivery.length
      }
    }
    return page
  }

  async hasMore(after: InboxPlace | null): Promise<boolean> {
    await this.#look()
    return [...this.#pending.values()].some(({ sequence }) => sequence > Number(after))
  }

  /** Deliveries that are not done. */
  async totals(): Promise<{ readonly pending: number; readonly bytes: number }> {
    await this.#look()
    return { pending: this.#pending.size, bytes: this.#bytes }
  }

  /** Removes the deliveries of a source. Their ids stay known. */
  async forget(source: string, now: number): Promise<void> {
    await this.#look()
    const pending = Array.from(this.#pending.values())
    for (const { sequence } of pending) {
      const delivery = await this.#read(sequence)
      if (delivery !== undefined && isWebhookOfSource(JSON.stringify(delivery.payload), source)) {
        await this.#done(delivery.id, now)
      }
    }
    await this.#look()
  }

  /** Everything in the inbox, for a copy of the log: known ids first. */
  async *copied(): AsyncGenerator<CopiedDeliveryId | CopiedDelivery, void> {
    await this.#look()
    for (const { sequence, done } of this.#known.values()) {
      const id = parseJson((await this.#text(sequence)) ?? '')
      if (typeof id === 'string') yield { kind: 'deliveryId', id, received: done }
    }
    for (const { sequence } of this.#pending.values()) {
      const found = await this.#stored(sequence)
      if (found !== undefined) yield { kind: 'delivery', ...found }
    }
  }

  /** Adds the id of a webhook that was recorded in another log. */
  async putDone(id: string, done: number): Promise<void> {
    await this.#publishDone(id, done, 0)
  }

  async #putAll(): Promise<void> {
    this.#isPutting = true
    while (this.#puts.length > 0) {
      const puts = this.#puts
      this.#puts = []
      try {
        await this.#putSome(puts)
      } catch (error) {
        for (const { reject } of puts) reject(error)
      }
    }
    this.#isPutting = false
  }

  /** Stores deliveries, as many at once as certainly fit into the limits. */
  async #putSome(puts: readonly Put[]): Promise<void> {
    await this.#look()
    const payloads = await Promise.all(puts.map((put) => this.#payload(put)))
    let isStored = false
    for (let at = 0; at < puts.length;) {
      const some = new Map<string, readonly [Put, Promise<number | undefined>]>()
      let bytes = 0
      for (; at < puts.length; at++) {
        const put = puts[at]
        const payload = payloads[at]
        if (put === undefined || payload === undefined) continue
        const token = hashOf(put.delivery.id)
        if (this.#pending.has(token)) {
          put.resolve('duplicate')
          continue
        }
        // The results of the deliveries before this one decide.
        if (some.has(token)) break
        if (this.#hasNoRoom(some.size, bytes)) {
          if (some.size > 0) break
          put.resolve((await this.#isKnown(put.delivery.id)) ? 'duplicate' : 'full')
          continue
        }
        bytes += Buffer.byteLength(put.delivery.json)
        some.set(token, [put, this.#store(put, payload)])
      }
      // All at once: each may fail before the others.
      await Promise.all(
        Array.from(some.values(), ([{ resolve, reject }, stored]) =>
          stored.then((sequence) => {
            isStored ||= sequence !== undefined
            resolve(sequence === undefined ? 'duplicate' : 'stored')
          }, reject),
        ),
      )
      if (some.size > 0) await this.#look()
    }
    if (isStored) this.#changes.notify()
  }

  #payload({ delivery: { id, timestamp, json }, received }: Put): Promise<Payload> {
    const head = JSON.stringify({ id, timestamp, received })
    return this.#payloads.prepare(hashOf(id), `${head}\n${json}`)
  }

  #store({ delivery: { id, json } }: Put, { payload, fields }: Payload): Promise<number | undefined> {
    const { names } = this.#connection
    return publishConditionally(this.#connection, {
      stream: names.state,
      subject: names.delivery(id),
      id: `in-${crypto.randomUUID()}`,
      expect: 0,
      fields: { ...fields, [BYTES]: String(Buffer.byteLength(json)) },
      payload,
    })
  }

  /** Forgets the oldest ids. */
  async #forgetIds(now: number, limit: number): Promise<void> {
    const { jsm, names } = this.#connection
    let examined = 0
    for (const [token, { sequence, done }] of this.#known) {
      if (examined++ === limit) return
      if (this.#known.size <= this.#knownIds || now - done <= WEBHOOK_HORIZON) return
      this.#known.delete(token)
      const purge = { filter: names.deliveryOf(token), seq: sequence + 1 }
      await retryTransient(this.#connection, () => jsm.streams.purge(names.state, purge))
    }
  }

  async #done(id: string, now: number): Promise<void> {
    const token = hashOf(id)
    const stored = this.#pending.get(token)
    if (stored === undefined) return
    await this.#publishDone(id, now, stored.sequence)
    await retryTransient(this.#connection, () => this.#payloads.remove(token, stored.parts))
  }

  #publishDone(id: string, done: number, expect: number): Promise<number | undefined> {
    const { names } = this.#connection
    return publishConditionally(this.#connection, {
      stream: names.state,
      subject: names.delivery(id),
      id: `done-${crypto.randomUUID()}`,
      expect,
      fields: { [DONE]: String(Math.floor(done)) },
      // For a copy of the log: the subject has its hash alone.
      payload: JSON.stringify(id),
      isRollup: expect > 0,
    })
  }

  async #read(sequence: number): Promise<PendingDelivery | undefined> {
    const found = await this.#stored(sequence)
    if (found === undefined) return undefined
    const { json, ...delivery } = found
    return { ...delivery, payload: parseJson(json), place: String(sequence), length: json.length }
  }

  async #stored(sequence: number): Promise<(PreparedDelivery & { readonly received: number }) | undefined> {
    const text = await this.#text(sequence)
    if (text === undefined) return undefined
    const end = text.indexOf('\n')
    const head = parseJson(text.slice(0, end))
    if (!isObject(head)) return undefined
    const { id, timestamp, received } = head
    return {
      id: String(id),
      timestamp: Number(timestamp),
      received: Number(received),
      json: text.slice(end + 1),
    }
  }

  #text(sequence: number): Promise<string | undefined> {
    const { jsm, names } = this.#connection
    return retryTransient(this.#connection, async () => {
      const found = await jsm.streams.getMessage(names.state, { seq: sequence })
      return found === null
        ? undefined
        : this.#payloads.read({ data: found.data, field: (name) => found.header.get(name) })
    })
  }

  async #isKnown(id: string): Promise<boolean> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.delivery(id) }
    return (await retryTransient(this.#connection, () => jsm.streams.getMessage(names.state, query))) !== null
  }

  #hasNoRoom(more: number, moreBytes: number): boolean {
    const { maxDeliveries, maxBytes } = this.#limits
    return this.#pending.size + more >= maxDeliveries || this.#bytes + moreBytes >= maxBytes
  }

  /** Reads new messages. */
  #look(): Promise<void> {
    this.#nextLook ??= this.#looking.then(async () => {
      this.#nextLook = undefined
      await this.#readOn()
    })
    this.#looking = this.#nextLook.catch(() => {})
    return this.#nextLook
  }

  async #readOn(): Promise<void> {
    const { names } = this.#connection
    const cursor = new MessageCursor(this.#connection, {
      stream: names.state,
      subject: names.allDeliveries,
      after: this.#last,
      fieldsOnly: true,
    })
    for await (const message of cursor.all()) {
      const token = tokenOf(message.subject)
      this.#bytes -= this.#pending.get(token)?.bytes ?? 0
      this.#pending.delete(token)
      this.#known.delete(token)
      const done = message.field(DONE)
      if (done !== '') {
        this.#known.set(token, { sequence: message.sequence, done: Number(done) })
        continue
      }
      const bytes = Number(message.field(BYTES))
      this.#pending.set(token, { sequence: message.sequence, bytes, parts: message.field(PARTS) })
      this.#bytes += bytes
    }
    this.#last = cursor.last
  }
}
