import type { Position } from '../../store/contract.ts'
import { DIVERGED, LogPositionError, LogServerError } from '../../errors.ts'
import type { LogMetadata } from '../server/log-metadata.ts'
import type { Connection } from '../server/connection.ts'
import { storedToken } from '../server/continuity.ts'
import { retryTransient } from '../server/retry-transient.ts'

/** How many places are remembered, so that a reader goes on from them without another request. */
const MAX_KNOWN = 1_000

/** A place in the stream of the entries. */
export interface StreamPlace {
  /** The number of the message before the place. */
  readonly sequence: number
  /** The token of that message (see `continuity.ts`); empty if it was gone when the place was named, and for 0. */
  readonly token: string
}

/**
 * The positions of a log: its epoch, the number of a message of its stream, which is in the order of all its sources, and the token of that
 * message. Some numbers no longer have an entry.
 *
 * A log that its server has put back to an earlier state has the same epoch, and gives the same numbers again. Then the token of a
 * position that was kept elsewhere is not the one that the log has at that place.
 */
export class NatsPositions {
  readonly epoch: string
  readonly #connection: Connection
  readonly #about: LogMetadata
  /** The highest number that was seen. */
  #last = 0
  /** The token of places that were read or compared, by their number. */
  readonly #known = new Map<number, string>()
  /** The request for the end of the log that is in flight, or the last one. */
  #looking: Promise<unknown> = Promise.resolve()
  /** A request that has not begun, for all calls that wait for one. */
  #nextLook: Promise<number> | undefined

  constructor(connection: Connection, about: LogMetadata) {
    this.#connection = connection
    this.#about = about
    this.epoch = about.current.epoch
  }

  format({ sequence, token }: StreamPlace): Position {
    return token === '' ? `${this.epoch}:${sequence}` : `${this.epoch}:${sequence}:${token}`
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

  /** The position of a place that was read. */
  read(place: StreamPlace): Position {
    this.#last = Math.max(this.#last, place.sequence)
    this.#know(place)
    return this.format(place)
  }

  /** The place after the message with a number, which is not beyond the end. */
  async placeAt(sequence: number): Promise<StreamPlace> {
    return { sequence, token: this.#known.get(sequence) ?? (await this.#tokenAt(sequence)) ?? '' }
  }

  /** The position of that place. */
  async at(sequence: number): Promise<Position> {
    return this.read(await this.placeAt(sequence))
  }

  /** The number in a position. Rejects with a LogPositionError for one that is not of this log, or beyond its end. */
  async parse(position: Position): Promise<number> {
    return (await this.#parse(position)).sequence
  }

  /**
   * The place of a position. Rejects with a LogPositionError for one that is not of this log, beyond its end, or of a state that was lost.
   * If the message was deleted since, and is not the last one that was trimmed, nothing is left to compare, and the position is accepted.
   * After the server was put back, its reader may have missed more than the gap says.
   */
  async check(position: Position): Promise<StreamPlace> {
    const place = await this.#parse(position)
    const { sequence, token } = place
    if (sequence === 0 || this.#known.get(sequence) === token) return place
    const found = await this.#tokenAt(sequence)
    if (found !== undefined && found !== token) {
      throw new LogPositionError(this.#connection.log, position, 'diverged', DIVERGED)
    }
    this.#know(place)
    return place
  }

  /** The number in a position, which may be beyond the end. Throws a LogPositionError for one that is not of this log. */
  number(position: Position): number {
    return this.#place(position).sequence
  }

  async #parse(position: Position): Promise<StreamPlace> {
    const place = this.#place(position)
    if (place.sequence <= this.#last || place.sequence <= (await this.last())) return place
    throw new LogPositionError(this.#connection.log, position, 'beyond', 'is beyond the end of')
  }

  #place(position: Position): StreamPlace {
    // It may come from outside of TypeScript.
    const text = String(position)
    const [, number, token = ''] = text.startsWith(`${this.epoch}:`)
      ? text.slice(this.epoch.length).split(':')
      : []
    const place = { sequence: Number(number), token }
    const isPlace =
      Number.isSafeInteger(place.sequence) && place.sequence >= 0 && /^[\da-z]{0,16}$/.test(token)
    const isKnown = isPlace && (token === '' || place.sequence > 0)
    if (isKnown && this.format(place) === text) return place
    throw new LogPositionError(this.#connection.log, text, 'unknown', 'is not one of')
  }

  #know({ sequence, token }: StreamPlace): void {
    this.#known.delete(sequence)
    this.#known.set(sequence, token)
    const [oldest] = this.#known.keys()
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest)
  }

  /** The token of the message with a number, also of the last one that was trimmed; undefined for one that is gone. */
  async #tokenAt(sequence: number): Promise<string | undefined> {
    if (sequence === 0) return undefined
    const { jsm, names, log, continuity } = this.#connection
    const stream = names.events
    const found = await retryTransient(this.#connection, async () => {
      const message = await jsm.streams.getMessage(stream, { seq: sequence })
      if (message !== null || sequence <= (await this.#readLast())) return message
      throw new LogServerError(log, 'has a new leader that is behind', { retryable: true })
    })
    if (found === null) {
      const { trimmed } = await this.#about.read()
      return trimmed.sequence === sequence ? trimmed.token : undefined
    }
    const token = storedToken(found)
    continuity.saw({ stream, sequence, token })
    return token
  }

  async #readLast(): Promise<number> {
    const { jsm, names } = this.#connection
    const { state } = await retryTransient(this.#connection, () => jsm.streams.info(names.events))
    return state.last_seq
  }
}
