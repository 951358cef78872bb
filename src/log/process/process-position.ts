import type { Position } from '../store/entry.ts'
import { LogPositionError } from '../errors.ts'
import type { PositionProblem } from '../errors.ts'

/** Where a reader of a process stands. */
export interface ProcessPlace {
  /** 0 before the first change, in each generation. */
  readonly generation: number
  /** The number of the last change that it has. */
  readonly change: number
}

/** The number of changes that a generation has, and of those that cannot be read any more. */
export interface ProcessChanges {
  readonly generation: number
  readonly lastChange: number
  /** The number of the last change that is forgotten. Readers that had not got there have missed it. */
  readonly forgotten: number
}

/** The positions of processes: epoch, generation and number of a change, `9f86d081884c7d65/2.42`. */
export class ProcessPositions {
  readonly #log: string
  readonly #prefix: string

  constructor(log: string, epoch: string) {
    this.#log = log
    this.#prefix = `${epoch}/`
  }

  /** The position before the first change of a process, in each of its generations. */
  get start(): Position {
    return this.format(0, 0)
  }

  format(generation: number, change: number): Position {
    return `${this.#prefix}${generation}.${change}`
  }

  /** @throws {LogPositionError} for a position of another log. */
  parse(position: Position): ProcessPlace {
    // A position may come from outside of TypeScript.
    const text = String(position)
    const rest = text.startsWith(this.#prefix) ? text.slice(this.#prefix.length) : ''
    const [generation = NaN, change = NaN] = rest.split('.').map(Number)
    const isWhole = Number.isSafeInteger(generation) && Number.isSafeInteger(change)
    if (!isWhole || generation < 0 || change < 0 || this.format(generation, change) !== text) {
      throw new LogPositionError(this.#log, text, 'unknown', 'is not one of a process in')
    }
    return { generation, change }
  }

  /**
   * The number of the change after which to read.
   *
   * @param changes Those of the process; undefined for an unknown one.
   * @param present Whether only keys that have a state are read.
   * @throws {LogPositionError} where changes after the position cannot be read.
   */
  resume(position: Position, changes: ProcessChanges | undefined, present = false): number {
    const { generation, change } = this.parse(position)
    // Without any change, nothing can have been missed.
    if (change === 0 && (generation === 0 || generation === changes?.generation)) return 0
    const refused = (reason: PositionProblem, problem: string) =>
      new LogPositionError(this.#log, position, reason, problem)
    if (generation !== changes?.generation) throw this.#rebuilt(position)
    if (change > changes.lastChange) throw refused('beyond', 'is beyond the end of the process in')
    if (change < changes.forgotten && !present) {
      throw refused('forgotten', 'is before removed keys that are forgotten: take a new snapshot from')
    }
    return change
  }

  /**
   * The number of the last change of pages up to a position.
   *
   * @throws {LogPositionError} for a position of another generation.
   */
  until(position: Position, { generation, lastChange }: ProcessChanges): number {
    const place = this.parse(position)
    if (place.generation === generation || place.change === 0) return Math.min(place.change, lastChange)
    throw new LogPositionError(this.#log, position, 'rebuilt', 'is of another generation of the process in')
  }

  /** @throws {LogPositionError} for a position that is of another generation. */
  checkGeneration(position: Position, generation: number | undefined): void {
    if (this.parse(position).generation !== (generation ?? 0)) throw this.#rebuilt(position)
  }

  #rebuilt(position: Position): LogPositionError {
    return new LogPositionError(
      this.#log,
      position,
      'rebuilt',
      'is of an earlier generation of the process, which was built again or removed since: take a new snapshot from',
    )
  }
}
