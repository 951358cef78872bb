import { firstValueFrom, fromEvent, race, timer } from 'rxjs'
import type { Observers } from '../../protocol/observers.ts'
import { untilAborted } from '../../protocol/until-aborted.ts'
import { FencedError, LogClosedError, LogInUseError } from '../errors.ts'
import { MAX_APPEND_ENTRIES, MAX_APPEND_LENGTH } from '../store/contract.ts'
import type { Appended, Fence, LogStore, NewEntry } from '../store/contract.ts'
import type { LogObserver } from './observer.ts'
import type { Retention } from './retention.ts'

/** Maximum number of open logs that append events of an application at the same time. */
const MAX_APPENDERS = 10_000

/** Maximum number of claims for one append. Each one after the first was taken over, as after a suspension. */
const MAX_CLAIMS = 5

/** How often an append that waits for room looks for it, in ms. */
const PAUSED_INTERVAL = 1_000

/** What an {@link Appender} has from its log. */
interface AppenderSettings {
  readonly observers: Observers<LogObserver>
  readonly retention: Retention
  /** Whether a consumer of this open log has this name, as in `pausedBy` of the retention. */
  readonly runs: (reader: string) => boolean
}

/** Number of entries that are new, and of those that the log had. */
type Counts = Pick<Appended, 'entries' | 'duplicates'>

/** Appends the events of an application to a log: one call after the other, so that each source keeps its order. */
export class Appender {
  readonly #store: LogStore
  readonly #observers: Observers<LogObserver>
  readonly #retention: Retention
  readonly #runs: (reader: string) => boolean
  readonly #closing = new AbortController()
  /** Resolves after the calls so far. */
  #last: Promise<void> = Promise.resolve()
  #fence: Fence | undefined
  #isClosed = false

  constructor(store: LogStore, { observers, retention, runs }: AppenderSettings) {
    this.#store = store
    this.#observers = observers
    this.#retention = retention
    this.#runs = runs
  }

  /**
   * Appends entries. Rejects with a `LogClosedError` once the log is closed.
   *
   * @param signal Ends the wait for earlier calls and for room.
   */
  append(entries: readonly NewEntry[], signal: AbortSignal | undefined): Promise<Counts> {
    if (this.#isClosed) return Promise.reject(new LogClosedError(this.#store.name))
    const earlier = this.#last
    const turn = signal === undefined ? earlier : untilAborted(earlier, signal)
    const counts = turn.then(() => this.#append(entries, signal))
    this.#last = counts.then(
      () => {},
      () => earlier,
    )
    return counts
  }

  /** Refuses to wait for room from now on. */
  stopWaiting(): void {
    this.#closing.abort(new LogClosedError(this.#store.name))
  }

  /** Resolves after the calls so far. Later ones reject. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.stopWaiting()
    await this.#last
  }

  async #append(entries: readonly NewEntry[], signal: AbortSignal | undefined): Promise<Counts> {
    const counts = { entries: 0, duplicates: 0 }
    for (const part of partsOf(entries)) {
      await this.#room(signal)
      const appended = await this.#observers.around(
        () => this.#appendPart(part),
        (observer, proceed) => (observer.append === undefined ? proceed() : observer.append(part, proceed)),
      )
      counts.entries += appended.entries
      counts.duplicates += appended.duplicates
    }
    return counts
  }

  /**
   * Waits while the log is paused, but not for a consumer that runs here. Its handler may wait for the call, also through a queue or another
   * task, and so for itself: such a call cannot be distinguished from others.
   */
  async #room(signal: AbortSignal | undefined): Promise<void> {
    const ending =
      signal === undefined ? this.#closing.signal : AbortSignal.any([this.#closing.signal, signal])
    for (;;) {
      signal?.throwIfAborted()
      await this.#retention.appended()
      const { pausedBy } = this.#retention
      if (pausedBy === null || this.#runs(pausedBy)) return
      ending.throwIfAborted()
      await firstValueFrom(race(timer(PAUSED_INTERVAL), fromEvent(ending, 'abort')))
    }
  }

  async #appendPart(entries: readonly NewEntry[]): Promise<Appended> {
    for (let claims = 1; ; claims++) {
      const fence = (this.#fence ??= await this.#claim())
      try {
        return await this.#store.append([{ fence, expect: null, entries }])
      } catch (error) {
        if (!(error instanceof FencedError) || claims === MAX_CLAIMS) throw error
        // What was appended under the old claim is not appended again.
        this.#fence = undefined
      }
    }
  }

  /** Claims the first name that no other open log has: numbers, so that a log does not collect names. */
  async #claim(): Promise<Fence> {
    for (let number = 1; ; number++) {
      try {
        return await this.#store.claim(`stream:app:${number}`)
      } catch (error) {
        if (!(error instanceof LogInUseError) || number === MAX_APPENDERS) throw error
      }
    }
  }
}

/** Cuts entries into parts of one append each. A single entry may be longer. */
function partsOf(entries: readonly NewEntry[]): readonly (readonly NewEntry[])[] {
  const parts: NewEntry[][] = []
  let length = Infinity
  for (const entry of entries) {
    const last = parts.at(-1)
    length += entry.json.length
    if (last === undefined || last.length === MAX_APPEND_ENTRIES || length > MAX_APPEND_LENGTH) {
      parts.push([entry])
      ;({ length } = entry.json)
    } else last.push(entry)
  }
  return parts
}
