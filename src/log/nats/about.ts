import { randomBytes } from 'node:crypto'
import { nuid } from '@nats-io/transport-node'
import { isObject } from '../../protocol/event.ts'
import { parseJson } from '../../protocol/json.ts'
import { LogServerError } from '../errors.ts'
import { publishConditionally } from './conditional-publish.ts'
import type { Connection } from './connection.ts'
import { lastMessage } from './succession.ts'

/** What a log knows of itself. */
export interface About {
  /** The version of what is stored. */
  readonly format: number
  /** In the log's positions. */
  readonly epoch: string
  readonly partitions: number
  /** The last entry that was trimmed: its number, 0 for none, and when it was recorded. */
  readonly trimmed: { readonly sequence: number; readonly recorded: number }
  /** The reader that keeps recorders from appending; null for none. */
  readonly pausedBy: string | null
  /** Of the last recorder; null before the first one. */
  readonly maxBytes: number | null
  /** How long the log was in use, in ms: see `identity-age.ts`. */
  readonly uptime: number
  /** How many identities of deleted entries it has ever stored. */
  readonly identities: number
}

const FORMAT = 1

/** The one message that has what a log knows of itself. */
export class AboutRecord {
  readonly #connection: Connection
  #about: About
  #sequence: number

  private constructor(connection: Connection, about: About, sequence: number) {
    this.#connection = connection
    this.#about = about
    this.#sequence = sequence
  }

  /** Reads it, or stores the first one: of several processes, one does. */
  static async open(connection: Connection, partitions: number): Promise<AboutRecord> {
    const { names } = connection
    for (;;) {
      const found = await stored(connection)
      if (found !== undefined) return new AboutRecord(connection, found.about, found.sequence)
      const epoch = randomBytes(9).toString('base64url')
      const about: About = {
        format: FORMAT,
        epoch,
        partitions,
        trimmed: { sequence: 0, recorded: 0 },
        pausedBy: null,
        maxBytes: null,
        uptime: 0,
        identities: 0,
      }
      await publishConditionally(connection, {
        stream: names.state,
        subject: names.about,
        id: `about-${epoch}`,
        expect: 0,
        payload: JSON.stringify(about),
      })
    }
  }

  /** As it was when it was read or changed last. */
  get current(): About {
    return this.#about
  }

  /** Reads it from the leader. */
  async read(): Promise<About> {
    const { log } = this.#connection
    const found = await stored(this.#connection)
    if (found === undefined) throw new LogServerError(log, 'was deleted from its server')
    if (found.about.epoch !== this.#about.epoch) {
      throw new LogServerError(log, 'was deleted from its server and created anew: open it again')
    }
    this.#about = found.about
    this.#sequence = found.sequence
    return found.about
  }

  /** Changes it, whatever others change at the same time. */
  async change(change: (about: About) => About): Promise<About> {
    for (;;) {
      const about = change(this.#about)
      const { names } = this.#connection
      const sequence = await publishConditionally(this.#connection, {
        stream: names.state,
        subject: names.about,
        id: `about-${nuid.next()}`,
        expect: this.#sequence,
        payload: JSON.stringify(about),
        isRollup: true,
      })
      if (sequence !== undefined) {
        this.#sequence = sequence
        return (this.#about = about)
      }
      await this.read()
    }
  }
}

async function stored(connection: Connection) {
  const { names, log } = connection
  const last = await lastMessage(connection, names.state, names.about)
  if (last === undefined) return undefined
  const about = parseJson(last.message.string())
  if (!isAbout(about)) throw new LogServerError(log, 'has a record of itself that cannot be read')
  if (about.format > FORMAT) {
    throw new LogServerError(log, `is of a newer version (format ${about.format}): update rivulet`)
  }
  return { about, sequence: last.end }
}

function isAbout(value: unknown): value is About {
  if (!isObject(value)) return false
  const { trimmed } = value
  const numbers = [value['format'], value['partitions'], value['uptime'], value['identities']]
  return (
    numbers.every(Number.isFinite) &&
    typeof value['epoch'] === 'string' &&
    isObject(trimmed) &&
    Number.isSafeInteger(trimmed['sequence']) &&
    Number.isFinite(trimmed['recorded'])
  )
}
