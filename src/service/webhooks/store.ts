import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { nextTime } from '../database.ts'

/** An undelivered webhook. */
export interface PendingWebhook {
  /** The `webhook-id` header: the same at every attempt. */
  readonly id: string
  readonly url: string
  /** The exact request body: the same at every attempt. */
  readonly body: string
  /** When it was created, by the service's clock, Unix ms. */
  readonly createdAt: number
  /** Number of failed attempts. */
  readonly attempts: number
}

/** A webhook that was given up after 48 hours. */
export interface DeadWebhook extends PendingWebhook {
  /** The failure of the last attempt; null if there was no attempt. */
  readonly lastFailure: string | null
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS webhooks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    origin TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER, -- null: given up
    last_failure TEXT
  );
  CREATE INDEX IF NOT EXISTS webhooks_due ON webhooks (next_attempt_at, seq, origin, webhook_id);
`

/** Undelivered webhooks in the service's database. Delivered ones are deleted. */
export class WebhookStore {
  readonly #insert
  readonly #due
  readonly #next
  readonly #delete
  readonly #fail
  readonly #postpone
  readonly #expire
  readonly #count
  readonly #dead

  constructor(database: DatabaseSync) {
    database.exec(TABLES)
    this.#insert = database.prepare(
      'INSERT INTO webhooks (webhook_id, url, origin, body, created_at, next_attempt_at) VALUES (?, ?, ?, ?, ?, ?)',
    )
    this.#due = database.prepare(
      `SELECT * FROM webhooks WHERE next_attempt_at <= ?
       AND webhook_id NOT IN (SELECT value FROM json_each(?)) AND origin NOT IN (SELECT value FROM json_each(?))
       ORDER BY next_attempt_at, seq LIMIT 1`,
    )
    this.#next = database.prepare('SELECT min(next_attempt_at) AS at FROM webhooks WHERE next_attempt_at > ?')
    this.#delete = database.prepare('DELETE FROM webhooks WHERE webhook_id = ?')
    this.#fail = database.prepare(
      'UPDATE webhooks SET attempts = attempts + 1, next_attempt_at = ?, last_failure = ? WHERE webhook_id = ?',
    )
    this.#postpone = database.prepare('UPDATE webhooks SET next_attempt_at = ? WHERE webhook_id = ?')
    this.#expire = database.prepare(
      'UPDATE webhooks SET next_attempt_at = NULL WHERE next_attempt_at IS NOT NULL AND created_at < ?',
    )
    this.#count = database.prepare(
      'SELECT count(*) AS pending FROM webhooks WHERE next_attempt_at IS NOT NULL',
    )
    this.#dead = database.prepare('SELECT * FROM webhooks WHERE next_attempt_at IS NULL ORDER BY seq')
  }

  /** Stores a webhook, due at once. */
  add(id: string, url: string, body: string, now: number): void {
    this.#insert.run(id, url, originOf(url), body, now, now)
  }

  /** Returns the webhook that has been due for longest, except for these ids and origins. */
  due(now: number, ids: readonly string[], origins: readonly string[]): PendingWebhook | undefined {
    const row = this.#due.get(now, JSON.stringify(ids), JSON.stringify(origins))
    return row === undefined ? undefined : toWebhook(row)
  }

  /** The time when the next webhook becomes due. */
  nextAfter(now: number): number | undefined {
    return nextTime(this.#next, now)
  }

  /** Deletes a delivered webhook. */
  delivered(id: string): void {
    this.#delete.run(id)
  }

  /** Stores a failed attempt; the last one if `retryAt` is undefined. */
  failed(id: string, failure: string, retryAt: number | undefined): void {
    this.#fail.run(retryAt ?? null, failure, id)
  }

  /** Reschedules a webhook without an attempt. */
  postpone(id: string, until: number): void {
    this.#postpone.run(until, id)
  }

  /** Gives up webhooks that were created before this time. */
  expire(createdBefore: number): void {
    this.#expire.run(createdBefore)
  }

  /** Number of undelivered webhooks. */
  pending(): number {
    return Number(this.#count.get()?.['pending'])
  }

  /** Webhooks that were given up, oldest first. */
  dead(): DeadWebhook[] {
    return this.#dead.all().map(toDeadWebhook)
  }
}

/** Identifies the receiver of a URL: if it is down, it is down for all of its URLs. */
export function originOf(url: string): string {
  return new URL(url).origin
}

function toWebhook(row: Record<string, SQLOutputValue>): PendingWebhook {
  return {
    id: String(row['webhook_id']),
    url: String(row['url']),
    body: String(row['body']),
    createdAt: Number(row['created_at']),
    attempts: Number(row['attempts']),
  }
}

function toDeadWebhook(row: Record<string, SQLOutputValue>): DeadWebhook {
  const failure = row['last_failure']
  return { ...toWebhook(row), lastFailure: typeof failure === 'string' ? failure : null }
}
