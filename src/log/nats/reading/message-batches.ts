import type { Connection } from '../server/connection.ts'
import type { StreamPlace, NatsPositions } from '../entries/positions.ts'
import { MAX_AGE, ReadAheads } from './read-ahead.ts'
import type { EntryMessage, ReadAhead } from './read-ahead.ts'
import type { RecordedTimes } from '../entries/recorded-times.ts'

/** How many messages a new or slow reader reads at once. */
const SIZE = 500

/** Maximum number of batches that are kept, and their total size in bytes. */
const MAX_BATCHES = 100
const MAX_BYTES = 32 * 1024 * 1024

/** Maximum number of read-aheads that are kept. */
const MAX_READ_AHEADS = 4

/** Messages that follow each other in the stream, all up to a number. */
export interface MessageBatch {
  /** The number of the message before the batch. */
  readonly after: number
  /** The number of the last message that was read, and its token. */
  readonly upto: number
  readonly token: string
  /** Whether no more messages followed. */
  readonly isEnd: boolean
  /** Whether no number is missing. */
  readonly isWhole: boolean
  readonly all: readonly EntryMessage[]
  readonly partitions: ReadonlyMap<number, readonly EntryMessage[]>
  readonly bytes: number
  /** Time of the read, by `performance.now`. */
  readonly at: number
}

/** Further dependencies: positions, and a check of the stream. */
interface Stream {
  readonly positions: NatsPositions
  /** Whether the leader has no entry after a number, up to another one. Otherwise the answer takes a moment. */
  isNothingBetween(after: number, until: number): Promise<boolean>
}

/**
 * Reads the stream once for all partitions that are read at about the same place, and keeps what was read for those that follow.
 *
 * Each partition could be read by its subject instead. But when an entry was recorded depends on the entries of all partitions before it.
 */
export class MessageBatches {
  readonly #connection: Connection
  readonly #stream: Stream
  readonly #readAheads: ReadAheads
  /** Batches in the order of reading. */
  readonly #batches = new Set<MessageBatch>()
  #bytes = 0
  /** Time at which entries were forgotten last, by `performance.now`: batches that were requested before are not kept. */
  #forgottenAt = -Infinity
  /** Batches that are being read, by the number of the message before. */
  readonly #reading = new Map<number, Promise<MessageBatch>>()

  constructor(connection: Connection, times: RecordedTimes, stream: Stream) {
    this.#connection = connection
    this.#stream = stream
    this.#readAheads = new ReadAheads(connection, times, MAX_READ_AHEADS)
  }

  /** The batch after a place. */
  async after(place: StreamPlace): Promise<MessageBatch> {
    const { sequence } = place
    const known = this.#find(sequence)
    if (known !== undefined) return known
    const reading = this.#reading.get(sequence) ?? this.#read(place)
    this.#reading.set(sequence, reading)
    try {
      return await reading
    } finally {
      if (this.#reading.get(sequence) === reading) this.#reading.delete(sequence)
    }
  }

  /** Drops all batches, since entries were forgotten. */
  forget(): void {
    this.#batches.clear()
    this.#bytes = 0
    this.#forgottenAt = performance.now()
    this.#reading.clear()
    this.#readAheads.forget()
  }

  close(): void {
    this.#batches.clear()
    this.#readAheads.close()
  }

  #find(sequence: number): MessageBatch | undefined {
    const now = performance.now()
    for (const batch of this.#batches) {
      if (now - batch.at > MAX_AGE) this.#drop(batch)
      else if (batch.after <= sequence && sequence < batch.upto) return batch
    }
    return undefined
  }

  async #read(after: StreamPlace): Promise<MessageBatch> {
    const readAhead = this.#readAheads.take(after)
    try {
      const batch = await this.#readFrom(readAhead)
      this.#readAheads.keep(readAhead)
      return batch
    } catch (error) {
      readAhead.close()
      throw error
    }
  }

  async #readFrom(readAhead: ReadAhead): Promise<MessageBatch> {
    const began = performance.now()
    const { sequence: after, token: tokenBefore } = readAhead.at
    const isEnd = await readAhead.readOn(SIZE)
    const all: EntryMessage[] = []
    const partitions = new Map<number, EntryMessage[]>()
    let bytes = 0
    let isWhole = true
    for (let message = readAhead.next; message !== undefined; message = readAhead.next) {
      isWhole &&= message.sequence === readAhead.last + 1
      bytes += message.data.length
      const taken = readAhead.take()
      const entry = taken instanceof Promise ? await taken : taken
      if (entry === undefined) continue
      const partition = this.#connection.names.partitionOfSubject(message.subject)
      const own = partitions.get(partition) ?? []
      all.push(entry)
      own.push(entry)
      partitions.set(partition, own)
    }
    if (readAhead.last === after) {
      const end = await this.#end({ sequence: after, token: tokenBefore }, began)
      readAhead.skipTo({ sequence: end.upto, token: end.token })
      return end
    }
    const { readAt: at } = readAhead
    const { sequence: upto, token } = readAhead.at
    // More messages may have come since the read-ahead, and the server that was asked may not have all of them.
    const isLast = isEnd && at >= began && (await this.#stream.positions.last()) <= upto
    const batch = { after, upto, token, isEnd: isLast, isWhole, all, partitions, bytes, at }
    this.#keep(batch)
    return batch
  }

  /** The batch at the end: no message follows, or those that did are gone. */
  async #end({ sequence: after, token }: StreamPlace, at: number): Promise<MessageBatch> {
    const { positions, isNothingBetween } = this.#stream
    const last = await positions.last()
    const none = {
      after,
      upto: after,
      token,
      isEnd: true,
      isWhole: true,
      all: [],
      partitions: new Map(),
      bytes: 0,
      at,
    }
    if (last <= after) return none
    if (await isNothingBetween(after, last)) return { ...none, upto: last, token: '', isWhole: false }
    // The server that was asked does not have it yet.
    return { ...none, isEnd: false }
  }

  #keep(batch: MessageBatch): void {
    if (batch.at <= this.#forgottenAt) return
    this.#batches.add(batch)
    this.#bytes += batch.bytes
    for (const oldest of this.#batches) {
      if (this.#batches.size <= MAX_BATCHES && this.#bytes <= MAX_BYTES) return
      this.#drop(oldest)
    }
  }

  #drop(batch: MessageBatch): void {
    if (this.#batches.delete(batch)) this.#bytes -= batch.bytes
  }
}
