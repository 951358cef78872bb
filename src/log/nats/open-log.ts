import { ArgumentError } from '../../protocol/argument-error.ts'
import type { LogClock } from '../../protocol/event.ts'
import { isTimeEventType } from '../../protocol/event-types.ts'
import { parseJson } from '../../protocol/json.ts'
import { CLOCK_SOURCE } from '../../protocol/log-event.ts'
import type { Appended, Position, StreamAppend } from '../store/contract.ts'
import { clockChangeOf, clockEntry, clocksOf } from '../store/log-clock.ts'
import { machineClock } from '../store/machine-clock.ts'
import { IDENTITY_LIMITS } from '../store/identity-age.ts'
import type { IdentityLimits } from '../store/identity-age.ts'
import type { InboxLimits } from '../store/inbox-store.ts'
import type { PreparedEntry } from '../store/new-entry.ts'
import { LogMetadata } from './server/log-metadata.ts'
import { Appending } from './entries/appending.ts'
import { Changes } from './server/changes.ts'
import { Connection } from './server/connection.ts'
import type { ConnectionSettings } from './server/connection.ts'
import { Forgetting } from './entries/forgetting.ts'
import { NatsIdentities } from './entries/identities.ts'
import { NatsInbox } from './inbox.ts'
import type { JournaledEntries } from './journal/journaled-entries.ts'
import type { JournalLimits } from './journal/journal-state.ts'
import { ChunkedPayloads } from './server/chunked-payloads.ts'
import { MessageCursor } from './server/message-cursor.ts'
import { OpenJournals } from './open-journals.ts'
import { retryTransient } from './server/retry-transient.ts'
import { NatsPositions } from './entries/positions.ts'
import { Reading } from './reading/reading.ts'
import { RecordedTimes } from './entries/recorded-times.ts'
import { NatsTrimming } from './entries/trimming.ts'

/** Number of partitions of a new log. */
export const DEFAULT_PARTITIONS = 64

/** Maximum time to wait for writes in flight when the log is closed, in ms. */
const CLOSE_PATIENCE = 3_000

/** Settings of an {@link OpenNatsLog}. */
export interface OpenNatsLogSettings extends Omit<ConnectionSettings, 'partitions'> {
  /** Number of partitions; undefined for that of the log. */
  readonly partitions: number | undefined
  readonly owner: string
  readonly clock: () => number
  readonly inbox: Required<InboxLimits>
  /** See {@link NatsInbox}. */
  readonly knownIds?: number
  readonly identityLimits?: IdentityLimits
  /** Default `JOURNAL_LIMITS`. */
  readonly journalLimits?: JournalLimits
}

/** The parts of a log whose server is connected. */
export class OpenNatsLog implements JournaledEntries {
  readonly connection: Connection
  readonly about: LogMetadata
  readonly positions: NatsPositions
  readonly reading: Reading
  readonly times: RecordedTimes
  readonly changes: Changes
  readonly inbox: NatsInbox
  readonly trimming: NatsTrimming
  readonly forgetting: Forgetting
  readonly journals: OpenJournals
  readonly #payloads: ChunkedPayloads
  readonly #identities: NatsIdentities
  readonly #appending: Appending
  /** The last of the appends, which run one after the other. */
  #lastAppend: Promise<unknown> = Promise.resolve()

  /** @param closed Aborted once the log is closed. Its reason is the error with which calls reject from then on. */
  static async open(settings: OpenNatsLogSettings, closed: AbortSignal): Promise<OpenNatsLog> {
    const connection = await Connection.open({
      ...settings,
      partitions: settings.partitions ?? DEFAULT_PARTITIONS,
    })
    try {
      const about = await LogMetadata.open(connection, settings.partitions ?? DEFAULT_PARTITIONS)
      const { partitions } = about.current
      if (settings.partitions !== undefined && settings.partitions !== partitions) {
        throw new ArgumentError('partitions', `${partitions}, as the log has, or none`, settings.partitions)
      }
      connection.names.partitions = partitions
      return new OpenNatsLog(connection, about, settings, closed)
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  private constructor(
    connection: Connection,
    about: LogMetadata,
    { owner, clock, inbox, knownIds, identityLimits = IDENTITY_LIMITS, journalLimits }: OpenNatsLogSettings,
    closed: AbortSignal,
  ) {
    const { epoch } = about.current
    const payloads = new ChunkedPayloads(connection)
    this.#payloads = payloads
    const times = new RecordedTimes(connection, about, clocksOf(clock, machineClock))
    this.times = times
    this.connection = connection
    this.about = about
    this.positions = new NatsPositions(connection, about)
    this.reading = new Reading(connection, about, this.positions, times, payloads)
    this.changes = new Changes(connection)
    this.inbox = new NatsInbox(connection, payloads, this.changes, inbox, knownIds)
    this.trimming = new NatsTrimming(connection, about, payloads, identityLimits)
    this.forgetting = new Forgetting(connection, about, payloads, times)
    this.journals = new OpenJournals(connection, { owner, epoch, clock, closed, limits: journalLimits }, this)
    this.#identities = new NatsIdentities(connection, about.current.hasCopiedIdentities)
    this.#appending = new Appending(connection, this.#identities, times, payloads)
  }

  /** Appends the changes of streams, and then marks deliveries as done. */
  async append(appends: readonly StreamAppend[], done: readonly string[]): Promise<Appended> {
    const entries = appends.flatMap((append) => append.entries)
    const check = () => this.journals.streams.check(appends)
    const moves = await check()
    const { count, last, clock, ahead } = await this.#append(entries, check)
    const [end] = await Promise.all([
      this.positions.at(count > 0 ? last : await this.positions.last()),
      this.journals.streams.move(moves),
    ])
    await this.inbox.done(done, await this.times.now())
    return { entries: count, duplicates: entries.length - count, ahead, ...(clock && { clock }), end }
  }

  async publish(entries: readonly PreparedEntry[]): Promise<void> {
    // These entries belong to a commit, which is in the journal.
    await this.#append(entries, async () => {})
  }

  async checkPositions(positions: readonly Position[]): Promise<void> {
    for (const position of positions) await this.positions.parse(position)
  }

  order(position: Position): number {
    return this.positions.number(position)
  }

  async entryAt(position: Position) {
    return this.reading.entryAt(await this.positions.parse(position))
  }

  notify(): void {
    this.changes.notify()
  }

  /** The changes of the clock that the log still has, in order. */
  async clockChanges(): Promise<readonly LogClock[]> {
    const { names } = this.connection
    const options = { stream: names.events, subject: names.entries(CLOCK_SOURCE) }
    const changes: (LogClock | undefined)[] = []
    for await (const message of new MessageCursor(this.connection, options).all()) {
      changes.push(clockChangeOf(parseJson(this.#payloads.whole(message) ?? '')))
    }
    return changes.filter((change) => change !== undefined)
  }

  /** Gives up its claims, after the writes that are under way. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_PATIENCE)))
    try {
      await Promise.race([this.#lastAppend, patience])
      this.changes.close()
      // Claims that it cannot give up end with the lease.
      await Promise.race([this.journals.close().catch(() => {}), patience])
    } finally {
      clearTimeout(timer)
      this.reading.close()
      await this.connection.close()
    }
  }

  #append(entries: readonly PreparedEntry[], check: () => Promise<unknown>) {
    const append = this.#lastAppend.then(async () => {
      if (entries.length === 0) return { count: 0, last: 0, ahead: 0 }
      const { jump } = await this.times.advance()
      const change = this.times.unreported
      const ahead = jump?.by ?? 0
      const kept = await this.#notForgotten(entries)
      const added = change === undefined ? kept : [clockEntry(change), ...kept]
      let count = 0
      let last = 0
      for (const part of partsInTime(added)) {
        const appended = await this.#appending.append(part, check)
        count += appended.count
        last = Math.max(last, appended.last)
      }
      if (change !== undefined) this.times.reported(change)
      if (count > 0) this.changes.notify()
      return change === undefined ? { count, last, ahead } : { count: count - 1, last, ahead, clock: change }
    })
    this.#lastAppend = append.catch(() => {})
    return append
  }

  /** Leaves out the output of processes whose cause, an entry, was forgotten. */
  async #notForgotten(entries: readonly PreparedEntry[]): Promise<readonly PreparedEntry[]> {
    if (entries.every(({ cause }) => cause === undefined)) return entries
    await retryTransient(this.connection, () => this.#identities.refreshForgotten())
    const kept: PreparedEntry[] = []
    for (const entry of entries) {
      const { cause } = entry
      const isForgotten =
        cause !== undefined &&
        (await retryTransient(this.connection, () => this.#identities.isForgotten(cause)))
      if (!isForgotten) kept.push(entry)
    }
    return kept
  }
}

/**
 * Cuts entries before each one of the log's time, so that what comes before it is stored before it. Otherwise only the entries of one source
 * have an order.
 */
function partsInTime(entries: readonly PreparedEntry[]): readonly (readonly PreparedEntry[])[] {
  const parts: PreparedEntry[][] = [[]]
  for (const entry of entries) {
    if (isTimeEventType(entry.type) && parts.at(-1)?.length !== 0) parts.push([])
    parts.at(-1)?.push(entry)
  }
  return parts
}
