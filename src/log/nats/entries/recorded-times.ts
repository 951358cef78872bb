import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import type { LogClock } from '../../../protocol/event.ts'
import { CONFIRMATION, isOwn, isTimeCertain, nextTime, TOLERANCE } from '../../store/log-clock.ts'
import type { LogTime, NextTime, WallAndMonotonic } from '../../store/log-clock.ts'
import type { LogMetadata } from '../server/log-metadata.ts'
import type { Connection } from '../server/connection.ts'
import { timesOf } from './entry-message.ts'
import type { WithFields } from './entry-message.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'

/** Maximum number of entries by other writers that a writer may not know before it reads on. */
const MAX_UNKNOWN = 4_096

/** Maximum number of these that the writer of the last entry may not know, so that the others need not read on themselves. */
const MAX_ADOPTED = 3_072

/** An entry with its number. */
interface NumberedEntry extends WithFields {
  readonly sequence: number
}

/**
 * When entries were recorded: never earlier than an entry before, although several machines write, each by its clock.
 *
 * An entry is recorded at the latest time in the fields of all entries up to it. A writer sends the latest time of its clock and of all
 * entries that it knows, and the number up to which it knows them. So only the entries between that one and the entry itself are to be
 * looked at, and each reader finds the same time, wherever it begins.
 *
 * A writer whose wall clock has jumped goes on by its monotonic clock, as everywhere. Here the server's clock has a say too: it tells how much
 * time has passed since the last entry when a writer begins, and a jump that it does not confirm is never believed.
 */
export class RecordedTimes {
  readonly #connection: Connection
  readonly #about: LogMetadata
  readonly #clocks: WallAndMonotonic
  /** The time by the clocks of this process; undefined until it is needed. */
  #time: LogTime | undefined
  #unreported: LogClock | undefined
  /** All entries up to this number are known, and the latest time in them. */
  #known: { readonly sequence: number; readonly recorded: number }
  /** The highest number that was written. */
  #written: number

  constructor(connection: Connection, about: LogMetadata, clocks: WallAndMonotonic) {
    this.#connection = connection
    this.#about = about
    this.#clocks = clocks
    this.#known = about.current.trimmed
    this.#written = Infinity
  }

  /** The fields of the next entries. */
  async next(): Promise<{ readonly recorded: number; readonly known: number }> {
    if (this.#written - this.#known.sequence > MAX_UNKNOWN) await this.#readOn()
    const { time } = await this.advance()
    const { recorded, sequence } = this.#known
    return { recorded: Math.max(recorded, time), known: sequence }
  }

  /** The last change of the wall clock, if the log has no entry about it; undefined for none. */
  get unreported(): LogClock | undefined {
    return this.#unreported
  }

  /** Notes that the log has an entry about a change. */
  reported(change: LogClock): void {
    if (this.#unreported === change) this.#unreported = undefined
  }

  /** The time of the log now. */
  async advance(): Promise<NextTime> {
    const before = await this.#before()
    let next = nextTime(before, this.#clocks)
    if (next.change?.state === 'accepted') {
      const server = await this.#serverTime()
      if (server < next.time - TOLERANCE) {
        const { time, monotonic } = nextTime(before, this.#clocks, false)
        // As far as both clocks agree. The server is asked again after as long, and not by each append.
        const agreed = Math.max(time, server)
        const jump = { since: monotonic, by: this.#clocks.wall() - agreed }
        const by = agreed - time
        const change: LogClock = { state: 'accepted', by, at: agreed }
        next = { time: agreed, monotonic, jump, change: by > TOLERANCE ? change : undefined }
      }
    }
    this.#time = next
    this.#unreported = next.change ?? this.#unreported
    return next
  }

  /** The time of the log now, in Unix ms. */
  async now(): Promise<number> {
    return nextTime(await this.#before(), this.#clocks, false).time
  }

  /** Whether entries may be deleted by their age. */
  get isCertain(): boolean {
    return this.#time === undefined || isTimeCertain(this.#time)
  }

  async #before(): Promise<LogTime> {
    const { recorded } = this.#known
    const monotonic = this.#clocks.monotonic()
    // It is not compared with that of the server.
    if (isOwn(this.#clocks)) return { time: recorded, monotonic, jump: null }
    this.#time ??= await this.#begin(monotonic)
    const { time, monotonic: since } = this.#time
    // Others may have recorded later, by their clocks.
    return recorded > time + (monotonic - since) ? { ...this.#time, time: recorded, monotonic } : this.#time
  }

  /** The time at the last entry, from the server's messages. */
  async #begin(monotonic: number): Promise<LogTime> {
    const { jsm, names } = this.#connection
    const [info, server, message] = await Promise.all([
      retryTransient(this.#connection, () => jsm.streams.info(names.events)),
      this.#serverTime(),
      retryTransient(this.#connection, () =>
        jsm.streams.getMessage(names.events, { last_by_subj: names.allEntries }),
      ),
    ])
    const { trimmed } = this.#about.current
    const last =
      message === null
        ? trimmed.recorded
        : await this.of({ sequence: message.seq, field: (name: string) => message.header.get(name) })
    if (last === undefined || last === 0) return { time: server, monotonic, jump: null }
    // The server may be on the same machine, and as wrong: a longer time counts once it is confirmed.
    const elapsed = Math.min(Math.max(0, server - Date.parse(info.state.last_ts)), CONFIRMATION)
    return { time: last, monotonic: monotonic - elapsed, jump: null }
  }

  /** The server's time, in Unix ms. It says when it has created something. */
  async #serverTime(): Promise<number> {
    const { jsm, names } = this.#connection
    const { created, name } = await retryTransient(this.#connection, () =>
      jsm.consumers.add(names.events, {
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.New,
        inactive_threshold: 1e9,
        mem_storage: true,
        num_replicas: 1,
      }),
    )
    jsm.consumers.delete(names.events, name).catch(() => {})
    return Date.parse(created)
  }

  /** Notes an entry or a barrier that was written with this time in its field. Call it in the order of the numbers. */
  written(sequence: number, recorded: number): void {
    this.#written = sequence
    if (sequence === this.#known.sequence + 1) {
      this.#known = { sequence, recorded: Math.max(recorded, this.#known.recorded) }
    }
  }

  /** Time at which an entry or a barrier, just read from the log, was recorded; undefined for another message. */
  async of(message: NumberedEntry): Promise<number | undefined> {
    const times = timesOf(message)
    if (times === undefined) return undefined
    const { recorded, known } = times
    if (message.sequence - known <= 1) return recorded
    return Math.max(recorded, await this.#latest(known, message.sequence))
  }

  /** The latest time in the fields of the entries between two of them. */
  async #latest(after: number, before: number): Promise<number> {
    const { names } = this.#connection
    const cursor = new MessageCursor(this.#connection, { stream: names.events, after, fieldsOnly: true })
    let latest = 0
    let count = 0
    for await (const each of cursor.all(before - after)) {
      if (each.sequence >= before) break
      latest = Math.max(latest, timesOf(each)?.recorded ?? 0)
      count += 1
    }
    const isComplete = count === before - 1 - after
    const { trimmed } = isComplete ? this.#about.current : await this.#about.read()
    return trimmed.sequence > after ? Math.max(latest, trimmed.recorded) : latest
  }

  async #readOn(): Promise<void> {
    const { jsm, names } = this.#connection
    const last = await jsm.streams.getMessage(names.events, { last_by_subj: names.allEntries })
    if (last === null) {
      const { trimmed } = await this.#about.read()
      this.#known = trimmed
    } else {
      const message = { sequence: last.seq, field: (name: string) => last.header.get(name) }
      const times = timesOf(message)
      if (times !== undefined && last.seq - times.known <= MAX_ADOPTED) {
        // Its time is not earlier than those of all entries that its writer knew.
        const recorded = Math.max(times.recorded, this.#known.recorded)
        this.#known = { sequence: times.known, recorded }
        this.#written = last.seq
        return
      }
      const recorded = await this.of(message)
      if (recorded !== undefined) this.#known = { sequence: last.seq, recorded }
    }
    this.#written = this.#known.sequence
  }
}
