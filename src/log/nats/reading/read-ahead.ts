import type { Connection } from '../server/connection.ts'
import { fieldsOf } from '../entries/entry-message.ts'
import type { StreamPlace } from '../entries/positions.ts'
import type { EntryFields } from '../entries/entry-message.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import type { StreamMessage } from '../server/message-cursor.ts'
import type { RecordedTimes } from '../entries/recorded-times.ts'
import { SourceOrder } from '../entries/source-order.ts'

/** Maximum number of messages that are read at once. */
const CHUNK = 500

/** Maximum pause of a fast reader between two reads, in ms. Each read of a fast reader gets more messages than the last one. */
const MAX_PAUSE = 1_000
const GROWTH = 4

/** Maximum age of messages that were read ahead, in ms: entries that another process forgets do not stay for longer. */
export const MAX_AGE = 10_000

/** A message of an entry. */
export interface EntryMessage {
  readonly message: StreamMessage
  readonly fields: EntryFields
  /** See `recorded-times.ts`. */
  readonly recorded: number
}

/** Messages that are being read. */
interface Pull {
  /** Whether there were no more of them. */
  readonly isEnd: Promise<boolean>
  /** Time of the request, by `performance.now`. */
  readonly at: number
}

/**
 * Reads the stream of the entries in order from one place on. A fast reader gets more messages each time. Once a read has the maximum
 * number of messages, the next ones are read while those at hand are handed out.
 *
 *     handed out ◄── at hand (at most 500) ◄── being read (at most 500) ◄── the rest of the stream
 */
export class ReadAhead {
  readonly #connection: Connection
  readonly #times: RecordedTimes
  readonly #order: SourceOrder
  /** When the last entry was recorded; undefined if that is not known. */
  #recorded: number | undefined
  #last: number
  #token: string
  #cursor: MessageCursor
  /** Messages at hand, including the ones that were handed out, and the index of the next one. */
  #messages: readonly StreamMessage[] = []
  #next = 0
  #readAt = -Infinity
  /** The messages after those at hand. */
  #pulling: Pull | undefined

  constructor(connection: Connection, times: RecordedTimes, after: StreamPlace) {
    this.#connection = connection
    this.#times = times
    this.#order = new SourceOrder(connection, after.sequence)
    this.#last = after.sequence
    this.#token = after.token
    this.#cursor = this.#newCursor()
  }

  /** The number of the last message that was handed out, or skipped. */
  get last(): number {
    return this.#last
  }

  /** The place after that message. */
  get at(): StreamPlace {
    return { sequence: this.#last, token: this.#token }
  }

  /** The next message; undefined if no more were read. It stays the next one until {@link take}. */
  get next(): StreamMessage | undefined {
    return this.#messages[this.#next]
  }

  /** How many messages were read, or are being read, and not handed out. */
  get ahead(): number {
    return this.#messages.length - this.#next + (this.#pulling === undefined ? 0 : CHUNK)
  }

  /** Whether messages follow, as the server said when it read on. */
  get hasMore(): boolean {
    return this.next !== undefined || this.#pending > 0
  }

  /** Hands out the next message: its entry, mostly at once, or undefined for one that is none or does not count. */
  take(): EntryMessage | undefined | Promise<EntryMessage | undefined> {
    const message = this.next
    if (message === undefined) return undefined
    this.#last = message.sequence
    this.#token = message.token
    this.#next += 1
    const fields = fieldsOf(message)
    const counts = this.#order.counts(message)
    if (typeof counts !== 'boolean') return this.#takeLater(message, fields, counts)
    // Another program has published this message.
    if (fields === undefined) return undefined
    if (this.#recorded === undefined) return this.#takeLater(message, fields, counts)
    const recorded = Math.max(this.#recorded, fields.recorded)
    this.#recorded = recorded
    return counts ? { message, fields, recorded } : undefined
  }

  /** When the messages at hand were asked for, by `performance.now`. */
  get readAt(): number {
    return this.#readAt
  }

  /** Skips to a place, since all messages up to it are gone. */
  skipTo({ sequence, token }: StreamPlace): void {
    if (sequence <= this.#last) return
    this.#last = sequence
    this.#token = token
  }

  /**
   * Reads on, once all messages at hand were handed out.
   *
   * @param limit Maximum number of messages for a reader that is new or slow.
   * @returns Whether no more followed when they were asked for.
   */
  async readOn(limit: number): Promise<boolean> {
    const isFast = performance.now() - this.#readAt < MAX_PAUSE
    const most = isFast ? Math.max(limit, GROWTH * this.#messages.length) : limit
    const { isEnd, at } = this.#pulling ?? this.#pull(Math.min(most, CHUNK))
    const isLast = await isEnd
    this.#pulling = undefined
    this.#messages = this.#cursor.messages
    this.#next = 0
    this.#readAt = at
    // As many more come at once, and none is waited for.
    const isFull = this.#messages.length === CHUNK && this.#pending >= CHUNK
    if (isFast && isFull) this.#pulling = this.#pull(CHUNK)
    return isLast
  }

  /** Reads again what was asked for before some time, by `performance.now`, and not handed out. */
  refresh(since: number): void {
    if (this.ahead === 0 || this.#readAt > since) return
    this.close()
    this.#cursor = this.#newCursor()
    this.#messages = []
    this.#next = 0
    this.#pulling = undefined
  }

  /** Deletes its consumer at the server. */
  close(): void {
    const cursor = this.#cursor
    if (this.#pulling === undefined) cursor.close()
    else void this.#pulling.isEnd.catch(() => {}).finally(() => cursor.close())
  }

  /** Number of messages after those at hand, as the server said when it sent them. */
  get #pending(): number {
    return this.#messages.at(-1)?.pending ?? 0
  }

  #pull(limit: number): Pull {
    const isEnd = this.#cursor.pull(limit)
    // The call that takes it rejects.
    isEnd.catch(() => {})
    return { isEnd, at: performance.now() }
  }

  async #takeLater(
    message: StreamMessage,
    fields: EntryFields | undefined,
    counts: boolean | Promise<boolean>,
  ): Promise<EntryMessage | undefined> {
    const isCounted = await counts
    if (fields === undefined) return undefined
    // The times of the entries before the first message are not known.
    const recorded =
      this.#recorded === undefined
        ? ((await this.#times.of(message)) ?? fields.recorded)
        : Math.max(this.#recorded, fields.recorded)
    this.#recorded = recorded
    return isCounted ? { message, fields, recorded } : undefined
  }

  #newCursor(): MessageCursor {
    return new MessageCursor(this.#connection, {
      stream: this.#connection.names.events,
      after: this.#last,
    })
  }
}

/** Read-aheads that are not in use, so that each reader goes on without a new consumer at the server. */
export class ReadAheads {
  readonly #connection: Connection
  readonly #times: RecordedTimes
  readonly #max: number
  /** Read-aheads by the number of the last message before them, the least recently used first. */
  readonly #readAheads = new Map<number, ReadAhead>()
  /** Time at which entries were forgotten last, by `performance.now`. */
  #forgottenAt = -Infinity
  /** Runs while something is read ahead. */
  #timer: NodeJS.Timeout | undefined

  /** @param max Maximum number of read-aheads that are kept. */
  constructor(connection: Connection, times: RecordedTimes, max: number) {
    this.#connection = connection
    this.#times = times
    this.#max = max
  }

  /** Returns a read-ahead after a place. The caller owns it until it keeps or closes it. */
  take(after: StreamPlace): ReadAhead {
    this.#refresh()
    const found = this.#readAheads.get(after.sequence)
    if (found === undefined) return new ReadAhead(this.#connection, this.#times, after)
    this.#readAheads.delete(after.sequence)
    return found
  }

  /** Gives a read-ahead back. If there are two at the same number, the one that has read further is kept. */
  keep(readAhead: ReadAhead): void {
    const other = this.#readAheads.get(readAhead.last)
    if (other !== undefined && other.ahead > readAhead.ahead) return readAhead.close()
    other?.close()
    this.#readAheads.set(readAhead.last, readAhead)
    if (readAhead.ahead > 0) this.#refreshLater()
    const [oldest] = this.#readAheads
    if (this.#readAheads.size <= this.#max || oldest === undefined) return
    oldest[1].close()
    this.#readAheads.delete(oldest[0])
  }

  /** Drops messages that were read before, since entries were forgotten. */
  forget(): void {
    this.#forgottenAt = performance.now()
    this.#refresh()
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const readAhead of this.#readAheads.values()) readAhead.close()
    this.#readAheads.clear()
  }

  #refresh(): void {
    const since = Math.max(this.#forgottenAt, performance.now() - MAX_AGE)
    for (const readAhead of this.#readAheads.values()) readAhead.refresh(since)
  }

  /** Drops messages that no reader comes back for from memory. */
  #refreshLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#refresh()
      if (Array.from(this.#readAheads.values()).some(({ ahead }) => ahead > 0)) this.#refreshLater()
    }, MAX_AGE).unref()
  }
}
