import { randomBytes } from 'node:crypto'
import type { Fence } from '../store/contract.ts'
import { FencedError, LogInUseError } from '../errors.ts'
import type { LogFile } from './log-file.ts'
import { Slots } from './slots.ts'
import type { Slot } from './slots.ts'
import { originalText, storedText } from '../../protocol/stored-text.ts'

/**
 * The claims of names, as one open log has them. Its own claims rest on its slot, which it takes with its first claim, so that
 * a log that only reads writes nothing.
 */
export class SqliteClaims {
  readonly #file: LogFile
  readonly #owner: string
  readonly #slots: Slots
  readonly #instance = randomBytes(8).toString('hex')
  readonly #find
  readonly #take
  readonly #token
  readonly #give
  readonly #giveAll
  readonly #clear
  readonly #revoke
  #slot: Slot | undefined

  constructor(file: LogFile, owner: string) {
    this.#file = file
    this.#owner = owner
    this.#slots = new Slots(file.path)
    const prepare = (sql: string) => file.database.prepare(sql)
    this.#find = prepare('SELECT owner, slot, instance FROM rivulet_claim WHERE name = ?')
    this.#take = prepare(
      `INSERT INTO rivulet_claim (name, token, owner, slot, instance) VALUES (?, 1, ?, ?, ?)
       ON CONFLICT DO UPDATE SET token = token + 1, owner = excluded.owner, slot = excluded.slot, instance = excluded.instance
       RETURNING token`,
    )
    this.#token = prepare('SELECT token FROM rivulet_claim WHERE name = ?')
    // The token is raised, which makes the fence void.
    const given =
      'UPDATE rivulet_claim SET token = token + 1, slot = NULL, instance = NULL WHERE instance = ?'
    this.#give = prepare(`${given} AND name = ? AND token = ?`)
    this.#giveAll = prepare(given)
    this.#revoke = prepare('UPDATE rivulet_claim SET token = token + 1 WHERE name = ?')
    this.#clear = prepare('UPDATE rivulet_claim SET slot = NULL, instance = NULL WHERE slot = ?')
  }

  /** The owner of a name that another open log holds; undefined for a free one. */
  ownerOf(name: string): string | undefined {
    const found = this.#find.get(storedText(name))
    const slot = found?.['slot']
    if (typeof slot !== 'number' || found?.['instance'] === this.#instance) return undefined
    return this.#slots.isTaken(slot) ? originalText(String(found?.['owner'])) : undefined
  }

  /**
   * Claims a name in a transaction of its own. Returns the owner instead while another open log holds it.
   *
   * The slot is taken in the same transaction in which claims of its earlier owners end. So no other claim takes the new lock
   * for that of an owner that is dead.
   */
  claim(name: string): Fence | string {
    const slot = this.#slot
    try {
      // Synced, so that a power cut does not make a token come twice.
      return this.#file.write('FULL', () => {
        const { number } = (this.#slot ??= this.#takeSlot())
        const owner = this.ownerOf(name)
        if (owner !== undefined) return owner
        const token = this.#take.get(storedText(name), storedText(this.#owner), number, this.#instance)?.[
          'token'
        ]
        return { name, token: Number(token) }
      })
    } catch (error) {
      if (slot === undefined) this.#closeSlot()
      throw error
    }
  }

  /** Within a transaction: throws a FencedError for a fence that is void. */
  check({ name, token }: Fence): void {
    if (this.#token.get(storedText(name))?.['token'] !== token) throw new FencedError(this.#file.name, name)
  }

  /** Within a transaction: a function from a held name to its owner, this log included. It checks each lock once. */
  owners(): (name: string) => string | null {
    const taken = new Map<number, boolean>()
    return (name) => {
      const found = this.#find.get(storedText(name))
      const slot = found?.['slot']
      if (typeof slot !== 'number') return null
      const isTaken = found?.['instance'] === this.#instance || (taken.get(slot) ?? this.#slots.isTaken(slot))
      taken.set(slot, isTaken)
      return isTaken ? originalText(String(found?.['owner'])) : null
    }
  }

  /** Within a transaction: makes the last fence of a name void. Throws a LogInUseError while an open log holds the name. */
  revoke(name: string): void {
    const found = this.#find.get(storedText(name))
    const slot = found?.['slot']
    const isOwn = found?.['instance'] === this.#instance
    if (typeof slot === 'number' && (isOwn || this.#slots.isTaken(slot))) {
      throw new LogInUseError(this.#file.name, name, originalText(String(found?.['owner'])))
    }
    this.#revoke.run(storedText(name))
  }

  release({ name, token }: Fence): void {
    this.#file.write('NORMAL', () => this.#give.run(this.#instance, storedText(name), token))
  }

  releaseAll(): void {
    if (this.#slot !== undefined) this.#file.write('NORMAL', () => this.#giveAll.run(this.#instance))
  }

  /** Gives the lock up. Claims that are not released are dead from then on. */
  close(): void {
    this.#closeSlot()
  }

  #takeSlot(): Slot {
    const slot = this.#slots.take()
    // Kept at once, so that it is closed should the transaction fail.
    this.#slot = slot
    this.#clear.run(slot.number)
    return slot
  }

  #closeSlot(): void {
    this.#slot?.close()
    this.#slot = undefined
  }
}
