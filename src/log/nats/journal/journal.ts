import { randomUUID } from 'node:crypto'
import { LogServerError } from '../../errors.ts'
import type { Connection } from '../server/connection.ts'
import { publishConditionally } from '../server/conditional-publish.ts'
import { eraseMessage } from '../server/erase-message.ts'
import { decodeMessage, encodeMessage } from './journal-message.ts'
import type { JournalHead, JournalMessage, SnapshotReference } from './journal-message.ts'
import { restorePart, snapshotParts } from './journal-snapshot.ts'
import { JOURNAL_LIMITS, JournalState } from './journal-state.ts'
import type { JournalSettings } from './journal-state.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'
import { MESSAGE_ID } from '../server/publisher.ts'
import { EXPECTED, writeIdOf } from '../server/write-order.ts'

/** A message to add to a journal: the changed fields of its head, and the rest. */
export type JournalDraft = Omit<JournalMessage, 'head' | 'snapshot'> & {
  readonly head?: Partial<JournalHead>
}

/** Maximum number of new messages that are requested one by one. Beyond it, a consumer is cheaper. */
const SINGLE_MESSAGES = 4

/** Bytes of a snapshot per message that may follow it before the next snapshot is written. */
const SNAPSHOT_BYTES_PER_MESSAGE = 1_024

/** Maximum number of times that reading a journal starts again because its owner compacts it meanwhile. */
const MAX_RESTARTS = 20

/** The field of the number of a part of a snapshot. */
const PART = 'Rv-Part'

interface ReadMessage {
  readonly sequence: number
  readonly data: Uint8Array
  field(name: string): string
}

/** A snapshot no longer exists: a newer one has replaced it. */
class ReplacedSnapshotError extends Error {}

/**
 * The journal of one claimed name: messages of one subject, each added where the last one is known. What they make together is
 * the same for each open log that reads them. Each message expects the one before it, which is the fence: a claim is a message too, so
 * all that an earlier owner sends is refused. Operators change dead letters by messages of the same subject: one order for all.
 *
 * A long journal is compacted: a snapshot of its state is stored in parts, and then a message that names it replaces all earlier
 * ones, in one write. If the process crashes between the two, the parts are without effect.
 */
export class Journal {
  readonly name: string
  /** When it was used last, by `performance.now`. */
  used = performance.now()
  readonly #connection: Connection
  readonly #settings: JournalSettings
  readonly #subject: string
  #state: JournalState
  /** The last of the calls that run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** A read of new messages that has not begun yet, for all calls that wait for one. */
  #nextLook: Promise<void> | undefined

  constructor(connection: Connection, name: string, settings: JournalSettings) {
    this.name = name
    this.#connection = connection
    this.#settings = settings
    this.#subject = connection.names.journal(name)
    this.#state = new JournalState(name, settings)
  }

  /** Reads the current state, as the server has it. */
  async read<Result>(effect: (state: JournalState) => Result | Promise<Result>): Promise<Result> {
    this.used = performance.now()
    this.#nextLook ??= this.#exclusive(async () => {
      this.#nextLook = undefined
      await this.#catchUp()
    })
    await this.#nextLook
    return effect(this.#state)
  }

  /** The state as far as it is known here. */
  get known(): JournalState {
    return this.#state
  }

  /**
   * Adds a message.
   *
   * @param make Makes it, or throws, from the state before it. It is called again if the state has changed meanwhile, and
   * is only believed when it throws from the current state. Without a message, nothing is written.
   * @returns The number of the message; undefined for none. It resolves once the entries of all commits are in the log.
   */
  write(
    make: (state: JournalState) => JournalDraft | undefined | Promise<JournalDraft | undefined>,
  ): Promise<number | undefined> {
    this.used = performance.now()
    return this.#exclusive(async () => {
      await this.#publishEntries()
      const sequence = await this.#write(make)
      if (sequence !== undefined) await this.#publishEntries()
      return sequence
    })
  }

  /**
   * Makes it the journal of a log that is a copy of another one: this head, and what `fill` puts into the state.
   *
   * @param fill Called with a number that is unique in the log and greater than those before.
   */
  async begin(
    head: Partial<JournalHead>,
    fill: (state: JournalState, number: number) => void,
  ): Promise<void> {
    await this.#exclusive(async () => {
      const number = await this.#publish({ head: { ...this.#state.head, ...head } })
      if (number !== undefined) {
        fill(this.#state, number)
        if (this.#state.isBare || (await this.#snapshot(true)) !== undefined) return
      }
      throw new LogServerError(this.#settings.log, 'was written to while it was made')
    })
  }

  /** Compacts the journal if it is long. Only the owner of the name calls it: others would conflict with the owner's writes. */
  async shorten(): Promise<void> {
    if (!this.#isLong) return
    await this.#exclusive(async () => {
      // The next message takes the place of the others by itself; and entries are published first.
      const { isBare, unpublished } = this.#state
      if (this.#isLong && !isBare && unpublished.length === 0) await this.#snapshot(true)
    })
  }

  /** Deletes all present messages, also from the server's files. The state that they make stays. */
  async erase(): Promise<void> {
    const { names } = this.#connection
    await this.#exclusive(async () => {
      let last: number | undefined
      while (last === undefined) {
        await this.#catchUp()
        await this.#publishEntries()
        last = await this.#snapshot(false)
      }
      const earlier: number[] = []
      const cursor = new MessageCursor(this.#connection, {
        stream: names.state,
        subject: this.#subject,
        fieldsOnly: true,
      })
      for await (const { sequence } of cursor.all()) if (sequence < last) earlier.push(sequence)
      // The last one first: what is left always begins with the first message, or with one that names a snapshot.
      for (const sequence of earlier.toReversed()) await eraseMessage(this.#connection, names.state, sequence)
    })
  }

  async #write(
    make: (state: JournalState) => JournalDraft | undefined | Promise<JournalDraft | undefined>,
  ): Promise<number | undefined> {
    for (let isFresh = false; ;) {
      let draft: JournalDraft | undefined
      try {
        draft = await make(this.#state)
      } catch (error) {
        if (isFresh) throw error
        await this.#catchUp()
        isFresh = true
        continue
      }
      if (draft === undefined) return undefined
      const state = this.#state
      const isBare = this.#isLong && state.isBare && draft.commit === undefined
      const sequence = await this.#publish({
        ...draft,
        head: { ...state.head, ...draft.head },
        ...(isBare && { snapshot: state.bareSnapshot }),
      })
      if (sequence !== undefined) return sequence
      isFresh = true
    }
  }

  /** Appends the entries of commits, including those of the last owner, which may have crashed before it could. */
  async #publishEntries(): Promise<void> {
    for (const { sequence, entries } of this.#state.unpublished) {
      await this.#settings.publish(entries)
      this.#state.published(sequence)
    }
  }

  /** Publishes a message. Resolves with undefined if the journal has newer messages, which are read then. */
  async #publish(
    message: JournalMessage,
    isRollup = message.snapshot !== undefined,
  ): Promise<number | undefined> {
    const { names } = this.#connection
    const id = randomUUID()
    const payload = encodeMessage(message)
    const sequence = await publishConditionally(this.#connection, {
      stream: names.state,
      subject: this.#subject,
      id,
      expect: this.#state.sequence,
      payload,
      isRollup,
    })
    // A repeated write may be refused because of the first one, which others have followed already.
    if (sequence === undefined) return this.#catchUp(id)
    // As all other open logs read it.
    this.#state.apply(decodeMessage(payload, sequence), sequence, payload.length)
    return sequence
  }

  /** Reads what is new. Returns the number of the message with this id if it is among it. */
  async #catchUp(id?: string): Promise<number | undefined> {
    let found: number | undefined
    const take = async (message: ReadMessage) => {
      const counts = await this.#take(message)
      if (counts && writeIdOf((name) => message.field(name)) === id) found = message.sequence
    }
    for (let restarts = 0; ;) {
      try {
        for (let count = 0; ; count++) {
          const message =
            count < SINGLE_MESSAGES ? await this.#next(this.#state.sequence + 1) : await this.#takeMany(take)
          if (message === undefined) return found
          await take(message)
        }
      } catch (error) {
        if (error instanceof SyntaxError || error instanceof TypeError) throw this.#damaged(error)
        if (!(error instanceof ReplacedSnapshotError)) throw error
        if (restarts++ === MAX_RESTARTS) throw this.#damaged(error)
        this.#state = new JournalState(this.name, this.#settings)
      }
    }
  }

  /** Takes all new messages by a consumer. */
  async #takeMany(take: (message: ReadMessage) => Promise<void>): Promise<undefined> {
    const cursor = new MessageCursor(this.#connection, {
      stream: this.#connection.names.state,
      subject: this.#subject,
      after: this.#state.sequence,
    })
    for await (const message of cursor.all()) await take(message)
  }

  /** The first message from this number on. */
  async #next(from: number): Promise<ReadMessage | undefined> {
    const { jsm, names } = this.#connection
    const query = { seq: from, next_by_subj: this.#subject }
    const found = await retryTransient(this.#connection, () => jsm.streams.getMessage(names.state, query))
    if (found === null) return undefined
    return { sequence: found.seq, data: found.data, field: (name) => found.header.get(name) }
  }

  /** Returns whether the message counts. */
  async #take(received: ReadMessage): Promise<boolean> {
    const { sequence, data } = received
    const expected = Number(received.field(EXPECTED))
    if (sequence <= this.#state.sequence) return false
    if (expected < this.#state.sequence) {
      this.#state.skip(sequence)
      return false
    }
    const message = decodeMessage(data, sequence)
    const { snapshot } = message
    // Otherwise the messages between were deleted.
    if (expected !== this.#state.sequence) {
      if (snapshot === undefined) throw new ReplacedSnapshotError('the messages before it are missing')
      this.#state = await this.#load(snapshot)
    }
    this.#state.apply(message, sequence, data.length)
    return true
  }

  async #load(snapshot: SnapshotReference): Promise<JournalState> {
    const { names } = this.#connection
    const state = new JournalState(this.name, this.#settings)
    state.restore(snapshot)
    if (snapshot.parts === 0) return state
    const subject = names.snapshot(this.name, snapshot.token)
    const cursor = new MessageCursor(this.#connection, { stream: names.state, subject })
    let parts = 0
    for await (const message of cursor.all()) {
      // A part that was sent twice is there twice, at worst.
      if (Number(message.field(PART)) !== parts) continue
      restorePart(state, message.data)
      parts += 1
    }
    if (parts !== snapshot.parts) throw new ReplacedSnapshotError('parts of its snapshot are missing')
    return state
  }

  get #isLong(): boolean {
    const { length, bytes, snapshotBytes } = this.#state
    const limits = this.#settings.limits ?? JOURNAL_LIMITS
    return (
      length > Math.max(limits.messages, snapshotBytes / SNAPSHOT_BYTES_PER_MESSAGE) ||
      bytes > Math.max(limits.bytes, snapshotBytes)
    )
  }

  /**
   * Stores what the journal makes, and a message that names it. Returns the number of that; undefined if others have
   * written meanwhile.
   *
   * @param isRollup Whether the earlier messages are deleted with it.
   */
  async #snapshot(isRollup: boolean): Promise<number | undefined> {
    const state = this.#state
    const { jsm, names } = this.#connection
    const token = randomUUID()
    const parts: number[] = []
    let bytes = 0
    for (const part of snapshotParts(state)) {
      parts.push(await this.#storePart(names.snapshot(this.name, token), token, parts.length, part))
      bytes += part.length
    }
    const saved = state.processes.saved(this.name)
    let process: SnapshotReference['process'] = null
    if (saved !== undefined) {
      const { states: _, timers: __, ...head } = saved
      process = head
    }
    const { lastRedelivery } = state.deadLetters
    const snapshot = { token, parts: parts.length, bytes, lastRedelivery, process }
    const sequence = await this.#publish({ head: state.head, snapshot }, isRollup)
    if (sequence === undefined) return undefined
    // Earlier snapshots, and parts of those that were not completed.
    await jsm.streams.purge(names.state, { filter: names.snapshots(this.name), seq: parts[0] ?? 0 })
    if (state.deadLetters.size === 0) {
      await jsm.streams.purge(names.state, { filter: names.deadLetters(this.name), seq: sequence })
    }
    return sequence
  }

  async #storePart(subject: string, token: string, part: number, payload: Uint8Array): Promise<number> {
    const { isReplicated } = this.#connection
    // A part that is there twice is passed over. See `conditions`.
    const fields = { [PART]: String(part), ...(!isReplicated && { [MESSAGE_ID]: `${token}:${part}` }) }
    const { sequence } = await retryTransient(this.#connection, () =>
      this.#connection.publisher.publish({ subject, payload, fields }),
    )
    return sequence
  }

  #exclusive<Result>(call: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(call)
    this.#last = result.catch(() => {})
    return result
  }

  #damaged(cause: unknown): LogServerError {
    const { log } = this.#settings
    return new LogServerError(log, `has a damaged journal of ${JSON.stringify(this.name)}`, { cause })
  }
}
