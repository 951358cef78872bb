import { setTimeout as delay } from 'node:timers/promises'
import { MAX_PAGE_LENGTH } from '../../store/contract.ts'
import type { Entry, Page, Position, ReadOptions, StartAt } from '../../store/contract.ts'
import { LogServerError } from '../../errors.ts'
import { gapPage } from '../../store/gap-page.ts'
import type { LogMetadata } from '../server/log-metadata.ts'
import type { Connection } from '../server/connection.ts'
import { storedToken } from '../server/continuity.ts'
import { entryOf, fieldsOf, timesOf, typeField } from '../entries/entry-message.ts'
import type { EntryFields } from '../entries/entry-message.ts'
import type { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { MessageBatches } from './message-batches.ts'
import { PartitionReading } from './partition-reading.ts'
import { retryTransient } from '../server/retry-transient.ts'
import type { StreamPlace, NatsPositions } from '../entries/positions.ts'
import { ReadAheads } from './read-ahead.ts'
import type { EntryMessage, ReadAhead } from './read-ahead.ts'
import type { RecordedTimes } from '../entries/recorded-times.ts'

/** Maximum number of entries that one read looks at, so that a rare type does not take long. */
const MAX_EXAMINED = 10_000

/** Pause before a message is requested again that a server does not have yet, in ms. */
const LATE_INTERVAL = 20

/** Maximum number of read-aheads that are kept, so that each reader goes on without a new consumer. */
const MAX_READ_AHEADS = 16

/** A page that is being read. */
interface PageDraft {
  readonly entries: Entry[]
  readonly lengths: number[]
  length: number
  examined: number
  isEnd: boolean
}

/** Reads the entries of a log. */
export class Reading {
  readonly #connection: Connection
  readonly #about: LogMetadata
  readonly #positions: NatsPositions
  readonly #times: RecordedTimes
  readonly #payloads: ChunkedPayloads
  readonly #readAheads: ReadAheads
  readonly #batches: MessageBatches
  readonly #partitions: PartitionReading

  constructor(
    connection: Connection,
    about: LogMetadata,
    positions: NatsPositions,
    times: RecordedTimes,
    payloads: ChunkedPayloads,
  ) {
    this.#connection = connection
    this.#about = about
    this.#positions = positions
    this.#times = times
    this.#payloads = payloads
    this.#readAheads = new ReadAheads(connection, times, MAX_READ_AHEADS)
    this.#batches = new MessageBatches(connection, times, {
      positions,
      isNothingBetween: (after, until) => this.#isNothingBetween(after, until),
    })
    this.#partitions = new PartitionReading({
      positions,
      batches: this.#batches,
      gap: (position, after, last) => this.#gap(position, after, last),
      entry: async ({ message, fields, recorded }) => {
        const json =
          this.#payloads.whole(message) ??
          (await retryTransient(this.#connection, () => this.#payloads.read(message)))
        // Its chunks may have been deleted since.
        if (json === undefined) return undefined
        return { entry: this.#entryOf(json, fields, recorded, message), length: json.length }
      },
    })
  }

  async read(
    position: Position,
    { limit, types, until, partition, isCommon = false }: ReadOptions,
  ): Promise<Page> {
    if (partition !== undefined || isCommon)
      return this.#partitions.read(position, partition, { limit, types, until })
    const after = await this.#positions.check(position)
    const end = until === undefined ? undefined : await this.#positions.check(until)
    const readAhead = this.#readAheads.take(after)
    try {
      return await this.#readFrom(readAhead, position, end, limit, types)
    } catch (error) {
      readAhead.close()
      throw error
    }
  }

  /** @param end Latest end of the page; undefined for the end of the log. */
  async #readFrom(
    readAhead: ReadAhead,
    position: Position,
    end: StreamPlace | undefined,
    limit: number,
    types: ReadOptions['types'],
  ): Promise<Page> {
    const after = readAhead.last
    const until = end?.sequence
    let last = until
    // The next message shows whether something was deleted, and the end of the log is not needed for it.
    if (!readAhead.hasMore) {
      const state = await this.#state()
      last ??= state.last
      const gap = after + 1 < state.first ? await this.#gap(position, after, last) : undefined
      if (gap !== undefined) return this.#closed(readAhead, gap)
    }
    const isEmpty = last !== undefined && after >= last
    const draft: PageDraft = { entries: [], lengths: [], length: 0, examined: 0, isEnd: isEmpty }
    const wanted = types && new Set(types.map(typeField))
    let isGapChecked = false
    while (!draft.isEnd && !isFull(draft, limit)) {
      if (readAhead.next === undefined) {
        await readAhead.readOn(Math.min(limit, (until ?? Infinity) - after))
        isGapChecked = false
        if (!readAhead.hasMore) last ??= (await this.#state()).last
      }
      const { next } = readAhead
      if (!isGapChecked && next?.sequence !== readAhead.last + 1) {
        // Forgotten, or trimmed since this began.
        isGapChecked = true
        const gap = await this.#gap(position, after, (last ??= (await this.#state()).last))
        if (gap !== undefined) return this.#closed(readAhead, gap)
      }
      if (next === undefined) {
        draft.isEnd =
          last === undefined || last <= readAhead.last || (await this.#isNothingBetween(readAhead.last, last))
      } else if (until !== undefined && next.sequence > until) {
        draft.isEnd = true
      } else {
        const added = this.#take(readAhead, wanted, draft)
        if (added !== undefined) await added
        const isLast = last !== undefined && readAhead.last >= last
        draft.isEnd = isLast && (until !== undefined || readAhead.next === undefined)
      }
    }
    const { entries, lengths, isEnd } = draft
    if (isEnd && last !== undefined) readAhead.skipTo(end ?? { sequence: last, token: '' })
    this.#readAheads.keep(readAhead)
    return { entries, lengths, position: this.#positions.read(readAhead.at), isEnd }
  }

  #closed(readAhead: ReadAhead, gap: Page): Page {
    readAhead.close()
    return gap
  }

  /** The entry of a message; undefined if it is gone. */
  async entryAt(sequence: number): Promise<Entry | undefined> {
    const { jsm, names } = this.#connection
    if (sequence === 0) return undefined
    const query = { seq: sequence }
    const found = await retryTransient(this.#connection, () => jsm.streams.getMessage(names.events, query))
    if (found === null) return undefined
    const message = { sequence, data: found.data, field: (name: string) => found.header.get(name) }
    const json = await retryTransient(this.#connection, () => this.#payloads.read(message))
    if (json === undefined) return undefined
    const fields = fieldsOf(message)
    const recorded = await this.#times.of(message)
    if (fields === undefined || recorded === undefined) return undefined
    return this.#entryOf(json, fields, recorded, { sequence, token: storedToken(found) })
  }

  async positionAt(start: StartAt): Promise<Position> {
    const { last } = await this.#state()
    if (start === 'end') return this.#positions.at(last)
    const { trimmed } = await this.#about.read()
    if (start === 'start') return this.#positions.read(trimmed)
    let low = trimmed.sequence
    let high = last
    // All entries up to `low` are earlier, and all after `high` are not.
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2)
      const found = await this.first(middle + 1)
      if (found === undefined || found.sequence > high) high = middle
      else if (found.recorded >= start.time) high = Math.min(middle, found.sequence - 1)
      else low = found.sequence
    }
    return this.#positions.at(low)
  }

  /** The first entry from a number on, and when it was recorded. */
  async first(from: number): Promise<{ readonly sequence: number; readonly recorded: number } | undefined> {
    const { jsm, names } = this.#connection
    for (let at = from; ;) {
      const next = { seq: at, next_by_subj: names.allEntries }
      const found = await retryTransient(this.#connection, () => jsm.streams.getMessage(names.events, next))
      if (found === null) return undefined
      const message = { sequence: found.seq, field: (name: string) => found.header.get(name) }
      const recorded = await this.#times.of(message)
      if (recorded !== undefined) return { sequence: found.seq, recorded }
      at = found.seq + 1
    }
  }

  /**
   * When the last entry was recorded, or a little earlier, by the clock of its writer alone; undefined for none.
   */
  async aboutNewest(): Promise<number | undefined> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.allEntries }
    const found = await retryTransient(this.#connection, () => jsm.streams.getMessage(names.events, query))
    return found === null ? undefined : timesOf({ field: (name) => found.header.get(name) })?.recorded
  }

  /** When the last entry was recorded; undefined for none. */
  async newest(): Promise<number | undefined> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.allEntries }
    const found = await retryTransient(this.#connection, () => jsm.streams.getMessage(names.events, query))
    if (found === null) return undefined
    return this.#times.of({ sequence: found.seq, field: (name: string) => found.header.get(name) })
  }

  /** Returns a check whether a partition has entries after a position. */
  waiting(position: Position, partition: number): () => Promise<boolean> {
    return this.#partitions.waiting(position, partition)
  }

  /** Drops everything that was read before, since entries were forgotten. */
  forget(): void {
    this.#batches.forget()
    this.#readAheads.forget()
  }

  close(): void {
    this.#batches.close()
    this.#readAheads.close()
  }

  async #state(): Promise<{ readonly first: number; readonly last: number }> {
    const { jsm, names } = this.#connection
    const { state } = await retryTransient(this.#connection, () => jsm.streams.info(names.events))
    return { first: state.first_seq, last: state.last_seq }
  }

  /** The page for a position before trimmed entries. */
  async #gap(position: Position, after: number, last: number): Promise<Page | undefined> {
    const { trimmed } = await this.#about.read()
    if (after >= trimmed.sequence) return undefined
    const end = this.#positions.read(trimmed)
    const next = await this.first(trimmed.sequence + 1)
    return gapPage(position, end, trimmed.recorded, next === undefined || next.sequence > last)
  }

  /** Whether there is no message after a number, up to another one. Otherwise the server that was asked does not have it yet. */
  async #isNothingBetween(after: number, until: number): Promise<boolean> {
    const { jsm, names } = this.#connection
    const query = { seq: after + 1, next_by_subj: names.allEntries }
    const next = await retryTransient(this.#connection, () => jsm.streams.getMessage(names.events, query))
    const isNothing = next === null || next.seq > until
    if (!isNothing) await delay(LATE_INTERVAL)
    return isNothing
  }

  /** Adds the next message of a read-ahead to a page, mostly synchronously. */
  #take(
    readAhead: ReadAhead,
    wanted: ReadonlySet<string> | undefined,
    draft: PageDraft,
  ): Promise<void> | undefined {
    draft.examined += 1
    const add = (entry: EntryMessage | undefined) => {
      if (entry === undefined || wanted?.has(entry.fields.type) === false) return undefined
      return this.#add(entry, draft)
    }
    const taken = readAhead.take()
    return taken instanceof Promise ? taken.then(add) : add(taken)
  }

  #add({ message, fields, recorded }: EntryMessage, draft: PageDraft): Promise<void> | undefined {
    const add = (json: string) => {
      draft.entries.push(this.#entryOf(json, fields, recorded, message))
      draft.lengths.push(json.length)
      draft.length += json.length
    }
    const whole = this.#payloads.whole(message)
    if (whole === undefined) {
      return retryTransient(this.#connection, () => this.#payloads.read(message)).then((json) => {
        // Its chunks may have been deleted since.
        if (json !== undefined) add(json)
      })
    }
    add(whole)
    return undefined
  }

  #entryOf(json: string, fields: EntryFields, recorded: number, place: StreamPlace): Entry {
    const entry = entryOf(json, fields, recorded, this.#positions.format(place))
    if (entry !== undefined) return entry
    const { log, names } = this.#connection
    const problem = `has an entry that cannot be read: the message ${place.sequence} of ${names.events} is not a JSON object. It was left as it is`
    throw new LogServerError(log, problem)
  }
}

function isFull({ entries, length, examined }: PageDraft, limit: number): boolean {
  return entries.length >= limit || length >= MAX_PAGE_LENGTH || examined >= MAX_EXAMINED
}
