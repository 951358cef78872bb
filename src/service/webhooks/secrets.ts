import { createHash, randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../clock.ts'
import { transaction } from '../database.ts'

/** The most secrets that sign a webhook. Each may sign twice, and receivers refuse a header of more than 32 signatures. */
export const MAX_SECRETS = 8

interface Secret {
  readonly secret: string
  /** When it has been replaced for long enough, in Unix ms of the clock; null if it is not replaced. */
  readonly validUntil: number | null
}

/**
 * The secrets that sign webhooks: the secrets of the options, until a rotation replaces them, and the secrets of rotations, which the
 * database keeps. When a secret has expired, the database keeps only its hash, so that the same option of a later start does not bring the
 * secret back.
 */
export class WebhookSecrets {
  readonly #database: DatabaseSync
  readonly #clock: Clock
  /** The newest first. */
  #secrets: readonly [Secret, ...Secret[]]

  /** @param given The secrets of the options, the newest first; empty for a random one. */
  constructor(database: DatabaseSync, clock: Clock, given: readonly string[]) {
    database.exec(`
      CREATE TABLE IF NOT EXISTS webhook_secrets (
        hash TEXT PRIMARY KEY,
        secret TEXT, -- null: its time is over
        position INTEGER NOT NULL, -- 0 for the newest
        valid_until INTEGER
      ) STRICT;
    `)
    this.#database = database
    this.#clock = clock
    const known = database.prepare('SELECT 1 FROM webhook_secrets WHERE hash = ?')
    const unknown = given.filter((secret) => known.get(hashOf(secret)) === undefined)
    const stored = database
      .prepare('SELECT secret, valid_until FROM webhook_secrets WHERE secret IS NOT NULL ORDER BY position')
      .all()
      .map((row) => ({
        secret: String(row['secret']),
        validUntil: row['valid_until'] === null ? null : Number(row['valid_until']),
      }))
    const [newest = unreplaced(newSecret()), ...others] = [...unknown.map(unreplaced), ...stored]
    this.#secrets = [newest, ...others]
    this.#forget()
  }

  /** The secrets that sign now, the newest first. */
  current(): readonly [string, ...string[]] {
    const [newest, ...others] = this.#secrets
    const now = this.#clock.now()
    const valid = others.filter(({ validUntil }) => validUntil === null || validUntil > now)
    return [newest.secret, ...valid.slice(0, MAX_SECRETS - 1).map(({ secret }) => secret)]
  }

  /** Makes a new secret, and returns it. The others sign for another `overlap` ms of the clock. */
  rotate(overlap: number): string {
    const until = this.#clock.now() + overlap
    const replaced = this.#secrets.map(({ secret, validUntil }) => ({
      secret,
      validUntil: Math.min(validUntil ?? until, until),
    }))
    const secrets = [unreplaced(newSecret()), ...replaced] as const
    const store = this.#database.prepare(
      `INSERT INTO webhook_secrets (hash, secret, position, valid_until) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET position = excluded.position, valid_until = excluded.valid_until`,
    )
    transaction(this.#database, () => {
      for (const [position, { secret, validUntil }] of secrets.entries())
        store.run(hashOf(secret), secret, position, validUntil)
      this.#forget()
    })
    this.#secrets = [secrets[0], ...replaced.filter(({ validUntil }) => validUntil > this.#clock.now())]
    return secrets[0].secret
  }

  #forget(): void {
    this.#database
      .prepare('UPDATE webhook_secrets SET secret = NULL WHERE valid_until <= ? AND secret IS NOT NULL')
      .run(this.#clock.now())
  }
}

function unreplaced(secret: string): Secret {
  return { secret, validUntil: null }
}

function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
