import { randomBytes } from 'node:crypto'
import { JetStreamApiError } from '@nats-io/jetstream'
import { LogServerError } from '../../errors.ts'
import type { NumberedState } from '../../state/processes.ts'
import { ProcessPositions } from '../../state/process-position.ts'
import { movedCheckpoint } from '../../process/progress.ts'
import type {
  CopiedEntry,
  CopiedIdentity,
  CopiedDeadLetter,
  CopiedName,
  CopiedProcess,
  CopiedRecord,
  CopyHead,
  CopySource,
  CopyTarget,
} from '../../store/copy-store.ts'
import type { Position } from '../../store/contract.ts'
import { identityKey } from '../../store/identity-key.ts'
import type { Timer } from '../../../streams/timers.ts'
import { LogMetadata } from '../server/log-metadata.ts'
import { Changes } from '../server/changes.ts'
import { Connection } from '../server/connection.ts'
import { groupOf } from '../entries/copied-identities.ts'
import { NatsCopySource } from './copy-source.ts'
import { DeadLetterCopies } from '../journal/dead-letter-copies.ts'
import { storeIdentities } from '../entries/deleted-identities.ts'
import type { DeletedEntry } from '../entries/deleted-identities.ts'
import { sentFields } from '../entries/entry-message.ts'
import { NatsInbox } from '../inbox.ts'
import type { JournalState } from '../journal/journal-state.ts'
import { Journals } from '../journal/journals.ts'
import { Lease } from '../journal/lease.ts'
import { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { hashOf } from '../server/names.ts'
import { DEFAULT_PARTITIONS } from '../open-log.ts'
import type { OpenNatsLogSettings } from '../open-log.ts'
import { retryTransient } from '../server/retry-transient.ts'
import { NatsPositions } from '../entries/positions.ts'
import { LAST_ID, LAST_NUMBER, MESSAGE_ID } from '../server/publisher.ts'
import { configOf, createOnce } from '../server/stored-stream.ts'

/** Messages that are sent at once, and how many are deleted at once. */
const WINDOW = 256
const CONCURRENCY = 32

/** Error codes of the server: the last message of the stream has another number, or another id. */
const OVERTAKEN = new Set([10_071, 10_070])

/** A message that is to have a number. */
interface NumberedMessage {
  readonly number: number
  readonly subject: string
  readonly payload: string | Uint8Array
  readonly fields: Readonly<Record<string, string>>
}

/** A name that is being added. */
interface CollectedName {
  readonly of: CopiedName
  process?: CopiedProcess
  readonly states: NumberedState[]
  readonly timers: Timer[]
  readonly deadLetters: CopiedDeadLetter[]
}

/**
 * A log on a server that is being made. Until it is finished, its metadata says so, and names its maker. The next copy deletes the rest
 * of an interrupted one.
 */
export class NatsCopyTarget implements CopyTarget {
  readonly partitionCount: number
  readonly #connection: Connection
  readonly #about: LogMetadata
  readonly #lease: Lease
  readonly #positions: NatsPositions
  readonly #payloads: ChunkedPayloads
  readonly #changes: Changes
  readonly #inbox: NatsInbox
  readonly #copies: DeadLetterCopies
  readonly #journals: Journals
  readonly #epoch: string
  #last = 0
  #sent = 0
  readonly #holes: number[] = []
  #name: CollectedName | undefined
  readonly #identities: CopiedIdentity[] = []

  static async open(settings: OpenNatsLogSettings): Promise<NatsCopyTarget> {
    const { owner } = settings
    const connection = await Connection.open({
      ...settings,
      create: true,
      partitions: settings.partitions ?? DEFAULT_PARTITIONS,
    })
    const lease = new Lease(connection, owner, connection.lease)
    try {
      const found = await LogMetadata.peek(connection)
      // A log without anything has got its own at its creation.
      const partitions = settings.partitions ?? found?.partitions ?? DEFAULT_PARTITIONS
      connection.names.partitions = partitions
      if (found?.madeBy !== undefined) {
        // Also one that lives after its lease has run out cannot finish what is begun anew.
        if (typeof (await lease.renewal(found.madeBy)) === 'number') {
          throw new LogServerError(connection.log, 'is being made by another process: wait for it')
        }
        await createAnew(connection)
      } else {
        await checkEmpty(connection, found !== undefined)
      }
      await lease.hold()
      const about = await LogMetadata.begin(connection, partitions, lease.instance)
      return new NatsCopyTarget(connection, about, lease)
    } catch (error) {
      await lease.release().catch(() => {})
      await connection.close()
      throw error
    }
  }

  private constructor(connection: Connection, about: LogMetadata, lease: Lease) {
    const { epoch, partitions } = about.current
    this.partitionCount = partitions
    const { log } = connection
    this.#connection = connection
    this.#about = about
    this.#lease = lease
    this.#epoch = epoch
    this.#positions = new NatsPositions(connection, about)
    this.#payloads = new ChunkedPayloads(connection)
    this.#changes = new Changes(connection)
    this.#inbox = new NatsInbox(connection, this.#payloads, this.#changes, {
      maxDeliveries: Infinity,
      maxBytes: Infinity,
    })
    this.#copies = new DeadLetterCopies(connection, this.#payloads)
    this.#journals = new Journals(connection, {
      log,
      epoch,
      order: (position) => this.#positions.number(position),
      publish: async () => {},
    })
  }

  /** The trimmed part has a message for each of its numbers first. */
  async begin({ last, trimmed }: CopyHead): Promise<void> {
    const { jsm, names } = this.#connection
    this.#last = last
    await this.#fill(trimmed.number)
    this.#holes.length = 0
    const { number: sequence, recorded } = trimmed
    if (sequence === 0) return
    const { token } = await this.#positions.placeAt(sequence)
    await retryTransient(this.#connection, () => jsm.streams.purge(names.events, { seq: sequence + 1 }))
    await this.#about.change((about) => ({ ...about, trimmed: { sequence, token, recorded } }))
  }

  async addEntries(entries: readonly CopiedEntry[]): Promise<void> {
    const { names } = this.#connection
    let messages: NumberedMessage[] = []
    for (const { number, recorded, revision, completeness, backfill, json } of entries) {
      if (number > this.#sent + messages.length + 1) {
        await this.#send(messages)
        messages = []
        await this.#fill(number - 1)
      }
      const { source, id, type }: Readonly<Record<'source' | 'id' | 'type', string>> = JSON.parse(json)
      const entry = { source, id, type, completeness, json, backfill, cause: undefined }
      const { payload, fields } = await retryTransient(this.#connection, () =>
        this.#payloads.prepare(hashOf(source), json),
      )
      // So that it is recorded at this very time: see `recorded-times.ts`.
      const times = { recorded, known: number - 1 }
      messages.push({
        number,
        subject: names.entries(source),
        payload,
        fields: { ...sentFields(entry, identityKey(entry), revision, times), ...fields },
      })
    }
    await this.#send(messages)
  }

  async add(record: CopiedRecord): Promise<void> {
    switch (record.kind) {
      case 'name':
        await this.#endName()
        this.#name = { of: record, states: [], timers: [], deadLetters: [] }
        return
      case 'process':
        if (this.#name !== undefined) this.#name.process = record
        return
      case 'state': {
        const { key, change, state } = record
        this.#name?.states.push({ key, change, state })
        return
      }
      case 'timer':
        this.#name?.timers.push(record.timer)
        return
      case 'letter':
        this.#name?.deadLetters.push(record)
        return
      case 'deliveryId':
        await this.#inbox.putDone(record.id, record.received)
        return
      case 'delivery':
        await this.#inbox.put(record, record.received)
        return
      case 'identity':
        this.#identities.push(record)
    }
  }

  async written(): Promise<CopySource> {
    const { jsm, names } = this.#connection
    await this.#endName()
    await this.#storeIdentities()
    await this.#fill(this.#last)
    for (let at = 0; at < this.#holes.length; at += CONCURRENCY) {
      await Promise.all(
        this.#holes.slice(at, at + CONCURRENCY).map((sequence) =>
          retryTransient(this.#connection, async () => {
            // A repeated deletion finds nothing.
            if ((await jsm.streams.getMessage(names.events, { seq: sequence })) === null) return
            await jsm.streams.deleteMessage(names.events, sequence, false)
          }),
        ),
      )
    }
    const parts = {
      connection: this.#connection,
      about: this.#about.current,
      positions: this.#positions,
      payloads: this.#payloads,
      journals: this.#journals,
      copies: this.#copies,
      inbox: this.#inbox,
    }
    return NatsCopySource.open(parts, async () => {})
  }

  positionOf(number: number): Promise<Position> {
    return this.#positions.at(number)
  }

  async finish(): Promise<void> {
    const hasCopiedIdentities = this.#identities.length > 0
    await this.#about.change((current) => {
      const { madeBy: _, ...about } = current
      return { ...about, hasCopiedIdentities }
    })
  }

  async close(): Promise<void> {
    this.#changes.close()
    await this.#lease.release().catch(() => {})
    await this.#connection.close()
  }

  /** Sends messages up to this number, which are deleted at the end. */
  async #fill(until: number): Promise<void> {
    const subject = this.#connection.names.entries('')
    while (this.#sent < until) {
      const count = Math.min(WINDOW, until - this.#sent)
      const numbers = Array.from({ length: count }, (_, index) => this.#sent + index + 1)
      this.#holes.push(...numbers)
      await this.#send(numbers.map((number) => ({ number, subject, payload: '', fields: {} })))
    }
  }

  /** Sends messages that follow each other. If an answer is missing, it goes on after the last one that is stored. */
  async #send(messages: readonly NumberedMessage[]): Promise<void> {
    for (let at = 0; at < messages.length; at += WINDOW) {
      const window = messages.slice(at, at + WINDOW)
      await retryTransient(this.#connection, async (attempt) => {
        const last = attempt === 0 ? 0 : await this.#positions.last()
        const failure = await this.#sendOnce(window.filter(({ number }) => number > last))
        if (failure !== undefined) throw failure
      })
      this.#sent = window.at(-1)?.number ?? this.#sent
    }
  }

  /**
   * Returns why a message may not be stored. The first one is refused if others have written: this process may have been suspended
   * for longer than its lease, and what it makes be another one's. On a single server, what follows such a one is refused too.
   */
  async #sendOnce(messages: readonly NumberedMessage[]): Promise<unknown> {
    const { publisher, isReplicated, log } = this.#connection
    const idOf = (number: number) => `copy-${this.#epoch}-${number}`
    const outcomes = await Promise.all(
      messages.map(async ({ number, subject, payload, fields }, index) => {
        const own = {
          [MESSAGE_ID]: idOf(number),
          ...(index === 0 && { [LAST_NUMBER]: String(number - 1) }),
          ...(index > 0 && !isReplicated && { [LAST_ID]: idOf(number - 1) }),
          ...fields,
        }
        try {
          const { sequence } = await publisher.publish({ subject, payload, fields: own })
          return sequence === number ? undefined : overtaken(log)
        } catch (error) {
          return error instanceof JetStreamApiError && OVERTAKEN.has(error.code) ? overtaken(log) : error
        }
      }),
    )
    return outcomes.find((outcome) => outcome !== undefined)
  }

  async #endName(): Promise<void> {
    const name = this.#name
    this.#name = undefined
    if (name === undefined) return
    const { of, deadLetters } = name
    // A position may be that of a deleted entry.
    await this.#fill(this.#last)
    for (let at = 0; at < deadLetters.length; at += CONCURRENCY) {
      await Promise.all(
        deadLetters.slice(at, at + CONCURRENCY).map((deadLetter) => this.#storeCopy(deadLetter)),
      )
    }
    const { reader, position } = of
    const positionOf = await this.#positionsOf(name)
    const head = {
      position,
      reader: reader && {
        cursor: positionOf(reader.cursor),
        acknowledged: reader.acknowledged.map(positionOf),
        ...(reader.isCopy === true && { isCopy: true }),
      },
      holdsRetention: name.process?.holdsRetention ?? true,
      deadLetters: deadLetters.length,
    }
    await this.#journals.of(of.name).begin(head, (state, generation) => {
      this.#restoreProcess(state, name, generation, positionOf)
      for (const { number, error, attempts, failed, redelivery } of deadLetters) {
        const deadLetter = {
          copy: true,
          error,
          attempts,
          failed,
          redelivery: redelivery ?? undefined,
        } as const
        state.deadLetters.restore(positionOf(number), deadLetter)
      }
      state.deadLetters.restoreLastRedelivery(
        Math.max(0, ...deadLetters.map(({ redelivery }) => redelivery ?? 0)),
      )
    })
  }

  /** The positions of all numbers of a name, which may be many. */
  async #positionsOf({ of, process, deadLetters }: CollectedName): Promise<(number: number) => Position> {
    const { reader } = of
    const numbers = new Set(deadLetters.map(({ number }) => number))
    for (const number of reader === null ? [] : [reader.cursor, ...reader.acknowledged]) numbers.add(number)
    const entry = (number: string) => {
      numbers.add(Number(number))
      return number
    }
    if (process !== undefined)
      movedCheckpoint(of.name, process.checkpoint, { entry, change: (change) => change })
    const all = [...numbers]
    const positions = new Map<number, Position>()
    for (let at = 0; at < all.length; at += CONCURRENCY) {
      await Promise.all(
        all.slice(at, at + CONCURRENCY).map(async (number) => {
          positions.set(number, await this.#positions.at(number))
        }),
      )
    }
    return (number) => positions.get(number) ?? this.#positions.format({ sequence: number, token: '' })
  }

  #restoreProcess(
    state: JournalState,
    { of, process, states, timers }: CollectedName,
    generation: number,
    positionOf: (number: number) => Position,
  ): void {
    if (process === undefined) return
    const { holdsRetention, lastChange, forgotten } = process
    const changes = new ProcessPositions(this.#connection.log, this.#epoch)
    const run = randomBytes(12).toString('hex')
    const checkpoint = movedCheckpoint(of.name, process.checkpoint, {
      entry: (number) => positionOf(Number(number)),
      change: (change) => changes.format({ generation, tokenOf: () => run }, Number(change)),
    })
    state.processes.restore(of.name, {
      generation,
      checkpoint,
      holdsRetention,
      lastChange,
      forgotten,
      runs: [[1, run]],
    })
    state.processes.restoreParts(of.name, states, timers)
  }

  async #storeCopy({ name, number, recorded, revision, backfill, json }: CopiedDeadLetter): Promise<void> {
    const position = await this.#positions.at(number)
    const entry = Object.assign(JSON.parse(json), { position, recorded, revision, backfill })
    await this.#copies.store(name, entry, position)
  }

  async #storeIdentities(): Promise<void> {
    const { names } = this.#connection
    const entryOf = ({ key, revision, completeness, forgotten }: CopiedIdentity): DeletedEntry => ({
      source: groupOf(key),
      identity: forgotten === null ? [key, revision, completeness] : [key, revision, completeness, forgotten],
    })
    const age = { uptime: 0, identities: 0 }
    const forgotten = this.#identities.filter((identity) => identity.forgotten !== null)
    const store = (subjectOf: (token: string) => string, identities: readonly CopiedIdentity[]) =>
      storeIdentities(this.#connection, subjectOf, identities.map(entryOf), age)
    await store((token) => names.forgotten(token), forgotten)
    await store((token) => names.identities(token), this.#identities)
  }
}

function overtaken(log: string): LogServerError {
  return new LogServerError(
    log,
    'was written to by others while it was made: let one process make it, or use another name',
  )
}

/** Rejects for a log that has anything. */
async function checkEmpty(connection: Connection, isLog: boolean): Promise<void> {
  const { jsm, names, log } = connection
  const [events, state] = await Promise.all(
    [names.events, names.state].map((stream) => retryTransient(connection, () => jsm.streams.info(stream))),
  )
  const isEmpty = events?.state.last_seq === 0 && state?.state.messages === Number(isLog)
  if (!isEmpty) throw new LogServerError(log, 'is not empty: name a new log')
}

/**
 * Deletes the rest of an interrupted copy, its metadata last. The stream of the metadata goes on with its numbers: otherwise the new metadata
 * could have the number of the old one, and the former maker, suspended until now, would finish what this one makes.
 */
async function createAnew(connection: Connection): Promise<void> {
  const { jsm, names } = connection
  const config = await configOf(connection, names.events)
  if (config !== undefined) {
    await retryTransient(connection, () => jsm.streams.delete(names.events))
    await createOnce(connection, names.events, () => jsm.streams.add(config))
  }
  await retryTransient(connection, () => jsm.streams.purge(names.state))
}
