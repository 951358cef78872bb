import { groupEvent } from 'rivulet'
import type { ResearchEvent, RunInput, TaskOutput, TaskRun } from 'rivulet'
import { completeness } from '../../../src/protocol/event.ts'
import { keyOf } from './expected-events.ts'
import type { ExpectedEvent, ExpectedEvents } from './expected-events.ts'
import type { Connection } from './wire.ts'

/** An event of a group, without the number in its stream. */
export interface GroupRecord {
  readonly type: string
  readonly run?: TaskRun
  readonly input?: RunInput
  readonly output?: TaskOutput
  readonly [more: string]: unknown
}

interface Entry {
  readonly record: GroupRecord
  /** Undefined for an event that the client takes from another stream. */
  readonly expected: ExpectedEvent | undefined
}

/** The fields of runs that a listener requests. */
interface Wanted {
  readonly input: boolean
  readonly output: boolean
}

/** One of a group's streams: its log and its listeners. */
export class EventLog {
  readonly #name: string
  readonly #groupId: string
  readonly #withInput: boolean
  readonly #expectedEvents: ExpectedEvents
  readonly #entries: Entry[] = []
  readonly #listeners = new Map<Connection, Wanted>()
  #epoch = 0
  #forgotten = 0

  /** @param withInput Whether the client requests the inputs of runs. */
  constructor(name: string, groupId: string, withInput: boolean, expectedEvents: ExpectedEvents) {
    this.#name = name
    this.#withInput = withInput
    this.#groupId = groupId
    this.#expectedEvents = expectedEvents
  }

  /** Its name in a log. */
  get stream(): string {
    return `groups/${this.#groupId}/${this.#name}`
  }

  /** The number of the last event that moves the client's position. */
  get end(): number {
    return this.#entries.findLastIndex(({ expected }) => expected !== undefined)
  }

  /** @param isExpected Whether the client takes it from this stream. */
  append(record: GroupRecord, isExpected = true): void {
    const index = this.#entries.length
    const expected = isExpected
      ? this.#expectedEvents.add(this.#keyAt(index, record), this.#source)
      : undefined
    expected?.streams.set(this.stream, completeness(this.#eventAt(index, record)))
    this.#entries.push({ record, expected })
    for (const [connection, wanted] of this.#listeners) {
      if (connection.over) this.#listeners.delete(connection)
      else this.#send(connection, index, wanted)
    }
  }

  /** Renumbers every event, so that all cursors become invalid, and drops the oldest. */
  forget(events: number): void {
    this.#epoch += 1
    const until = Math.min(this.#forgotten + events, this.#entries.length)
    for (const { expected } of this.#entries.slice(this.#forgotten, until)) {
      if (expected !== undefined) this.#expectedEvents.forget(expected, this.stream)
    }
    this.#forgotten = until
    for (const [index, { record, expected }] of this.#entries.entries()) {
      if (expected !== undefined) this.#expectedEvents.alias(expected, this.#keyAt(index, record))
    }
  }

  /** The number after a cursor; undefined for an unknown cursor. */
  after(cursor: string | null): number | undefined {
    if (cursor === null || cursor === '') return this.#forgotten
    const [name, epoch, index] = cursor.split('.')
    if (name !== this.#name || Number(epoch) !== this.#epoch) return undefined
    return Math.max(Number(index) + 1, this.#forgotten)
  }

  /** Sends all events from that number on, and later ones when they happen. */
  subscribe(connection: Connection, from: number, wanted: Wanted): void {
    const start = Math.max(from, this.#forgotten)
    for (let index = start; index < this.#entries.length; index++) this.#send(connection, index, wanted)
    this.#listeners.set(connection, wanted)
  }

  close(connection: Connection): void {
    if (this.#listeners.delete(connection)) connection.close()
  }

  closeAll(): void {
    for (const connection of this.#listeners.keys()) this.close(connection)
  }

  get #source(): string {
    return `/v1/tasks/groups/${this.#groupId}`
  }

  #numbered(index: number, record: GroupRecord) {
    return { ...record, event_id: `${this.#name}.${this.#epoch}.${index}` }
  }

  /** The event that the client must emit for it. */
  #eventAt(index: number, record: GroupRecord): ResearchEvent {
    const { input, ...rest } = this.#numbered(index, record)
    return groupEvent(this.#groupId, { ...rest, ...(this.#withInput && { input }) }, 'stream')
  }

  #keyAt(index: number, record: GroupRecord): string {
    return keyOf(this.#eventAt(index, record))
  }

  #send(connection: Connection, index: number, wanted: Wanted): void {
    const entry = this.#entries[index]
    if (entry === undefined) return
    const { input, output, ...rest } = this.#numbered(index, entry.record)
    connection.send({
      ...rest,
      ...(wanted.input && input !== undefined && { input }),
      ...(wanted.output && output !== undefined && { output }),
    })
  }
}
