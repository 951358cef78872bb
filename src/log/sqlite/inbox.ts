import { isObject, parseJson } from '../../protocol/json.ts'
import { WEBHOOK_HORIZON } from '../../protocol/limits.ts'
import type { InboxOutcome } from '../../protocol/webhook.ts'
import { LogFileError } from '../errors.ts'
import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import { MIN_KNOWN_IDS } from '../store/inbox-store.ts'
import type { InboxLimits, InboxPlace, PendingDelivery, PreparedDelivery } from '../store/inbox-store.ts'
import type { LogFile } from './log-file.ts'
import { originalText, storedText } from '../../protocol/stored-text.ts'

/** Ids that one transaction examines to forget them, beside one for each delivery that it stores. */
const EXAMINED = 16

interface Totals {
  /** The number of the last delivery. */
  last: number
  pending: number
  /** The size of the pending payloads. */
  bytes: number
}

/** The webhooks of a log. All methods but {@link isFull} run within a transaction. */
export class SqliteInbox {
  readonly #file: LogFile
  readonly #limits: Required<InboxLimits>
  readonly #knownIds: number
  readonly #statements: ReturnType<typeof prepare>
  /** Whether the totals were compared with the table: a row may have been deleted by hand. */
  #isCounted = false
  /** Whether it was full when it was looked at last. */
  #wasFull = false
  /** The number of the last id that was examined to forget it. */
  #examined = 0

  /** @param knownIds How many later deliveries must be stored before an id is forgotten. */
  constructor(file: LogFile, limits: Required<InboxLimits>, knownIds = MIN_KNOWN_IDS) {
    this.#file = file
    this.#limits = limits
    this.#knownIds = knownIds
    this.#statements = prepare(file)
  }

  put(deliveries: readonly PreparedDelivery[], now: number): readonly InboxOutcome[] {
    const totals = this.#isCounted ? this.#totals() : this.#count()
    const outcomes = deliveries.map((delivery) => this.#put(delivery, totals, Math.floor(now)))
    this.#forget(totals.last, now, EXAMINED + deliveries.length)
    this.#statements.setTotals.run(totals.last, totals.pending, totals.bytes)
    this.#wasFull = this.#isReached(totals)
    return outcomes
  }

  /** Called after the commit of the first {@link put}. */
  counted(): void {
    this.#isCounted = true
  }

  /** Marks deliveries as done. Their ids stay known. */
  done(ids: readonly string[]): void {
    if (ids.length === 0) return
    const totals = this.#totals()
    for (const id of ids) {
      const bytes = this.#statements.remove.get(storedText(id))?.['bytes']
      if (typeof bytes !== 'number') continue
      totals.pending -= 1
      totals.bytes -= bytes
    }
    this.#statements.setTotals.run(totals.last, totals.pending, totals.bytes)
  }

  pending(after: InboxPlace | null, limit: number): readonly PendingDelivery[] {
    const page: PendingDelivery[] = []
    let length = 0
    for (const row of this.#statements.pending.iterate(Number(after), limit)) {
      const delivery = this.#read(row)
      if (delivery === undefined) {
        // The ones before it come first.
        if (page.length > 0) break
        throw this.#unreadable(row)
      }
      page.push(delivery)
      length += delivery.length
      if (length >= MAX_PAGE_LENGTH) break
    }
    return page
  }

  hasMore(after: InboxPlace | null): boolean {
    return this.#statements.next.get(Number(after)) !== undefined
  }

  /** Reads the file only while the inbox is full, as far as this open log knows. */
  isFull(id: string): boolean {
    if (!this.#wasFull) return false
    this.#wasFull = this.#isReached(this.#totals())
    return this.#wasFull && this.#statements.find.get(storedText(id)) === undefined
  }

  #put({ id, timestamp, json }: PreparedDelivery, totals: Totals, now: number): InboxOutcome {
    const { insertId, insert, find } = this.#statements
    if (this.#isReached(totals)) return find.get(storedText(id)) === undefined ? 'full' : 'duplicate'
    const number = totals.last + 1
    if (insertId.run(number, storedText(id), now).changes === 0) return 'duplicate'
    insert.run(number, timestamp, json)
    totals.last = number
    totals.pending += 1
    totals.bytes += Buffer.byteLength(json)
    return 'stored'
  }

  #isReached({ pending, bytes }: Totals): boolean {
    return pending >= this.#limits.maxDeliveries || bytes >= this.#limits.maxBytes
  }

  #totals(): Totals {
    const { last_number: last, pending, bytes } = this.#statements.totals.get() ?? {}
    return { last: Number(last ?? 0), pending: Number(pending ?? 0), bytes: Number(bytes ?? 0) }
  }

  #count(): Totals {
    const { pending, bytes } = this.#statements.count.get() ?? {}
    return { ...this.#totals(), pending: Number(pending), bytes: Number(bytes) }
  }

  /**
   * Forgets ids that are done, old, and followed by enough later ones. It goes through them in steps, again from the first one
   * when it comes to one that is to be kept.
   */
  #forget(last: number, now: number, limit: number): void {
    if (last <= this.#knownIds) return
    const forgotten: number[] = []
    for (const row of this.#statements.oldest.iterate(this.#examined, limit)) {
      const number = Number(row['number'])
      if (number > last - this.#knownIds || now - Number(row['received']) <= WEBHOOK_HORIZON) {
        this.#examined = 0
        break
      }
      if (row['pending'] === null) forgotten.push(number)
      this.#examined = number
    }
    for (const number of forgotten) this.#statements.forget.run(number)
  }

  #read(row: Record<string, unknown>): PendingDelivery | undefined {
    const { number, id, timestamp, received, payload: json } = row
    const payload = typeof json === 'string' ? parseJson(json) : undefined
    if (typeof json !== 'string' || !isObject(payload) || typeof id !== 'string') return undefined
    return {
      id: originalText(id),
      timestamp: Number(timestamp),
      payload,
      place: String(number),
      received: Number(received),
      length: json.length,
    }
  }

  #unreadable({ number, id }: Record<string, unknown>): LogFileError {
    return new LogFileError(
      this.#file.name,
      `has a webhook that cannot be read: the payload of the row of rivulet_webhook with number ${String(number)} and the id ` +
        `${JSON.stringify(id)} is not a JSON object. Correct it, or give it up with: DELETE FROM rivulet_webhook WHERE ` +
        `number = ${String(number)}. It was left as it is`,
    )
  }
}

function prepare({ database }: LogFile) {
  return {
    totals: database.prepare('SELECT last_number, pending, bytes FROM rivulet_inbox'),
    setTotals: database.prepare('UPDATE rivulet_inbox SET last_number = ?, pending = ?, bytes = ?'),
    count: database.prepare(
      'SELECT count(*) AS pending, coalesce(sum(octet_length(payload)), 0) AS bytes FROM rivulet_webhook',
    ),
    find: database.prepare('SELECT 1 FROM rivulet_webhook_id WHERE id = ?'),
    insertId: database.prepare('INSERT INTO rivulet_webhook_id VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING'),
    insert: database.prepare('INSERT INTO rivulet_webhook VALUES (?, ?, ?)'),
    remove: database.prepare(
      `DELETE FROM rivulet_webhook WHERE number = (SELECT number FROM rivulet_webhook_id WHERE id = ?)
       RETURNING octet_length(payload) AS bytes`,
    ),
    pending: database.prepare(
      `SELECT number, id, timestamp, received, payload FROM rivulet_webhook JOIN rivulet_webhook_id USING (number)
       WHERE number > ? ORDER BY number LIMIT ?`,
    ),
    next: database.prepare('SELECT 1 FROM rivulet_webhook WHERE number > ? LIMIT 1'),
    oldest: database.prepare(
      `SELECT known.number, received, pending.number AS pending FROM rivulet_webhook_id AS known
       LEFT JOIN rivulet_webhook AS pending USING (number)
       WHERE known.number > ? ORDER BY known.number LIMIT ?`,
    ),
    forget: database.prepare('DELETE FROM rivulet_webhook_id WHERE number = ?'),
  }
}
