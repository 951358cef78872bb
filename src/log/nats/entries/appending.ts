import { setTimeout as delay } from 'node:timers/promises'
import { JetStreamApiError } from '@nats-io/jetstream'
import { nuid } from '@nats-io/transport-node'
import { isAtLeastAsComplete } from '../../../protocol/event.ts'
import { LogServerError } from '../../errors.ts'
import { MAX_APPEND_ENTRIES } from '../../store/contract.ts'
import { mergeDuplicates } from '../../store/completeness.ts'
import { identityKey } from '../../store/identity-key.ts'
import type { PreparedEntry } from '../../store/new-entry.ts'
import type { Connection } from '../server/connection.ts'
import { sentFields } from './entry-message.ts'
import type { NatsIdentities, KnownRevision, SourceIdentities } from './identities.ts'
import { PARTS } from '../server/chunked-payloads.ts'
import type { ChunkedPayloads, Payload } from '../server/chunked-payloads.ts'
import { hashOf } from '../server/names.ts'
import { deadlinePassed, retryTransient, tryElsewhere } from '../server/retry-transient.ts'
import { LAST_ID, MESSAGE_ID } from '../server/publisher.ts'
import type { RecordedTimes } from './recorded-times.ts'
import { serverError } from '../server/server-error.ts'
import { conditions, isNext } from '../server/write-order.ts'

/** Error codes of the server: the last message of the stream, or of the subject, is another one. */
const WRONG_LAST_ID = 10_070
const WRONG_LAST_SEQUENCE = 10_071

/** Maximum number of entries of a source that are sent at once: those of an append. */
const MAX_WINDOW = MAX_APPEND_ENTRIES

/** Pause between two attempts if the server has not taken something, in ms. The client's own timeouts come on top. */
const INTERVAL = 100

/** The entries that one append adds to a source. */
interface SourceAppend {
  readonly source: string
  readonly subject: string
  readonly identities: SourceIdentities
  /** Entries that are neither stored nor known yet, in order. */
  todo: readonly PreparedEntry[]
  /** Number of these entries that the plan covers. */
  looked: number
  /**
   * Payloads that are stored in chunks already, by their texts. They are valid until the source changes: chunks have to come after those
   * of earlier entries, or they would be deleted together with them.
   */
  readonly inChunks: Map<string, Payload>
  /** The state of the source when these chunks were stored. */
  chunksAfter: string
}

/** A message that is going to be sent. */
interface Planned {
  readonly run: SourceAppend
  /** Index of the entry in `todo`. */
  readonly index: number
  readonly entry: PreparedEntry
  /** See `identityKey`. */
  readonly hash: string
  readonly revision: number
  /**
   * Unique: no other writer sends one with it, and this one sends the same again. The server looks at it before the expectations, so two
   * writers of the same revision with different content must not share it.
   */
  readonly id: string
  readonly payload: Uint8Array
  readonly fields: Readonly<Record<string, string>>
}

type Outcome =
  | { readonly kind: 'stored'; readonly sequence: number }
  | { readonly kind: 'overtaken' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unknown'; readonly error: unknown }

/**
 * Appends entries to the stream, each once and those of a source in order, whatever other writers do.
 *
 * The first entry of a source is stored only if the last message of its source is the one that this writer knows, and a source without
 * one gets a barrier first (see `barrier.ts`); each other entry only directly after the one before, by that one's id: an expected number
 * would be a guess, and could be that of another writer's message. So all can be sent at once: what follows a refused one is refused too.
 * After a refusal, what others have written is read, and the rest is sent again.
 *
 * In a cluster, both checks are weaker. The first one lets through what several writers send at the same moment, so there a writer looks
 * whether others have written between: see `write-order.ts`. The second one differs between copies of which one was restarted, so there
 * each entry of a source is sent after the one before was stored.
 */
export class Appending {
  readonly #connection: Connection
  readonly #identities: NatsIdentities
  readonly #times: RecordedTimes
  readonly #payloads: ChunkedPayloads
  readonly #writer = nuid.next()
  /** Number of entries of a source that are sent at once: fewer while other writers come between them. */
  #window = MAX_WINDOW

  constructor(
    connection: Connection,
    identities: NatsIdentities,
    times: RecordedTimes,
    payloads: ChunkedPayloads,
  ) {
    this.#connection = connection
    this.#identities = identities
    this.#times = times
    this.#payloads = payloads
  }

  /**
   * Appends entries, and merges or skips duplicates. Not to be called again before it has resolved. Rejects with a
   * LogServerError if the server does not answer; some may have been stored then.
   *
   * @param check Rejects if the caller may no longer append. Called again after each refusal, and once a source has begun: the writer that
   * came first may be the next owner, and what it has appended is not to be followed by what was to precede it.
   * @returns How many are new, and the number of the last one of these.
   */
  async append(
    entries: readonly PreparedEntry[],
    check: () => Promise<unknown>,
  ): Promise<{ readonly count: number; readonly last: number }> {
    const runs = await Promise.all(
      [...Map.groupBy(entries, ({ source }) => source)].map(async ([source, todo]): Promise<SourceAppend> => {
        const identities = await retryTransient(this.#connection, () => this.#identities.of(source))
        await retryTransient(this.#connection, () => this.#identities.addCopied(identities, todo))
        const subject = this.#connection.names.entries(source)
        return { source, subject, identities, todo, looked: 0, inChunks: new Map(), chunksAfter: '' }
      }),
    )
    let count = 0
    let last = 0
    let started = performance.now()
    for (;;) {
      if (await this.#begin(runs)) await check()
      const times = await retryTransient(this.#connection, () => this.#times.next())
      const planned = await retryTransient(this.#connection, async () => {
        const all: Planned[][] = []
        for (const run of runs) all.push(await this.#plan(run, times))
        return all
      })
      if (planned.every(({ length }) => length === 0)) return { count, last }
      const outcomes = await this.#send(planned)
      const isRefused = outcomes.flat().some(({ kind }) => kind !== 'stored')
      if (!this.#connection.isReplicated) this.#adapt(outcomes)
      for (const [at, sent] of planned.entries()) {
        const stored = await this.#settle(sent, outcomes[at] ?? [])
        for (const sequence of stored) this.#times.written(sequence, times.recorded)
        count += stored.length
        last = Math.max(last, ...stored)
        if (stored.length > 0) started = performance.now()
      }
      if (isRefused) await check()
      if (deadlinePassed(started)) {
        throw this.#failure(outcomes.flat())
      }
      // A server that is full, say, answers at once.
      if (outcomes.flat().some(({ kind }) => kind === 'unknown')) {
        tryElsewhere(this.#connection.nats, started)
        await delay(INTERVAL)
      }
    }
  }

  /** Begins the sources that have no message, and get one now. Resolves with whether there was one: others may have written to it meanwhile. */
  async #begin(runs: readonly SourceAppend[]): Promise<boolean> {
    const begun = runs.filter(({ identities, todo }) => isToBegin(identities, todo))
    if (begun.length === 0) return false
    const times = await retryTransient(this.#connection, () => this.#times.next())
    const barriers: number[] = []
    await Promise.all(
      begun.map(async ({ source, identities, todo }) => {
        // Each repetition is due to entries of others in the same source, which were deleted already.
        while (isToBegin(identities, todo)) {
          const barrier = await retryTransient(this.#connection, () =>
            this.#identities.begin(source, identities, times),
          )
          if (barrier !== undefined) barriers.push(barrier)
        }
      }),
    )
    for (const barrier of barriers.toSorted((a, b) => a - b)) this.#times.written(barrier, times.recorded)
    return true
  }

  /** The messages to send for a run. */
  async #plan(
    run: SourceAppend,
    times: { readonly recorded: number; readonly known: number },
  ): Promise<Planned[]> {
    const staged = new Map<string, KnownRevision & { readonly json: string }>()
    const planned: Planned[] = []
    const after = `${run.identities.last}:${run.identities.deletedRead}`
    if (run.chunksAfter !== after) run.inChunks.clear()
    run.chunksAfter = after
    run.looked = run.todo.length
    for (const [index, entry] of run.todo.entries()) {
      if (planned.length >= this.#window) {
        run.looked = index
        break
      }
      const hash = identityKey(entry)
      const before = staged.get(hash)
      const earlier = before ?? run.identities.known.get(hash)
      if (earlier !== undefined && isAtLeastAsComplete(earlier.completeness, entry.completeness)) continue
      const revision = (earlier?.revision ?? 0) + 1
      const whole = earlier === undefined ? entry : await this.#merged(earlier, before?.json, entry)
      staged.set(hash, {
        revision,
        completeness: whole.completeness,
        sequence: undefined,
        json: whole.json,
      })
      const prepared =
        run.inChunks.get(whole.json) ?? (await this.#payloads.prepare(hashOf(entry.source), whole.json))
      const { payload, fields } = prepared
      if (PARTS in fields) run.inChunks.set(whole.json, prepared)
      planned.push({
        run,
        index,
        entry: whole,
        hash,
        revision,
        id: `${hashOf(JSON.stringify([entry.source, entry.id, revision]))}.${this.#writer}`,
        payload,
        fields: { ...sentFields(whole, hash, revision, times), ...fields },
      })
    }
    return planned
  }

  /** The entry with what only the earlier one has, which may have been deleted. */
  async #merged(
    earlier: KnownRevision,
    json: string | undefined,
    entry: PreparedEntry,
  ): Promise<PreparedEntry> {
    if (isAtLeastAsComplete(entry.completeness, earlier.completeness)) return entry
    const completeness = earlier.completeness | entry.completeness
    const before = json ?? (await this.#json(earlier.sequence))
    if (before === undefined) return { ...entry, completeness }
    const event = mergeDuplicates(JSON.parse(before), JSON.parse(entry.json))
    return { ...entry, completeness, json: JSON.stringify(event) }
  }

  async #json(sequence: number | undefined): Promise<string | undefined> {
    if (sequence === undefined) return undefined
    const { jsm, names } = this.#connection
    const message = await jsm.streams.getMessage(names.events, { seq: sequence })
    return message === null
      ? undefined
      : this.#payloads.read({ data: message.data, field: (name) => message.header.get(name) })
  }

  /**
   * Entries of other writers may come between the entries of a source, and the rest is refused then. So as many are sent at once as were
   * stored on average, and one more each time that all of them were. The first entry of a source is refused only if others write to the
   * same source.
   */
  #adapt(outcomes: readonly (readonly Outcome[])[]): void {
    const sent = outcomes.filter(({ length }) => length > 0)
    if (sent.some((of) => of.some(({ kind }) => kind === 'overtaken'))) {
      const stored = sent.flat().filter(({ kind }) => kind === 'stored').length
      this.#window = Math.max(1, Math.floor(stored / sent.length))
    } else if (this.#window < MAX_WINDOW) {
      this.#window += 1
    }
  }

  /** Sends all, those of a source directly one after the other. */
  #send(planned: readonly (readonly Planned[])[]): Promise<Outcome[][]> {
    const { isReplicated } = this.#connection
    return Promise.all(
      planned.map((run) => {
        if (isReplicated) return this.#sendInTurn(run)
        return Promise.all(
          run.map((each, i) => {
            const before = run[i - 1]
            if (before === undefined) return this.#publishAfter(each, each.run.identities.last)
            return this.#publish(each, { [MESSAGE_ID]: each.id, [LAST_ID]: before.id })
          }),
        )
      }),
    )
  }

  /** Sends the entries of a source to a cluster, each once the one before counts, until another writer is faster. */
  async #sendInTurn(planned: readonly Planned[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    let after = planned[0]?.run.identities.last ?? 0
    for (const each of planned) {
      const sent = await this.#publishAfter(each, after)
      const outcome = sent.kind === 'stored' ? await this.#counted(each, after, sent.sequence) : sent
      outcomes.push(outcome)
      if (outcome.kind !== 'stored') break
      after = outcome.sequence
    }
    return [...outcomes, ...planned.slice(outcomes.length).map(() => ({ kind: 'overtaken' }) as const)]
  }

  /** Whether an entry that was stored in a cluster counts. */
  async #counted({ run: { subject } }: Planned, after: number, sequence: number): Promise<Outcome> {
    const { events } = this.#connection.names
    try {
      const counts = await isNext(this.#connection, events, subject, { after, sequence })
      return counts ? { kind: 'stored', sequence } : { kind: 'refused' }
    } catch (error) {
      return { kind: 'unknown', error }
    }
  }

  #publishAfter(planned: Planned, after: number): Promise<Outcome> {
    return this.#publish(planned, conditions(this.#connection, planned.id, after))
  }

  async #publish(
    { run, payload, fields }: Planned,
    conditional: Readonly<Record<string, string>>,
  ): Promise<Outcome> {
    try {
      const { publisher } = this.#connection
      const { sequence } = await publisher.publish({
        subject: run.subject,
        payload,
        fields: { ...conditional, ...fields },
      })
      return { kind: 'stored', sequence }
    } catch (error) {
      const code = error instanceof JetStreamApiError ? error.code : 0
      if (code === WRONG_LAST_ID) return { kind: 'overtaken' }
      if (code === WRONG_LAST_SEQUENCE) return { kind: 'refused' }
      return { kind: 'unknown', error }
    }
  }

  /** Notes the stored entries of a run, and leaves the rest in `todo`. Returns the numbers of the stored entries. */
  async #settle(planned: readonly Planned[], outcomes: readonly Outcome[]): Promise<readonly number[]> {
    const [first] = planned
    if (first === undefined) return []
    const { run } = first
    const { identities } = run
    const sequences = outcomes.map((outcome) => (outcome.kind === 'stored' ? outcome.sequence : undefined))
    const isDoubtful = outcomes.some(({ kind }) => kind === 'refused' || kind === 'unknown')
    if (isDoubtful) {
      const fatal = outcomes.find(
        (outcome): outcome is Outcome & { readonly kind: 'unknown' } =>
          outcome.kind === 'unknown' && isLasting(this.#connection.log, outcome.error),
      )
      if (fatal !== undefined) throw serverError(this.#connection.log, fatal.error)
      const written = await retryTransient(this.#connection, () =>
        this.#identities.refresh(run.source, identities),
      )
      for (const [i, each] of planned.entries()) sequences[i] ??= written.get(each.id)
    }
    // Each one is stored after the one before, or not at all.
    const until = sequences.findLastIndex((sequence) => sequence !== undefined) + 1
    for (const [i, { entry, hash, revision }] of planned.slice(0, until).entries()) {
      const sequence = sequences[i]
      if (sequence === undefined) continue
      identities.note(hash, { revision, completeness: entry.completeness, sequence })
      if (!isDoubtful) {
        identities.last = sequence
        identities.read = sequence
      }
    }
    run.todo = run.todo.slice(until === planned.length ? run.looked : planned[until]?.index)
    return sequences.slice(0, until).filter((sequence) => sequence !== undefined)
  }

  #failure(outcomes: readonly Outcome[]): unknown {
    const unknown = outcomes.find((outcome) => outcome.kind === 'unknown')
    if (unknown !== undefined) return serverError(this.#connection.log, unknown.error)
    const problem = 'cannot be written to: other writers write to the same source all the time'
    return new LogServerError(this.#connection.log, problem, { retryable: true })
  }
}

/** Whether the log has an entry, or a more complete one, by what is known of its source. */
function isRecorded(entry: PreparedEntry, { known }: SourceIdentities): boolean {
  const earlier = known.get(identityKey(entry))
  return earlier !== undefined && isAtLeastAsComplete(earlier.completeness, entry.completeness)
}

/** Whether a source has no message, and entries for it. */
function isToBegin(identities: SourceIdentities, todo: readonly PreparedEntry[]): boolean {
  return identities.last === 0 && todo.some((entry) => !isRecorded(entry, identities))
}

/** Whether the error is permanent, so that repeating would not help. */
function isLasting(log: string, error: unknown): boolean {
  const known = serverError(log, error)
  return !(known instanceof LogServerError) || !known.retryable
}
