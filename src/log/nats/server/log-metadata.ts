import { randomBytes } from 'node:crypto'
import { nuid } from '@nats-io/transport-node'
import { isObject, parseJson } from '../../../protocol/json.ts'
import { LogServerError } from '../../errors.ts'
import { publishConditionally } from './conditional-publish.ts'
import type { Connection } from './connection.ts'
import { FORMAT, checkFormat } from './stored-stream.ts'
import { lastMessage } from './write-order.ts'

/** The metadata of a log, as it is stored. */
export interface About {
  /** The version of what is stored. */
  readonly format: number
  /** Epoch in the log's positions. */
  readonly epoch: string
  readonly partitions: number
  /** The last entry that was trimmed: its number, 0 for none, its token (see `continuity.ts`), and when it was recorded. */
  readonly trimmed: { readonly sequence: number; readonly token: string; readonly recorded: number }
  /** The reader that keeps recorders from appending; null for none. */
  readonly pausedBy: string | null
  /** Limit of the last recorder, in bytes; null before the first one. */
  readonly maxBytes: number | null
  /** Uptime of the log, in ms: see `identity-age.ts`. */
  readonly uptime: number
  /** How many identities of deleted entries it has ever stored. */
  readonly identities: number
  /** Whether it is a copy of another log, and has identities of entries that were deleted there. Default false. */
  readonly hasCopiedIdentities?: boolean
  /** The open log that is making it a copy of another log. Until that is finished, it cannot be opened. */
  readonly madeBy?: string
}

/** The metadata of a log, in one message. */
export class LogMetadata {
  readonly #connection: Connection
  #about: About
  #sequence: number

  private constructor(connection: Connection, about: About, sequence: number) {
    this.#connection = connection
    this.#about = about
    this.#sequence = sequence
  }

  /** Reads the metadata, or stores it for a new log: if several processes try, one of them does. */
  static async open(connection: Connection, partitions: number): Promise<LogMetadata> {
    for (;;) {
      const found = await stored(connection)
      if (found?.about.madeBy !== undefined) throw unfinished(connection)
      if (found !== undefined) return new LogMetadata(connection, found.about, found.sequence)
      await publishFirst(connection, newLog(partitions))
    }
  }

  /** Stores the metadata of a log that is made as a copy of another one, also in place of that of an empty log. */
  static async begin(connection: Connection, partitions: number, madeBy: string): Promise<LogMetadata> {
    const about = { ...newLog(partitions), madeBy }
    const expect = (await stored(connection))?.sequence ?? 0
    const sequence = await publishFirst(connection, about, expect)
    if (sequence !== undefined) return new LogMetadata(connection, about, sequence)
    throw new LogServerError(connection.log, 'was opened by another process meanwhile: use another name')
  }

  /** The stored metadata, also of a log that is being made; undefined for none. */
  static async peek(connection: Connection): Promise<About | undefined> {
    return (await stored(connection))?.about
  }

  /** The metadata when it was read or changed last. */
  get current(): About {
    return this.#about
  }

  /** Reads the metadata from the leader. */
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

  /** Changes the metadata, and repeats the change if others have changed it at the same time. */
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

function newLog(partitions: number): About {
  return {
    format: FORMAT,
    epoch: randomBytes(9).toString('hex'),
    partitions,
    trimmed: { sequence: 0, token: '', recorded: 0 },
    pausedBy: null,
    maxBytes: null,
    uptime: 0,
    identities: 0,
  }
}

function publishFirst(connection: Connection, about: About, expect = 0): Promise<number | undefined> {
  const { names } = connection
  return publishConditionally(connection, {
    stream: names.state,
    subject: names.about,
    id: `about-${about.epoch}`,
    expect,
    payload: JSON.stringify(about),
    isRollup: expect > 0,
  })
}

function unfinished({ log }: Connection): LogServerError {
  return new LogServerError(log, 'is a copy that was not finished: run `rivulet log migrate` again')
}

async function stored(connection: Connection) {
  const { names, log } = connection
  const last = await lastMessage(connection, names.state, names.about)
  if (last === undefined) return undefined
  const about = parseJson(last.message.string())
  checkFormat(log, about)
  if (!isAbout(about)) throw new LogServerError(log, 'has a record of itself that cannot be read')
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
    typeof trimmed['token'] === 'string' &&
    Number.isFinite(trimmed['recorded'])
  )
}
