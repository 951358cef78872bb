import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkInteger } from '../protocol/check.ts'
import { isObject } from '../protocol/event.ts'
import { parseJson } from '../protocol/json.ts'
import { WEBHOOK_HORIZON } from '../protocol/limits.ts'
import type { InboxOutcome, WebhookDelivery } from '../protocol/webhook.ts'
import { StateFileError } from './errors.ts'
import type { Inbox } from './inbox.ts'
import { Lease, LEASE_SCHEMA, leaseOptions } from './lease.ts'
import type { LeaseOptions } from './lease.ts'
import { StateFile } from './state-file.ts'
import type { StateLayout } from './state-file.ts'

/** Settings of {@link sqliteInbox}. */
export interface SqliteInboxOptions extends LeaseOptions {
  /** Deliveries that may be stored and not done; the inbox is full beyond that. Default 10,000. */
  readonly maxPending?: number
  /** How long an id is known, in ms. Default 48 hours, for as long as the service retries (§6.1). */
  readonly remember?: number
}

/** An inbox in an SQLite database. */
export interface SqliteInbox extends Inbox {
  done(id: string): Promise<void>
  rewind(): void
  /**
   * Commits what is still to be committed and gives the inbox up for the next process. Puts are rejected from then on.
   *
   * @throws {StateFileError} where the inbox cannot be given up; it then runs out by itself.
   */
  close(): void
}

const LAYOUT: StateLayout = {
  part: 'inbox',
  version: 1,
  tables: ['rivulet_lease', 'rivulet_inbox'],
  schema: `
    ${LEASE_SCHEMA}
    CREATE TABLE IF NOT EXISTS rivulet_inbox (
      seq INTEGER PRIMARY KEY, -- in the order of coming
      id TEXT NOT NULL UNIQUE, -- the webhook-id
      timestamp INTEGER NOT NULL, -- the webhook-timestamp, Unix s
      payload TEXT, -- JSON; null once it is done, when only the id is needed
      received_at INTEGER NOT NULL, -- Unix ms
      done_at INTEGER
    ) STRICT;
    -- What waits is found among all that is remembered for 48 hours.
    CREATE INDEX IF NOT EXISTS rivulet_inbox_waiting ON rivulet_inbox (seq) WHERE done_at IS NULL;
  `,
}

/**
 * How long a commit waits at the most while each turn of the event loop brings more to be stored, in ms. A server accepts
 * about one connection in a turn, so that a burst would otherwise be synced to the disk one by one.
 */
const MAX_GATHERING = 5

/** How often ids that are too old are looked for, in ms. */
const PRUNE_EVERY = 10 * 60_000

/**
 * An inbox in an SQLite file, or in a database of your own: a delivery that was answered 2xx is handed out until it
 * is done: again after a restart, and again to a new subscriber of the receiver who finds no other. For one process at a
 * time.
 *
 * All that comes in one turn of the event loop is committed together and synced to the disk before any of it is answered,
 * so that neither a crash nor a power cut loses it. Of a database of your own the settings are yours: the same takes
 * write-ahead logging with `synchronous` at `FULL`.
 *
 * `client.watch({ webhooks: receiver, checkpoint })` tells what is done. Without a checkpoint call
 * `receiver.done(delivery.id)` yourself: what is never done is handed out again each time, and counts as pending.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 * @throws {StateFileError} for a file that cannot be used, and for a stored delivery that cannot be read. The file is left as it is.
 * @throws {StateInUseError} where another process holds the inbox.
 * @example
 * const receiver = createWebhookReceiver({ secrets, inbox: sqliteInbox('inbox.db') })
 */
export function sqliteInbox(file: string | DatabaseSync, options: SqliteInboxOptions = {}): SqliteInbox {
  const { maxPending = 10_000, remember = WEBHOOK_HORIZON } = options
  checkInteger('maxPending', maxPending, 1)
  checkDuration('remember', remember, true)
  return new SqliteTableInbox(file, maxPending, remember, leaseOptions(options))
}

/** Is told what became of it once its commit is through. */
type Waiting<Outcome> = Pick<PromiseWithResolvers<Outcome>, 'resolve' | 'reject'>

/** A delivery that waits for its commit. */
interface Put extends Waiting<InboxOutcome> {
  readonly id: string
  readonly timestamp: number
  readonly json: string
}

/** The word that a delivery is done, which waits for its commit. */
interface DoneMark extends Waiting<void> {
  readonly id: string
}

class SqliteTableInbox implements SqliteInbox {
  readonly durable = true
  readonly #file: StateFile
  readonly #maxPending: number
  readonly #remember: number
  readonly #clock: () => number
  readonly #lease: Lease
  readonly #statements: ReturnType<typeof prepare>
  #puts: Put[] = []
  #marks: DoneMark[] = []
  #commit: NodeJS.Immediate | undefined
  #closed = false
  /** Number of the delivery that was stored last. No other process stores any while this one has the lease. */
  #seq = 0
  /** Number of the delivery that was handed out last. */
  #taken = 0
  /** Stored and not done. */
  #pending = 0
  #prunedAt: number

  constructor(
    target: string | DatabaseSync,
    maxPending: number,
    remember: number,
    lease: Required<LeaseOptions>,
  ) {
    this.#file = new StateFile(target, LAYOUT, { synchronous: 'FULL' })
    this.#maxPending = maxPending
    this.#remember = remember
    this.#clock = lease.clock
    this.#prunedAt = lease.clock()
    try {
      this.#lease = new Lease(this.#file, 'inbox', 'default', lease)
      this.#statements = prepare(this.#file.database)
      this.#lease.acquire()
    } catch (error) {
      this.#file.close()
      throw error
    }
    try {
      this.#file.attempt(() => this.#open())
    } catch (error) {
      this.close()
      throw error
    }
  }

  put(delivery: WebhookDelivery, json?: string): Promise<InboxOutcome> {
    if (this.#closed) return Promise.reject(closed(this.#file.name))
    // As a receiver has it. Anything else could not be told from damage when it is read.
    if (!isObject(delivery.payload)) {
      return Promise.reject(new ArgumentError('delivery.payload', 'an object', delivery.payload))
    }
    const { id, timestamp, payload } = delivery
    return new Promise((resolve, reject) => {
      this.#puts.push({ id, timestamp, json: json ?? JSON.stringify(payload), resolve, reject })
      this.#commitSoon()
    })
  }

  take(): WebhookDelivery | undefined {
    this.#lease.checkKnown()
    const row = this.#file.attempt(() => this.#statements.next.get(this.#taken))
    if (row === undefined) return undefined
    const delivery = this.#read(row)
    this.#taken = Number(row['seq'])
    return delivery
  }

  done(id: string): Promise<void> {
    if (this.#closed) return Promise.reject(closed(this.#file.name))
    return new Promise((resolve, reject) => {
      this.#marks.push({ id, resolve, reject })
      this.#commitSoon()
    })
  }

  rewind(): void {
    this.#lease.checkKnown()
    // What was said to be done, and waits to be marked so, is not handed out again.
    clearImmediate(this.#commit)
    this.#commitAll()
    this.#taken = 0
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearImmediate(this.#commit)
    this.#commitAll()
    try {
      this.#lease.release()
    } finally {
      this.#file.close()
    }
  }

  #open(): void {
    const { last, pending, suspects } = this.#statements
    for (const row of suspects.iterate()) this.#read(row)
    this.#seq = Number(last.get()?.['seq'] ?? 0)
    this.#pending = Number(pending.get()?.['pending'])
    this.#prune()
  }

  /** Commits at the end of the first turn of the event loop that brings nothing more. */
  #commitSoon(): void {
    if (this.#commit !== undefined) return
    const latest = performance.now() + MAX_GATHERING
    const gather = (known: number) => {
      const count = this.#puts.length + this.#marks.length
      if (count === known || performance.now() >= latest) this.#commitAll()
      else this.#commit = setImmediate(gather, count)
    }
    this.#commit = setImmediate(gather, 0)
  }

  #commitAll(): void {
    const puts = this.#puts
    const marks = this.#marks
    this.#puts = []
    this.#marks = []
    this.#commit = undefined
    try {
      const outcomes = this.#write(puts, marks)
      for (const [index, outcome] of outcomes.entries()) puts[index]?.resolve(outcome)
      for (const mark of marks) mark.resolve()
    } catch (error) {
      for (const put of puts) put.reject(error)
      // They make room, which may be what was lacking.
      if (puts.length > 0) this.#commitMarks(marks)
      else for (const mark of marks) mark.reject(error)
    }
  }

  #commitMarks(marks: readonly DoneMark[]): void {
    if (marks.length === 0) return
    try {
      this.#write([], marks)
      for (const mark of marks) mark.resolve()
    } catch (error) {
      for (const mark of marks) mark.reject(error)
    }
  }

  /** One transaction. */
  #write(puts: readonly Put[], marks: readonly DoneMark[]): InboxOutcome[] {
    if (puts.length === 0 && marks.length === 0) return []
    const before = this.#pending
    try {
      return this.#file.transaction(() => {
        this.#lease.renew()
        return this.#file.attempt(() => {
          const now = this.#clock()
          for (const { id } of marks) this.#pending -= Number(this.#statements.done.run(now, id).changes)
          const outcomes = puts.map((put) => this.#store(put, now))
          // Either way: the clock may have been set back.
          if (Math.abs(now - this.#prunedAt) >= PRUNE_EVERY) this.#prune()
          return outcomes
        })
      })
    } catch (error) {
      this.#pending = before
      throw error
    }
  }

  #store({ id, timestamp, json }: Put, now: number): InboxOutcome {
    if (this.#pending >= this.#maxPending) {
      return this.#statements.find.get(id) === undefined ? 'full' : 'duplicate'
    }
    const { changes } = this.#statements.insert.run(this.#seq + 1, id, timestamp, json, now)
    if (changes === 0) return 'duplicate'
    this.#seq += 1
    this.#pending += 1
    return 'stored'
  }

  /** Forgets what was done and is too old to be retried. */
  #prune(): void {
    this.#prunedAt = this.#clock()
    this.#statements.prune.run({ horizon: this.#prunedAt - this.#remember })
  }

  #read(row: Record<string, SQLOutputValue>): WebhookDelivery {
    const { seq, id, timestamp, payload } = row
    if (typeof id === 'string' && typeof timestamp === 'number' && typeof payload === 'string') {
      const parsed = parseJson(payload)
      if (isObject(parsed)) return { id, timestamp, payload: parsed }
    }
    throw new StateFileError(
      this.#file.name,
      `has a webhook that cannot be read: the row of rivulet_inbox with seq ${String(seq)} and id ` +
        `${JSON.stringify(id)} holds no JSON object. Put its payload right, or give the webhook up with: ` +
        `DELETE FROM rivulet_inbox WHERE seq = ${String(seq)}. It was left as it is`,
    )
  }
}

function prepare(database: DatabaseSync) {
  return {
    insert: database.prepare(
      'INSERT INTO rivulet_inbox VALUES (?, ?, ?, ?, ?, NULL) ON CONFLICT (id) DO NOTHING',
    ),
    find: database.prepare('SELECT 1 FROM rivulet_inbox WHERE id = ?'),
    next: database.prepare(
      'SELECT seq, id, timestamp, payload FROM rivulet_inbox WHERE seq > ? AND done_at IS NULL ORDER BY seq LIMIT 1',
    ),
    done: database.prepare(
      'UPDATE rivulet_inbox SET payload = NULL, done_at = ? WHERE id = ? AND done_at IS NULL',
    ),
    last: database.prepare('SELECT max(seq) AS seq FROM rivulet_inbox'),
    pending: database.prepare('SELECT count(*) AS pending FROM rivulet_inbox WHERE done_at IS NULL'),
    // SQLite takes less for JSON than JavaScript does, very deep nesting for instance: these are looked at again.
    suspects: database.prepare(
      `SELECT seq, id, timestamp, payload FROM rivulet_inbox
       WHERE done_at IS NULL AND CASE WHEN json_valid(payload) THEN json_type(payload) <> 'object' ELSE true END`,
    ),
    // Rows stand in the order of coming, so only those that are too old are looked at.
    prune: database.prepare(
      `DELETE FROM rivulet_inbox
       WHERE done_at IS NOT NULL AND received_at < :horizon AND seq < coalesce(
         (SELECT seq FROM rivulet_inbox WHERE received_at >= :horizon ORDER BY seq LIMIT 1),
         9223372036854775807
       )`,
    ),
  }
}

function closed(file: string): StateFileError {
  return new StateFileError(file, 'takes no more webhooks, since its inbox is closed')
}
