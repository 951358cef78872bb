import type { Position } from '../store/entry.ts'
import { DIVERGED, LogPositionError } from '../errors.ts'
import type { PositionProblem } from '../errors.ts'

/** Position of a reader of a process. */
export interface ProcessPlace {
  /** 0 before the first change, in each generation. */
  readonly generation: number
  /** The number of the last change that the reader has. */
  readonly change: number
  /** Token of the run of that change; empty for none. */
  readonly token: string
}

/** A generation of a process, in its positions. */
export interface ProcessGeneration {
  /** The generation of the state: each build of it has a greater one. */
  readonly generation: number
  /**
   * Returns a random text that is the same for all changes of one run: those of one open log, until another one goes on. Empty if it is
   * not known, and in a log that cannot be put back to an earlier state.
   */
  tokenOf(change: number): string
}

/** The number of changes that a generation has, and of those that can no longer be read. */
export interface ProcessChanges extends ProcessGeneration {
  /** The number of the last change. */
  readonly lastChange: number
  /** The number of the last change that is forgotten. Readers that had not read it have missed it. */
  readonly forgotten: number
}

/** Generation, number of a change and token. Without a change there is no token. */
const PLACE = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d{0,15})(?:\.([\da-z]{1,64}))?$/

/** The positions of processes: epoch, generation, number of a change and token of its run, `9f86d081884c7d65/2.42.5e884898da`. */
export class ProcessPositions {
  readonly #log: string
  readonly #prefix: string

  constructor(log: string, epoch: string) {
    this.#log = log
    this.#prefix = `${epoch}/`
  }

  /** The position before the first change of a process, in each of its generations. */
  get start(): Position {
    return `${this.#prefix}0.0`
  }

  format(process: ProcessGeneration, change: number): Position {
    const token = change === 0 ? '' : process.tokenOf(change)
    return `${this.#prefix}${process.generation}.${change}${token === '' ? '' : `.${token}`}`
  }

  /** @throws {LogPositionError} for a position of another log. */
  parse(position: Position): ProcessPlace {
    // A position may come from outside of TypeScript.
    const text = String(position)
    const place = text.startsWith(this.#prefix) ? PLACE.exec(text.slice(this.#prefix.length)) : null
    const [generation, change, token = ''] = [Number(place?.[1]), Number(place?.[2]), place?.[3]]
    if (
      !Number.isSafeInteger(generation) ||
      !Number.isSafeInteger(change) ||
      (change === 0 && token !== '')
    ) {
      throw new LogPositionError(this.#log, text, 'unknown', 'is not one of a process in')
    }
    return { generation, change, token }
  }

  /**
   * The number of the change after which to read.
   *
   * @param changes The changes of the process; undefined for an unknown one.
   * @param present Whether only keys that have a state are read.
   * @throws {LogPositionError} if changes after the position cannot be read.
   */
  resume(position: Position, changes: ProcessChanges | undefined, present = false): number {
    const { generation, change, token } = this.parse(position)
    // Without any change, nothing can have been missed.
    if (change === 0 && (generation === 0 || generation === changes?.generation)) return 0
    const refused = (reason: PositionProblem, problem: string) =>
      new LogPositionError(this.#log, position, reason, problem)
    if (generation !== changes?.generation) throw this.#rebuilt(position)
    if (change > changes.lastChange) throw refused('beyond', 'is beyond the end of the process in')
    const isKnown = changes.tokenOf(change) !== ''
    if (isKnown) this.#checkToken(position, token, changes.tokenOf(change))
    const isForgotten = change < changes.forgotten || (!isKnown && token !== '')
    if (isForgotten && !present) {
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

  /** @throws {LogPositionError} for a position that is of another generation, or of a state that was lost. */
  checkGeneration(position: Position, process: ProcessGeneration | undefined): void {
    const { generation, change, token } = this.parse(position)
    if (generation !== (process?.generation ?? 0)) throw this.#rebuilt(position)
    const known = change === 0 ? '' : process?.tokenOf(change)
    if (known !== undefined && known !== '') this.#checkToken(position, token, known)
  }

  #checkToken(position: Position, token: string, known: string): void {
    if (token !== known) throw new LogPositionError(this.#log, position, 'diverged', DIVERGED)
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
