import type { Position } from '../store/contract.ts'
import { DIVERGED, LogPositionError } from '../errors.ts'
import type { TokenOf } from './runs.ts'

/** The number of an entry, and the token of its run. Only the start of a log has none. */
const PLACE = /^(0|[1-9]\d{0,15})(?:\.([\da-f]+))?$/

/** The positions of a log: its epoch, the number of an entry and the token of its run, `9f86d081884c7d65.42.5e884898da`. */
export class SqlitePositions {
  readonly #log: string
  readonly #prefix: string
  readonly #tokens: () => TokenOf

  /** @param tokens Begins to find tokens within the transaction that is open. */
  constructor(log: string, epoch: string, tokens: () => TokenOf) {
    this.#log = log
    this.#prefix = `${epoch}.`
    this.#tokens = tokens
  }

  /** Formats one position. */
  format(number: number): Position {
    return this.formatter()(number)
  }

  /** Formats many positions within one transaction. */
  formatter(): (number: number) => Position {
    const tokenOf = this.#tokens()
    return (number) => {
      const token = tokenOf(number)
      return token === '' ? this.#prefix + number : `${this.#prefix}${number}.${token}`
    }
  }

  /**
   * The number in a position.
   *
   * @param last The number of the last entry.
   * @throws {LogPositionError} for a position of another log, beyond the end of this one, or of a state of it that was lost.
   */
  parse(position: Position, last: number): number {
    return this.parser(last)(position)
  }

  /** Parses many positions within one transaction, as {@link parse}. */
  parser(last: number): (position: Position) => number {
    const tokenOf = this.#tokens()
    return (position) => {
      // A position may come from outside of TypeScript.
      const text = String(position)
      const place = text.startsWith(this.#prefix) ? PLACE.exec(text.slice(this.#prefix.length)) : null
      const number = Number(place?.[1])
      const token = place?.[2] ?? ''
      if (!Number.isSafeInteger(number) || (token === '') !== (number === 0)) {
        throw new LogPositionError(this.#log, text, 'unknown', 'is not one of')
      }
      if (number > last) throw new LogPositionError(this.#log, text, 'beyond', 'is beyond the end of')
      if (tokenOf(number) !== token) throw new LogPositionError(this.#log, text, 'diverged', DIVERGED)
      return number
    }
  }
}
