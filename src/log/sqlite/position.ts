import type { Position } from '../store/contract.ts'
import { LogPositionError } from '../errors.ts'

/** The positions of a log: its epoch and the number of an entry, `9f86d081884c7d65.42`. */
export class Positions {
  readonly #log: string
  readonly #prefix: string

  constructor(log: string, epoch: string) {
    this.#log = log
    this.#prefix = `${epoch}.`
  }

  format(number: number): Position {
    return this.#prefix + number
  }

  /**
   * The number in a position.
   *
   * @param last The number of the last entry.
   * @throws {LogPositionError} for a position of another log, or beyond its end.
   */
  parse(position: Position, last: number): number {
    // A position may come from outside of TypeScript.
    const text = String(position)
    const number = text.startsWith(this.#prefix) ? Number(text.slice(this.#prefix.length)) : -1
    if (!Number.isSafeInteger(number) || number < 0 || this.format(number) !== text) {
      throw new LogPositionError(this.#log, text, 'unknown', 'is not one of')
    }
    if (number > last) throw new LogPositionError(this.#log, text, 'beyond', 'is beyond the end of')
    return number
  }
}
