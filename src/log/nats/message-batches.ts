import type { Connection } from './connection.ts'
import { fieldsOf } from './entry-message.ts'
import type { EntryFields } from './entry-message.ts'
import { MessageCursor } from './message-cursor.ts'
import type { StreamMessage } from './message-cursor.ts'
import type { Positions } from './positions.ts'
import type { RecordedTimes } from './recorded-times.ts'
import { SourceOrder } from './source-order.ts'

/** Maximum number of messages of a batch. */
const SIZE = 500

/** Batches that are kept, their bytes together, and for how long, in ms: entries that are forgotten do not stay for longer. */
const MAX_BATCHES = 100
const MAX_BYTES = 32 * 1024 * 1024
const MAX_AGE = 10_000

/** How many places in the stream are kept. */
const MAX_CURSORS = 4

/** A message of an entry. */
export interface EntryMessage {
  readonly message: StreamMessage
  readonly fields: EntryFields
  /** See `recorded-times.ts`. */
  readonly recorded: number
}

/** Messages that follow each other in the stream, all up to a number. */
export interface Batch {
  /** The number before. */
  readonly after: number
  /** The number of the last one that was looked at. */
  readonly upto: number
  /** Whether there were no more of them. */
  readonly isEnd: boolean
  /** Whether no number is missing. */
  readonly isWhole: boolean
  readonly all: readonly EntryMessage[]
  readonly partitions: ReadonlyMap<number, readonly EntryMessage[]>
  readonly bytes: number
  /** When it was read, by `performance.now`. */
  readonly at: number
}

interface Place {
  readonly cursor: MessageCursor
  readonly order: SourceOrder
  readonly recorded: number | undefined
}

/** What else is known of the stream. */
interface Stream {
  readonly positions: Positions
  readonly times: RecordedTimes
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
  /** In the order of reading. */
  readonly #batches = new Set<Batch>()
  #bytes = 0
  /** Those that are being read, by the number before. */
  readonly #reading = new Map<number, Promise<Batch>>()
  /** Places that are not in use, by the number of the last message before, and when that was recorded. */
  readonly #places = new Map<number, Place>()

  constructor(connection: Connection, stream: Stream) {
    this.#connection = connection
    this.#stream = stream
  }

  /** What follows a number: all that was read there at once. */
  async after(sequence: number): Promise<Batch> {
    const known = this.#find(sequence)
    if (known !== undefined) return known
    const reading = this.#reading.get(sequence) ?? this.#read(sequence)
    this.#reading.set(sequence, reading)
    try {
      return await reading
    } finally {
      if (this.#reading.get(sequence) === reading) this.#reading.delete(sequence)
    }
  }

  /** Keeps nothing of what was read. */
  clear(): void {
    this.#batches.clear()
    this.#bytes = 0
  }

  close(): void {
    this.clear()
    for (const { cursor } of this.#places.values()) cursor.close()
    this.#places.clear()
  }

  #find(sequence: number): Batch | undefined {
    const now = performance.now()
    for (const batch of this.#batches) {
      if (now - batch.at > MAX_AGE) this.#drop(batch)
      else if (batch.after <= sequence && sequence < batch.upto) return batch
    }
    return undefined
  }

  async #read(after: number): Promise<Batch> {
    const at = performance.now()
    const place = this.#places.get(after)
    this.#places.delete(after)
    const cursor =
      place?.cursor ?? new MessageCursor(this.#connection, { stream: this.#connection.names.events, after })
    const order = place?.order ?? new SourceOrder(this.#connection, after)
    const { messages, isEnd } = await cursor.pull(SIZE)
    const all: EntryMessage[] = []
    const partitions = new Map<number, EntryMessage[]>()
    let recorded = place?.recorded
    let bytes = 0
    let isWhole = true
    let last = after
    for (const message of messages) {
      isWhole &&= message.sequence === last + 1
      last = message.sequence
      bytes += message.data.length
      const fields = fieldsOf(message)
      const counts = order.counts(message)
      // What another program has published there is passed over.
      if (fields === undefined) continue
      recorded =
        recorded === undefined
          ? ((await this.#stream.times.of(message)) ?? fields.recorded)
          : Math.max(recorded, fields.recorded)
      if (counts !== true && !(await counts)) continue
      const partition = this.#connection.names.partitionOfSubject(message.subject)
      const own = partitions.get(partition) ?? []
      const entry = { message, fields, recorded }
      all.push(entry)
      own.push(entry)
      partitions.set(partition, own)
    }
    this.#keepPlace(last, { cursor, order, recorded })
    if (messages.length === 0) return this.#end(after, at)
    const batch = { after, upto: last, isEnd, isWhole, all, partitions, bytes, at }
    this.#keep(batch)
    return batch
  }

  /** Nothing follows; or what did is gone. */
  async #end(after: number, at: number): Promise<Batch> {
    const { positions, isNothingBetween } = this.#stream
    const last = await positions.last()
    const none = {
      after,
      upto: after,
      isEnd: true,
      isWhole: true,
      all: [],
      partitions: new Map(),
      bytes: 0,
      at,
    }
    if (last <= after) return none
    if (await isNothingBetween(after, last)) return { ...none, upto: last, isWhole: false }
    // The server that was asked has it not yet.
    return { ...none, isEnd: false }
  }

  #keep(batch: Batch): void {
    this.#batches.add(batch)
    this.#bytes += batch.bytes
    for (const oldest of this.#batches) {
      if (this.#batches.size <= MAX_BATCHES && this.#bytes <= MAX_BYTES) return
      this.#drop(oldest)
    }
  }

  #drop(batch: Batch): void {
    if (this.#batches.delete(batch)) this.#bytes -= batch.bytes
  }

  #keepPlace(sequence: number, place: Place) {
    this.#places.get(sequence)?.cursor.close()
    this.#places.set(sequence, place)
    const [oldest] = this.#places
    if (this.#places.size <= MAX_CURSORS || oldest === undefined) return
    oldest[1].cursor.close()
    this.#places.delete(oldest[0])
  }
}
