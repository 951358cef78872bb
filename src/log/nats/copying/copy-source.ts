import { isObject, parseJson } from '../../../protocol/json.ts'
import { LogServerError } from '../../errors.ts'
import { ProcessPositions } from '../../state/process-position.ts'
import { movedCheckpoint } from '../../process/progress.ts'
import { eventJsonOf } from '../../store/copied-event.ts'
import { COPIED_PAGE } from '../../store/copy-store.ts'
import type {
  CopiedEntry,
  CopiedIdentity,
  CopiedRecord,
  CopyHead,
  CopySource,
} from '../../store/copy-store.ts'
import type { Position } from '../../store/entry.ts'
import type { Partitions } from '../../store/sharing-store.ts'
import type { About } from '../server/log-metadata.ts'
import type { Connection } from '../server/connection.ts'
import type { DeadLetterCopies } from '../journal/dead-letter-copies.ts'
import { deletedIdentities } from '../entries/deleted-identities.ts'
import { fieldsOf } from '../entries/entry-message.ts'
import type { NatsInbox } from '../inbox.ts'
import type { JournalHead } from '../journal/journal-message.ts'
import type { JournalState } from '../journal/journal-state.ts'
import type { Journals } from '../journal/journals.ts'
import type { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'
import type { NatsPositions } from '../entries/positions.ts'

/** The parts of a log on a server that are copied. */
export interface CopiedParts {
  readonly connection: Connection
  readonly about: About
  readonly positions: NatsPositions
  readonly payloads: ChunkedPayloads
  readonly journals: Journals
  readonly copies: DeadLetterCopies
  readonly inbox: NatsInbox
}

/** A whole log on a server, as it is read to copy it. */
export class NatsCopySource implements CopySource {
  readonly head: CopyHead
  readonly partitions: Partitions
  readonly file = undefined
  readonly #parts: CopiedParts
  readonly #processPositions: ProcessPositions
  readonly #identities: ReadonlyMap<string, CopiedIdentity>
  /** The numbers of the last messages of both streams. */
  readonly #ends: readonly number[]
  readonly #close: () => Promise<void>

  /** @param close Closes everything that was opened for the source. */
  static async open(parts: CopiedParts, close: () => Promise<void>): Promise<NatsCopySource> {
    const ends = await endsOf(parts.connection)
    const { jsm, names } = parts.connection
    const { state } = await retryTransient(parts.connection, () => jsm.streams.info(names.events))
    const { sequence, recorded } = parts.about.trimmed
    const trimmed = { number: sequence, recorded }
    const head = { entries: state.messages, last: state.last_seq, trimmed }
    return new NatsCopySource(parts, head, await identitiesOf(parts), ends, close)
  }

  private constructor(
    parts: CopiedParts,
    head: CopyHead,
    identities: ReadonlyMap<string, CopiedIdentity>,
    ends: readonly number[],
    close: () => Promise<void>,
  ) {
    this.#parts = parts
    this.partitions = parts.connection.names.sources
    this.head = head
    this.#identities = identities
    this.#ends = ends
    this.#close = close
    this.#processPositions = new ProcessPositions(parts.connection.log, parts.positions.epoch)
  }

  async numberOf(position: Position): Promise<number> {
    return (await this.#parts.positions.check(position)).sequence
  }

  async *entries(): AsyncGenerator<readonly CopiedEntry[], void> {
    const { connection, payloads } = this.#parts
    const { number: trimmed, recorded: trimmedAt } = this.head.trimmed
    const cursor = new MessageCursor(connection, { stream: connection.names.events, after: trimmed })
    // An entry is recorded at the latest time of all up to it.
    let recorded = trimmedAt
    let page: CopiedEntry[] = []
    let length = 0
    for await (const message of cursor.all()) {
      const fields = fieldsOf(message)
      const json = fields && (await retryTransient(connection, () => payloads.read(message)))
      if (fields === undefined) continue
      recorded = Math.max(recorded, fields.recorded)
      // Its chunks were deleted.
      if (json === undefined) continue
      if (!isObject(parseJson(json))) {
        const problem = `has an entry that cannot be read: the message ${message.sequence} of ${connection.names.events} is no event`
        throw new LogServerError(connection.log, problem)
      }
      const { revision, completeness, isBackfill: backfill } = fields
      page.push({ number: message.sequence, recorded, revision, completeness, backfill, json })
      length += json.length
      if (page.length < COPIED_PAGE.entries && length < COPIED_PAGE.length) continue
      yield page
      page = []
      length = 0
    }
    if (page.length > 0) yield page
  }

  async *records(): AsyncGenerator<CopiedRecord, void> {
    const { journals, inbox } = this.#parts
    for (const head of await journals.all()) yield* this.#name(head)
    yield* inbox.copied()
    yield* this.#identities.values()
  }

  async checkUnchanged(): Promise<void> {
    const { connection } = this.#parts
    const ends = await endsOf(connection)
    if (ends.join() === this.#ends.join()) return
    throw new LogServerError(
      connection.log,
      'was written to while it was copied: end what uses it, and begin again',
    )
  }

  close(): Promise<void> {
    return this.#close()
  }

  async *#name(head: JournalHead): AsyncGenerator<CopiedRecord, void> {
    const { journals, positions } = this.#parts
    const { name, position, reader } = head
    const state = await journals.of(name).read((known) => known)
    // It was claimed, and nothing more.
    if (position === null && reader === null && state.isBare) return
    yield {
      kind: 'name',
      name,
      position,
      reader: reader && {
        cursor: positions.number(reader.cursor),
        acknowledged: reader.acknowledged.map((each) => positions.number(each)),
        ...(reader.isCopy === true && { isCopy: true }),
      },
    }
    yield* this.#process(name, state)
    yield* this.#deadLetters(name, state)
  }

  *#process(name: string, state: JournalState): Generator<CopiedRecord, void> {
    const saved = state.processes.saved(name)
    if (saved === undefined) return
    const { holdsRetention, lastChange, forgotten, states, timers } = saved
    const checkpoint = movedCheckpoint(name, saved.checkpoint, {
      entry: (position) => String(this.#parts.positions.number(position)),
      change: (position) => String(this.#processPositions.parse(position).change),
    })
    yield { kind: 'process', name, holdsRetention, lastChange, forgotten, checkpoint }
    for (const { key, change, state: json } of states) yield { kind: 'state', name, key, change, state: json }
    for (const timer of timers) yield { kind: 'timer', name, timer }
  }

  async *#deadLetters(name: string, { deadLetters }: JournalState): AsyncGenerator<CopiedRecord, void> {
    const { copies, positions } = this.#parts
    const redelivered = deadLetters.redeliveries(0, Infinity).map(({ position }) => position)
    for (const [position, { error, attempts, failed, redelivery }] of deadLetters.after(-1)) {
      const json = await copies.read(name, position)
      const entry = parseJson(json ?? '')
      // Forgotten meanwhile.
      if (json === undefined || !isObject(entry)) continue
      yield {
        kind: 'letter',
        name,
        number: positions.number(position),
        recorded: Number(entry['recorded']),
        revision: Number(entry['revision']),
        backfill: entry['backfill'] === true,
        json: eventJsonOf(json),
        error,
        attempts,
        failed,
        redelivery: redelivery === undefined ? null : redelivered.indexOf(position) + 1,
      }
    }
  }
}

async function endsOf(connection: Connection): Promise<readonly number[]> {
  const { jsm, names } = connection
  const infos = await Promise.all(
    [names.events, names.state].map((stream) => retryTransient(connection, () => jsm.streams.info(stream))),
  )
  return infos.map(({ state }) => state.last_seq)
}

/** The identities of deleted entries by their keys, each in its last revision and without those that have a later entry. */
async function identitiesOf({
  connection,
  about,
}: CopiedParts): Promise<ReadonlyMap<string, CopiedIdentity>> {
  const { names } = connection
  const found = new Map<string, CopiedIdentity>()
  const deleted = new MessageCursor(connection, { stream: names.state, subject: names.allIdentities })
  for await (const { data } of deleted.all()) {
    for (const [key, revision, completeness] of deletedIdentities(data)) {
      if (revision < (found.get(key)?.revision ?? 0)) continue
      found.set(key, { kind: 'identity', key, revision, completeness, forgotten: null })
    }
  }
  if (found.size === 0) return found
  const forgotten = new MessageCursor(connection, { stream: names.state, subject: names.allForgotten })
  for await (const { data } of forgotten.all()) {
    for (const [key, revision, , sequence = 0] of deletedIdentities(data)) {
      const identity = found.get(key)
      if (identity === undefined || revision < identity.revision) continue
      // The consequences of an entry that would be trimmed by now no longer matter.
      if (sequence > about.trimmed.sequence) found.set(key, { ...identity, forgotten: sequence })
    }
  }
  const entries = new MessageCursor(connection, { stream: names.events, fieldsOnly: true })
  for await (const message of entries.all()) {
    const fields = fieldsOf(message)
    if (fields !== undefined && fields.revision >= (found.get(fields.id)?.revision ?? 0))
      found.delete(fields.id)
  }
  return found
}
