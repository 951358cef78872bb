import type { Position } from '../../store/contract.ts'
import { LogPositionError } from '../../errors.ts'

/**
 * The positions of a log: its epoch, and the number of a message of its stream, which is in the order of all its sources. Some
 * numbers have no entry any more.
 */
export class Positions {
  readonly epoch: string
  readonly #log: string
  readonly #readLast: () => Promise<number>
  /** The highest number that was seen. */
  #last = 0
  /** The look at the server that is under way, or the last one. */
  #looking: Promise<unknown> = Promise.resolve()
  /** One that has not begun, for all calls that want one. */
  #nextLook: Promise<number> | undefined

  /** @param readLast Reads the number of the last entry. */
  constructor(log: string, epoch: string, readLast: () => Promise<number>) {
    this.#log = log
    this.epoch = epoch
    this.#readLast = readLast
  }

  format(sequence: number): Position {
    return `${this.epoch}:${sequence}`
  }

  /** The number of the last entry that the log has ever had. Calls that come together ask the server once. */
  last(): Promise<number> {
    this.#nextLook ??= this.#looking.then(async () => {
      this.#nextLook = undefined
      const last = await this.#readLast()
      this.#last = Math.max(this.#last, last)
      return last
    })
    this.#looking = this.#nextLook.catch(() => {})
    return this.#nextLook
  }

  /** An entry with this number was read. */
  saw(sequence: number): void {
    this.#last = Math.max(this.#last, sequence)
  }

  /** The number in a position. Rejects with a LogPositionError for one that is not of this log, or beyond its end. */
  async parse(position: Position): Promise<number> {
    const sequence = this.number(position)
    if (sequence <= this.#last || sequence <= (await this.last())) return sequence
    throw new LogPositionError(this.#log, position, 'beyond', 'is beyond the end of')
  }

  /** The number in a position, which may be beyond the end. Throws a LogPositionError for one that is not of this log. */
  number(position: Position): number {
    // It may come from outside of TypeScript.
    const text = String(position)
    const sequence = Number(text.slice(this.epoch.length + 1))
    if (Number.isSafeInteger(sequence) && sequence >= 0 && this.format(sequence) === text) return sequence
    throw new LogPositionError(this.#log, text, 'unknown', 'is not one of')
  }
}
