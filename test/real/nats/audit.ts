import { createHash } from 'node:crypto'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { NatsConnection } from '@nats-io/transport-node'

/** How long one question to the server may take, in ms. */
const TIMEOUT = 2_000

/** How many messages are read at once. */
const READS = 100

/** An event as the server has it. */
export interface AuditedEvent {
  readonly source: string
  readonly id: string
  readonly data: unknown
}

/** The ids of each source of a log, in the order of the server's stream. */
export async function audit(servers: string, log: string): Promise<Readonly<Record<string, string[]>>> {
  const sources: Record<string, string[]> = {}
  for (const { source, id } of await auditedEvents(servers, log)) (sources[source] ??= []).push(id)
  return sources
}

/**
 * All events of a log, in the order of the server's stream. It knows nothing of the library but where its entries are, and what docs/internals/nats.md
 * says of barriers, and of several that were sent to a cluster at the same moment.
 */
export async function auditedEvents(servers: string, log: string): Promise<readonly AuditedEvent[]> {
  const nats = await connect({ servers })
  const stream = `rivulet_${log}_events`
  const { state } = await (await jetstreamManager(nats)).streams.info(stream)
  const events: AuditedEvent[] = []
  const last = new Map<string, number>()
  const consumer = await jetstream(nats).consumers.get(stream)
  let left = state.messages
  for await (const message of await consumer.consume()) {
    const { subject, seq, headers } = message
    const expected = Number(headers?.get('Nats-Expected-Last-Subject-Sequence'))
    const isOvertaken = headers?.has('Rv-Write') === true && expected < (last.get(subject) ?? 0)
    last.set(subject, seq)
    if (!isOvertaken && headers?.has('Rv-Barrier') !== true) events.push(message.json<AuditedEvent>())
    left -= 1
    if (left === 0) break
  }
  await nats.close()
  return events
}

/** An entry, as the server has it. */
export interface StoredEntry {
  /** Its number in the stream. */
  readonly sequence: number
  readonly partition: number
  /** When the server stored it, in Unix ms. */
  readonly stored: number
  readonly source: string
  readonly id: string
  readonly type: string
  readonly via: string
  readonly revision: number
  readonly data: unknown
}

/**
 * Reads the stream of a log message by message, while it grows and over crashes of the server. It knows nothing of the library but where its entries and
 * its readers' journals are.
 */
export class StreamReader {
  /** What it has read so far, in the order of the stream. */
  readonly entries: StoredEntry[] = []
  /** The numbers of the barriers among them, which are no entries. */
  readonly barriers: number[] = []
  /** The number of the first entry that there was at the last update: those before it are deleted. */
  first = 1
  readonly #nats: NatsConnection
  readonly #manager: JetStreamManager
  readonly #log: string
  #read = 0

  private constructor(nats: NatsConnection, manager: JetStreamManager, log: string) {
    this.#nats = nats
    this.#manager = manager
    this.#log = log
  }

  /**
   * @param log The name of a log that exists.
   * @param timeout How long one question may take, in ms. One that was asked when the server crashed has no answer.
   */
  static async open(servers: string, log: string, timeout = TIMEOUT): Promise<StreamReader> {
    const nats = await connect({
      servers,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitter: 0,
    })
    return new StreamReader(nats, await jetstreamManager(nats, { timeout, checkAPI: false }), log)
  }

  /** Reads what is new. Rejects where the server does not answer; what was read by then counts. */
  async update(): Promise<void> {
    const stream = `rivulet_${this.#log}_events`
    const { state } = await this.#manager.streams.info(stream)
    this.first = state.first_seq
    while (this.#read < state.last_seq) {
      const length = Math.min(READS, state.last_seq - this.#read)
      const sequences = Array.from({ length }, (_, n) => this.#read + n + 1)
      const read = (seq: number) => this.#manager.streams.getMessage(stream, { seq })
      const messages = await Promise.all(sequences.map(read))
      for (const message of messages) {
        if (message?.header.has('Rv-Barrier') === true) this.barriers.push(message.seq)
        else if (message !== null) this.entries.push(storedEntry(message))
      }
      this.#read += length
    }
  }

  /**
   * Up to which number a reader, such as `consumer:billing` or its part `consumer.0:billing`, has acknowledged everything; undefined for
   * one that is not there.
   */
  async cursorOf(reader: string): Promise<number | undefined> {
    const token = createHash('sha256').update(reader).digest('base64url').slice(0, 22)
    const message = await this.#manager.streams.getMessage(`rivulet_${this.#log}_state`, {
      last_by_subj: `rv.${this.#log}.jr.${token}`,
    })
    if (message === null) return undefined
    // A line of JSON, and texts behind it.
    const [line = ''] = message.string().split('\n', 1)
    const [content]: readonly [{ readonly head: { readonly reader: { readonly cursor: string } | null } }] =
      JSON.parse(line)
    const { reader: state } = content.head
    // The epoch, the number, and a token.
    return state === null ? undefined : Number(state.cursor.split(':')[1])
  }

  async close(): Promise<void> {
    await this.#nats.close()
  }
}

function storedEntry(message: StoredMsg): StoredEntry {
  const { source, id, type, via, data } = message.json<Omit<StoredEntry, 'sequence' | 'partition'>>()
  // Its identity, its revision, and more.
  const revision = Number(message.header.get('Rv-Entry').split(' ')[1])
  if (!(revision > 0)) throw new Error(`the message ${message.seq} has no revision`)
  const partition = Number(message.subject.split('.')[3])
  return {
    sequence: message.seq,
    partition,
    stored: message.time.getTime(),
    source,
    id,
    type,
    via,
    revision,
    data,
  }
}
