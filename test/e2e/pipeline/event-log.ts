import { groupEvent } from 'rivulet'
import type { ResearchEvent, RunInput, TaskOutput, TaskRun } from 'rivulet'
import { completeness } from '../../../src/protocol/event.ts'
import { keyOf } from './ledger.ts'
import type { Fact, Ledger } from './ledger.ts'
import type { Connection } from './wire.ts'

/** An event of a group, without the number that a stream gives it. */
export interface Happening {
  readonly type: string
  readonly run?: TaskRun
  readonly input?: RunInput
  readonly output?: TaskOutput
  readonly [more: string]: unknown
}

interface Entry {
  readonly happening: Happening
  /** Undefined for what the client leaves to another stream. */
  readonly fact: Fact | undefined
}

/** What a listener wants to know of runs. */
interface Wanted {
  readonly input: boolean
  readonly output: boolean
}

/** One of a group's streams: what it has to tell, and who listens. */
export class EventLog {
  readonly #name: string
  readonly #groupId: string
  readonly #withInput: boolean
  readonly #ledger: Ledger
  readonly #entries: Entry[] = []
  readonly #listeners = new Map<Connection, Wanted>()
  #epoch = 0
  #forgotten = 0

  /** @param withInput Whether the client asks for the inputs of runs. */
  constructor(name: string, groupId: string, withInput: boolean, ledger: Ledger) {
    this.#name = name
    this.#withInput = withInput
    this.#groupId = groupId
    this.#ledger = ledger
  }

  /** Its name in a checkpoint. */
  get stream(): string {
    return `groups/${this.#groupId}/${this.#name}`
  }

  /** The number of the last event that the client keeps its place by. */
  get end(): number {
    return this.#entries.findLastIndex(({ fact }) => fact !== undefined)
  }

  /** @param isFact Whether the client takes it from this stream. */
  append(happening: Happening, isFact = true): void {
    const index = this.#entries.length
    const fact = isFact ? this.#ledger.note(this.#keyAt(index, happening), this.#source) : undefined
    fact?.places.set(this.stream, completeness(this.#eventAt(index, happening)))
    this.#entries.push({ happening, fact })
    for (const [connection, wanted] of this.#listeners) {
      if (connection.over) this.#listeners.delete(connection)
      else this.#send(connection, index, wanted)
    }
  }

  /** Gives every event a new number, so that no cursor is known any more, and forgets the oldest of them. */
  forget(events: number): void {
    this.#epoch += 1
    const until = Math.min(this.#forgotten + events, this.#entries.length)
    for (const { fact } of this.#entries.slice(this.#forgotten, until)) {
      if (fact !== undefined) this.#ledger.forget(fact, this.stream)
    }
    this.#forgotten = until
    for (const [index, { happening, fact }] of this.#entries.entries()) {
      if (fact !== undefined) this.#ledger.alias(fact, this.#keyAt(index, happening))
    }
  }

  /** The number behind a cursor; undefined where the cursor is not known. */
  after(cursor: string | null): number | undefined {
    if (cursor === null || cursor === '') return this.#forgotten
    const [name, epoch, index] = cursor.split('.')
    if (name !== this.#name || Number(epoch) !== this.#epoch) return undefined
    return Math.max(Number(index) + 1, this.#forgotten)
  }

  /** Tells all from that number on, and what comes after. */
  tell(connection: Connection, from: number, wanted: Wanted): void {
    const start = Math.max(from, this.#forgotten)
    for (let index = start; index < this.#entries.length; index++) this.#send(connection, index, wanted)
    this.#listeners.set(connection, wanted)
  }

  hangUp(connection: Connection): void {
    if (this.#listeners.delete(connection)) connection.close()
  }

  hangUpAll(): void {
    for (const connection of this.#listeners.keys()) this.hangUp(connection)
  }

  get #source(): string {
    return `/v1/tasks/groups/${this.#groupId}`
  }

  #numbered(index: number, happening: Happening) {
    return { ...happening, event_id: `${this.#name}.${this.#epoch}.${index}` }
  }

  /** The event that it is to be told as. */
  #eventAt(index: number, happening: Happening): ResearchEvent {
    const { input, ...rest } = this.#numbered(index, happening)
    return groupEvent(this.#groupId, { ...rest, ...(this.#withInput && { input }) }, 'stream')
  }

  #keyAt(index: number, happening: Happening): string {
    return keyOf(this.#eventAt(index, happening))
  }

  #send(connection: Connection, index: number, wanted: Wanted): void {
    const entry = this.#entries[index]
    if (entry === undefined) return
    const { input, output, ...rest } = this.#numbered(index, entry.happening)
    connection.send({
      ...rest,
      ...(wanted.input && input !== undefined && { input }),
      ...(wanted.output && output !== undefined && { output }),
    })
  }
}
