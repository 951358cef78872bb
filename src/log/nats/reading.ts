import { setTimeout as delay } from 'node:timers/promises'
import type { Entry, Page, Position, ReadOptions, StartAt } from '../store/contract.ts'
import { LogServerError } from '../errors.ts'
import { gapEntry } from '../gap.ts'
import type { AboutRecord } from './about.ts'
import type { Connection } from './connection.ts'
import { entryOf, fieldsOf, typeField } from './entry-message.ts'
import type { EntryFields } from './entry-message.ts'
import type { LongTexts } from './long-texts.ts'
import { MessageBatches } from './message-batches.ts'
import { MessageCursor } from './message-cursor.ts'
import type { StreamMessage } from './message-cursor.ts'
import { PartitionReading } from './partition-reading.ts'
import { patiently } from './patience.ts'
import type { Positions } from './positions.ts'
import type { RecordedTimes } from './recorded-times.ts'
import { SourceOrder } from './source-order.ts'

/** Maximum number of entries that one read looks at, so that a rare type does not take long. */
const MAX_EXAMINED = 10_000

/** The length of the events of a page after which it ends, in characters. */
const MAX_PAGE_LENGTH = 1024 * 1024

/** Maximum number of messages that are asked for at once. */
const STEP = 500

/** How long a message that a server does not have yet is waited for, in ms. */
const LATE_INTERVAL = 20

/** How many readers' places are kept, so that each goes on without asking for a new one. */
const MAX_PLACES = 16

/** A place in the stream, and when the entry before it was recorded. */
interface Place {
  readonly cursor: MessageCursor
  readonly order: SourceOrder
  /** Undefined where it is not known. */
  recorded: number | undefined
  /** Whether entries followed, as the server said. */
  hasMore: boolean
}

/** A page that is being read. */
interface Draft {
  readonly entries: Entry[]
  readonly lengths: number[]
  length: number
  examined: number
  /** The number of the last message that was looked at. */
  at: number
  isEnd: boolean
}

/** Reads the entries of a log. */
export class Reading {
  readonly #connection: Connection
  readonly #about: AboutRecord
  readonly #positions: Positions
  readonly #times: RecordedTimes
  readonly #texts: LongTexts
  /** Places that are not in use, by the number of the last message before. */
  readonly #places = new Map<number, Place>()
  readonly #batches: MessageBatches
  readonly #partitions: PartitionReading

  constructor(
    connection: Connection,
    about: AboutRecord,
    positions: Positions,
    times: RecordedTimes,
    texts: LongTexts,
  ) {
    this.#connection = connection
    this.#about = about
    this.#positions = positions
    this.#times = times
    this.#texts = texts
    this.#batches = new MessageBatches(connection, {
      positions,
      times,
      isNothingBetween: (after, until) => this.#isNothingBetween(after, until),
    })
    this.#partitions = new PartitionReading({
      positions,
      batches: this.#batches,
      gap: (position, after, last) => this.#gap(position, after, last),
      entry: async ({ message, fields, recorded }) => {
        const json =
          this.#texts.whole(message) ?? (await patiently(this.#connection, () => this.#texts.read(message)))
        // Its parts may have been deleted since.
        if (json === undefined) return undefined
        return { entry: this.#entryOf(json, fields, recorded, message.sequence), length: json.length }
      },
    })
  }

  async read(
    position: Position,
    { limit, types, until, partition, isCommon = false }: ReadOptions,
  ): Promise<Page> {
    if (partition !== undefined || isCommon)
      return this.#partitions.read(position, partition, { limit, types, until })
    const after = await this.#positions.parse(position)
    let last = until === undefined ? undefined : await this.#positions.parse(until)
    const place = this.#placeAfter(after)
    // What follows says whether something was deleted, and comes without asking for the end of the log.
    if (!place.hasMore) {
      const state = await this.#state()
      last ??= state.last
      if (after + 1 < state.first) {
        const gap = await this.#gap(position, after, last)
        if (gap !== undefined) return gap
      }
    }
    const isEmpty = last !== undefined && after >= last
    const draft: Draft = { entries: [], lengths: [], length: 0, examined: 0, at: after, isEnd: isEmpty }
    const wanted = types && new Set(types.map(typeField))
    while (!draft.isEnd && !isFull(draft, limit)) {
      const most = Math.min(
        STEP,
        limit - draft.entries.length,
        until === undefined || last === undefined ? Infinity : last - draft.at,
      )
      const { messages, isEnd } = await place.cursor.pull(most)
      place.hasMore = (messages.at(-1)?.pending ?? 0) > 0
      if (!place.hasMore) last ??= (await this.#state()).last
      const isWhole = messages.every(({ sequence }, i) => {
        return sequence === (messages[i - 1]?.sequence ?? draft.at) + 1
      })
      if (!isWhole || messages.length === 0) {
        // Forgotten, or trimmed since this began.
        last ??= (await this.#state()).last
        const gap = await this.#gap(position, after, last)
        if (gap !== undefined) return gap
      }
      for (const message of messages) {
        if (until !== undefined && last !== undefined && message.sequence > last) break
        const counts = place.order.counts(message)
        const taken = this.#take(message, place, wanted, draft, counts === true || (await counts))
        if (taken !== undefined) await taken
      }
      if (last !== undefined && (messages.length === 0 || place.cursor.last >= last)) {
        draft.isEnd =
          messages.length > 0 ? isEnd || until !== undefined : await this.#isNothingBetween(draft.at, last)
        // What was before is gone.
        if (draft.isEnd) draft.at = Math.max(draft.at, last)
      }
    }
    // Beyond `until`, a place has read on.
    if (place.cursor.last <= draft.at) this.#keep(draft.at, place)
    else place.cursor.close()
    const { entries, lengths } = draft
    this.#positions.saw(draft.at)
    const reached = this.#positions.format(draft.at)
    return { entries, lengths, position: reached, isEnd: draft.isEnd }
  }

  /** The entry of a message; undefined where it is gone. */
  async entryAt(sequence: number): Promise<Entry | undefined> {
    const { jsm, names } = this.#connection
    if (sequence === 0) return undefined
    const query = { seq: sequence }
    const found = await patiently(this.#connection, () => jsm.streams.getMessage(names.events, query))
    if (found === null) return undefined
    const message = { sequence, data: found.data, field: (name: string) => found.header.get(name) }
    const json = await patiently(this.#connection, () => this.#texts.read(message))
    if (json === undefined) return undefined
    const fields = fieldsOf(message)
    const recorded = await this.#times.of(message)
    if (fields === undefined || recorded === undefined) return undefined
    return this.#entryOf(json, fields, recorded, sequence)
  }

  async positionAt(start: StartAt): Promise<Position> {
    const { last } = await this.#state()
    if (start === 'end') return this.#positions.format(last)
    const { trimmed } = await this.#about.read()
    if (start === 'start') return this.#positions.format(trimmed.sequence)
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
    return this.#positions.format(low)
  }

  /** The first entry from a number on, and when it was recorded. */
  async first(from: number): Promise<{ readonly sequence: number; readonly recorded: number } | undefined> {
    const { jsm, names } = this.#connection
    for (let at = from; ;) {
      const next = { seq: at, next_by_subj: names.allEntries }
      const found = await patiently(this.#connection, () => jsm.streams.getMessage(names.events, next))
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
    const found = await patiently(this.#connection, () => jsm.streams.getMessage(names.events, query))
    return found === null ? undefined : fieldsOf({ field: (name) => found.header.get(name) })?.recorded
  }

  /** When the last entry was recorded; undefined for none. */
  async newest(): Promise<number | undefined> {
    const { jsm, names } = this.#connection
    const query = { last_by_subj: names.allEntries }
    const found = await patiently(this.#connection, () => jsm.streams.getMessage(names.events, query))
    if (found === null) return undefined
    return this.#times.of({ sequence: found.seq, field: (name: string) => found.header.get(name) })
  }

  /** A look whether a partition has entries after a position. */
  waiting(position: Position, partition: number): () => Promise<boolean> {
    return this.#partitions.waiting(position, partition)
  }

  /** Entries were forgotten: what was read before is not kept. */
  forgot(): void {
    this.#batches.clear()
  }

  close(): void {
    this.#batches.close()
    for (const { cursor } of this.#places.values()) cursor.close()
    this.#places.clear()
  }

  async #state(): Promise<{ readonly first: number; readonly last: number }> {
    const { jsm, names } = this.#connection
    const { state } = await patiently(this.#connection, () => jsm.streams.info(names.events))
    return { first: state.first_seq, last: state.last_seq }
  }

  /** The page of a position before entries that were trimmed. */
  async #gap(position: Position, after: number, last: number): Promise<Page | undefined> {
    const { trimmed } = await this.#about.read()
    if (after >= trimmed.sequence) return undefined
    const entry = gapEntry(position, this.#positions.format(trimmed.sequence), trimmed.recorded)
    const next = await this.first(trimmed.sequence + 1)
    return {
      entries: [entry],
      lengths: [0],
      position: entry.position,
      isEnd: next === undefined || next.sequence > last,
      gap: entry.data,
    }
  }

  /** Whether there is no entry after a number, up to another one. Otherwise the server that was asked has it not yet. */
  async #isNothingBetween(after: number, until: number): Promise<boolean> {
    const next = await this.first(after + 1)
    const isNothing = next === undefined || next.sequence > until
    if (!isNothing) await delay(LATE_INTERVAL)
    return isNothing
  }

  /** Adds a message to a page: mostly at once. */
  #take(
    message: StreamMessage,
    place: Place,
    wanted: ReadonlySet<string> | undefined,
    draft: Draft,
    counts: boolean,
  ): Promise<void> | undefined {
    const fields = fieldsOf(message)
    draft.at = message.sequence
    draft.examined += 1
    // What another program has published there is passed over.
    if (fields === undefined) return undefined
    const isWanted = counts && (wanted === undefined || wanted.has(fields.type))
    if (place.recorded === undefined) return this.#takeFirst(message, place, isWanted, draft)
    place.recorded = Math.max(place.recorded, fields.recorded)
    return isWanted ? this.#add(message, fields, place.recorded, draft) : undefined
  }

  /** The first message of a place: when the ones before were recorded is not known. */
  async #takeFirst(message: StreamMessage, place: Place, isWanted: boolean, draft: Draft): Promise<void> {
    const fields = fieldsOf(message)
    if (fields === undefined) return
    const recorded = (await this.#times.of(message)) ?? fields.recorded
    place.recorded = recorded
    if (isWanted) await this.#add(message, fields, recorded, draft)
  }

  #add(
    message: StreamMessage,
    fields: EntryFields,
    recorded: number,
    draft: Draft,
  ): Promise<void> | undefined {
    const add = (json: string) => {
      draft.entries.push(this.#entryOf(json, fields, recorded, message.sequence))
      draft.lengths.push(json.length)
      draft.length += json.length
    }
    const whole = this.#texts.whole(message)
    if (whole === undefined) {
      return patiently(this.#connection, () => this.#texts.read(message)).then((json) => {
        // Its parts may have been deleted since.
        if (json !== undefined) add(json)
      })
    }
    add(whole)
    return undefined
  }

  #entryOf(json: string, fields: EntryFields, recorded: number, sequence: number): Entry {
    const entry = entryOf(json, fields, recorded, this.#positions.format(sequence))
    if (entry !== undefined) return entry
    const { log, names } = this.#connection
    const problem = `has an entry that cannot be read: the message ${sequence} of ${names.events} is not a JSON object. It was left as it is`
    throw new LogServerError(log, problem)
  }

  #placeAfter(sequence: number): Place {
    const found = this.#places.get(sequence)
    if (found !== undefined) {
      this.#places.delete(sequence)
      return found
    }
    const { events } = this.#connection.names
    const cursor = new MessageCursor(this.#connection, { stream: events, after: sequence })
    const order = new SourceOrder(this.#connection, sequence)
    return { cursor, order, recorded: undefined, hasMore: false }
  }

  /** Keeps a place for the next page. */
  #keep(sequence: number, place: Place): void {
    this.#places.get(sequence)?.cursor.close()
    this.#places.set(sequence, place)
    const [oldest] = this.#places
    if (this.#places.size <= MAX_PLACES || oldest === undefined) return
    oldest[1].cursor.close()
    this.#places.delete(oldest[0])
  }
}

function isFull({ entries, length, examined }: Draft, limit: number): boolean {
  return entries.length >= limit || length >= MAX_PAGE_LENGTH || examined >= MAX_EXAMINED
}
