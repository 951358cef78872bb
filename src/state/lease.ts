import { hostname } from 'node:os'
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkInteger, checkText } from '../protocol/check.ts'
import { MAX_TIMER_DELAY } from '../protocol/timer-limit.ts'
import { CheckpointError, CheckpointInUseError, StateInUseError } from './errors.ts'
import { isGone, thisProcess } from './process-identity.ts'
import type { ProcessIdentity } from './process-identity.ts'
import type { StateFile } from './state-file.ts'

/** How a store is held against other processes. */
export interface LeaseOptions {
  /** Who holds it, as a message to the other process names it. Default the process id and the host. */
  readonly owner?: string
  /**
   * How long the hold lasts without renewal, in ms; it is renewed three times as often, and by a save that finds this late.
   * A process that was killed blocks its successor on the same host not at all, but for as long on another host or in
   * another container, one that was started again included. Default 10,000.
   */
  readonly leaseDuration?: number
  /** Unix time in ms. Default `Date.now`. */
  readonly clock?: () => number
}

/** The table of leases. A row stays when its lease is given up, so that tokens never come twice. */
export const LEASE_SCHEMA = `
  CREATE TABLE IF NOT EXISTS rivulet_lease (
    name TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    owner TEXT NOT NULL,
    host TEXT NOT NULL, -- within which the pid means something; older versions wrote the host's name alone
    pid INTEGER NOT NULL,
    process_started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL -- 0: given up
  ) WITHOUT ROWID, STRICT;
`

/** What a lease is for. */
export type StateKind = 'checkpoint' | 'inbox'

/**
 * The right of one process at a time to some state in a file.
 *
 * A lease that ran out, or whose process is gone, is taken over. Its token grows with each owner and is checked within
 * each writing transaction: whoever was stopped for longer than his lease cannot write over his successor.
 */
export class Lease {
  readonly #file: StateFile
  readonly #name: string
  readonly #what: StateKind
  readonly #owner: string
  readonly #duration: number
  readonly #clock: () => number
  readonly #select
  readonly #held
  readonly #take
  readonly #renew
  readonly #giveUp
  #token: number | undefined
  #lost = false
  #timer: NodeJS.Timeout | undefined

  /** @param file A file whose schema has {@link LEASE_SCHEMA}. */
  constructor(file: StateFile, what: StateKind, name: string, options: Required<LeaseOptions>) {
    this.#file = file
    this.#what = what
    this.#name = `${what}:${name}`
    this.#owner = options.owner
    this.#duration = options.leaseDuration
    this.#clock = options.clock
    const { database } = file
    this.#select = database.prepare('SELECT * FROM rivulet_lease WHERE name = ?')
    this.#held = database.prepare('SELECT expires_at FROM rivulet_lease WHERE name = ? AND token = ?')
    this.#take = database.prepare(
      `INSERT INTO rivulet_lease VALUES (:name, :token, :owner, :host, :pid, :startedAt, :expiresAt)
       ON CONFLICT DO UPDATE SET token = :token, owner = :owner, host = :host, pid = :pid,
         process_started_at = :startedAt, expires_at = :expiresAt`,
    )
    this.#renew = database.prepare('UPDATE rivulet_lease SET expires_at = ? WHERE name = ? AND token = ?')
    this.#giveUp = database.prepare('UPDATE rivulet_lease SET expires_at = 0 WHERE name = ? AND token = ?')
  }

  /**
   * Takes the lease, and renews it from then on.
   *
   * @throws {StateInUseError} where another owner has it.
   */
  acquire(): void {
    this.#token = this.#file.transaction(() => this.#file.attempt(() => this.#takeOver()))
    this.#lost = false
    // Other processes only need to see that this one lives, so the timer must not keep it alive.
    this.#timer = setInterval(() => this.#renewQuietly(), this.#duration / 3).unref()
  }

  /**
   * Makes sure of the lease within a transaction that is about to write, and renews it where that is due. To write it each
   * time would be a page more for each transaction, where most have two or three to write.
   *
   * @throws {StateInUseError} where another owner has taken it: nothing may be written any more.
   */
  renew(): void {
    const now = this.#clock()
    if (this.#expiry() - now < (this.#duration * 2) / 3) this.#extend(now)
  }

  /**
   * As {@link renew}, without writing.
   *
   * @throws {StateInUseError} where another owner has taken it: nothing may be written any more.
   */
  check(): void {
    this.#expiry()
  }

  /**
   * Refuses where another owner is known to have taken the lease, without asking the file.
   *
   * @throws {StateInUseError} where it is so.
   */
  checkKnown(): void {
    this.#checkToken()
  }

  /** Gives the lease up, if it is held. */
  release(): void {
    clearInterval(this.#timer)
    const token = this.#token
    this.#token = undefined
    if (token !== undefined) this.#file.attempt(() => this.#giveUp.run(this.#name, token))
  }

  #takeOver(): number {
    const row = this.#row()
    const now = this.#clock()
    if (row !== undefined && isHeld(row, now)) throw inUse(this.#file.name, this.#what, row)
    const token = (row?.token ?? 0) + 1
    this.#take.run({
      name: this.#name,
      token,
      owner: this.#owner,
      ...thisProcess,
      expiresAt: now + this.#duration,
    })
    return token
  }

  #checkToken(): number {
    if (this.#token !== undefined) return this.#token
    throw this.#lost
      ? this.#takenOver()
      : new CheckpointError(`the ${this.#what} in ${this.#file.name} is not open`)
  }

  /** When it runs out, as the file has it. */
  #expiry(): number {
    const token = this.#checkToken()
    const row = this.#file.attempt(() => this.#held.get(this.#name, token))
    if (row === undefined) throw this.#lose()
    return Number(row['expires_at'])
  }

  #extend(now: number): void {
    const token = this.#checkToken()
    const { changes } = this.#file.attempt(() => this.#renew.run(now + this.#duration, this.#name, token))
    if (changes === 0) throw this.#lose()
  }

  #renewQuietly(): void {
    try {
      this.#extend(this.#clock())
    } catch {
      // Taken over, or a file that is locked or fails right now: whoever writes next is told.
    }
  }

  #lose(): StateInUseError {
    clearInterval(this.#timer)
    this.#token = undefined
    this.#lost = true
    return this.#takenOver()
  }

  #takenOver(): StateInUseError {
    const row = this.#row()
    return stateInUse(
      this.#file.name,
      this.#what,
      `was taken over by ${row?.owner ?? 'another process'}, since this process did not renew its lease for ` +
        `${this.#duration} ms: nothing more is written by this one. End it, and see that only one runs`,
      row,
    )
  }

  #row(): LeaseRow | undefined {
    const row = this.#file.attempt(() => this.#select.get(this.#name))
    return row === undefined ? undefined : leaseRow(row)
  }
}

/**
 * Refuses where anybody holds state of this kind in the file, under whatever name.
 *
 * @param now Unix time in ms.
 * @throws {StateInUseError} where it is so.
 */
export function checkNotHeld(database: DatabaseSync, file: string, what: StateKind, now: number): void {
  database.exec(LEASE_SCHEMA)
  const rows = database.prepare('SELECT * FROM rivulet_lease WHERE name GLOB ?').all(`${what}:*`)
  const holder = rows.map(leaseRow).find((row) => isHeld(row, now))
  if (holder !== undefined) throw inUse(file, what, holder)
}

function leaseRow(row: Readonly<Record<string, SQLOutputValue>>): LeaseRow {
  return {
    token: Number(row['token']),
    owner: String(row['owner']),
    host: String(row['host']),
    pid: Number(row['pid']),
    startedAt: Number(row['process_started_at']),
    expiresAt: Number(row['expires_at']),
  }
}

function isHeld(row: LeaseRow, now: number): boolean {
  return row.expiresAt > now && !isGone(row)
}

function inUse(file: string, what: StateKind, row: LeaseRow): StateInUseError {
  const until = new Date(row.expiresAt).toISOString()
  return stateInUse(
    file,
    what,
    `is in use by ${row.owner} until ${until}, unless renewed: end that process first, or give this one a file or a ` +
      'name of its own',
    row,
  )
}

function stateInUse(
  file: string,
  what: StateKind,
  message: string,
  row: LeaseRow | undefined,
): StateInUseError {
  const holder = { file, owner: row?.owner ?? 'another process', expiresAt: row?.expiresAt }
  const InUseError = what === 'checkpoint' ? CheckpointInUseError : StateInUseError
  return new InUseError(`the ${what} in ${file} ${message}`, holder)
}

/** The settings, checked, with their defaults. */
export function leaseOptions(options: LeaseOptions): Required<LeaseOptions> {
  const {
    owner = `process ${process.pid} on ${hostname()}`,
    leaseDuration = 10_000,
    clock = Date.now,
  } = options
  checkText('owner', owner)
  checkInteger('leaseDuration', leaseDuration, 1, MAX_TIMER_DELAY)
  if (typeof clock !== 'function') throw new ArgumentError('clock', 'a function', clock)
  return { owner, leaseDuration, clock }
}

interface LeaseRow extends ProcessIdentity {
  readonly token: number
  readonly owner: string
  readonly expiresAt: number
}
