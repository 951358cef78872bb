import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'

/** The generation that stands for the entries of the log. The generations of processes begin at 1. */
export const ENTRIES = 0

/** Length of a token, in bytes. */
const TOKEN_BYTES = 5

/** Finds the token of a number. */
export type TokenOf = (number: number) => string

/**
 * Runs say since which number an open log was the last one to begin to append: entries, or changes of a process. The random token of a run is
 * in each of its positions. When the file is put back to an earlier state, each log that is opened from then on begins a run of its own. So a
 * position of the state that was lost is refused, although another entry has its number by now.
 *
 * A row is added for each start of a program, and stays: a position always has the same text. All methods run within a transaction.
 */
export class Runs {
  readonly #token = randomToken()
  /** The first number of the run that this open log has begun, by generation. */
  readonly #begun = new Map<number, number>()
  readonly #insert
  readonly #find
  readonly #next

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare('INSERT INTO rivulet_run VALUES (?, ?, ?)')
    this.#find = database.prepare(
      'SELECT token FROM rivulet_run WHERE generation = ? AND first <= ? ORDER BY first DESC LIMIT 1',
    )
    this.#next = database.prepare(
      'SELECT first FROM rivulet_run WHERE generation = ? AND first > ? ORDER BY first LIMIT 1',
    )
  }

  /** Begins a run with this number, unless this open log has begun one. */
  begin(generation: number, first: number): void {
    const begun = this.#begun.get(generation)
    // The transaction that has begun it may have been rolled back.
    if (begun !== undefined && this.#tokenAt(generation, begun) === this.#token) return
    this.#insert.run(generation, first, this.#token)
    this.#begun.set(generation, first)
  }

  /**
   * Finds tokens within one transaction, mostly without a look at the table, since neighbours are mostly of the same run. The token of a number
   * before the first run is empty.
   */
  tokens(generation: number): TokenOf {
    let token = ''
    let from = Infinity
    let until = -Infinity
    return (number) => {
      if (number < from || number >= until) {
        token = this.#tokenAt(generation, number)
        from = number
        const next = this.#next.get(generation, number)?.['first']
        until = typeof next === 'number' ? next : Infinity
      }
      return token
    }
  }

  #tokenAt(generation: number, number: number): string {
    const found = this.#find.get(generation, number)?.['token']
    return typeof found === 'string' ? found : ''
  }
}

/** The token of a new run. */
export function randomToken(): string {
  return randomBytes(TOKEN_BYTES).toString('hex')
}
