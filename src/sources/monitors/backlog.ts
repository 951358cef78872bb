import type { Gate } from '../../protocol/gate.ts'
import { monitorEvent } from '../../protocol/event.ts'
import type { ListedMonitorEvent } from '../../protocol/event.ts'
import type { MonitorEventsQuery, PaginatedMonitorEvents } from '../../protocol/monitor.ts'
import { ProtocolError, ValidationError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { eventList, lineOf, monitorPage, nextCursor, reportWarnings } from './pages.ts'
import type { MonitorPosition } from './position.ts'
import { openOrAborted } from '../shapes/backpressure.ts'
import { PageTrail } from '../shapes/pages.ts'
import { requestFlushed } from '../shapes/request-flushed.ts'
import type { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'

/** The most events that are buffered while walking back, so that a short backlog needs no request twice. */
const MAX_BUFFERED = 400

/** The most restarts of the walk in a row after the pagination broke. */
const MAX_RESTARTS = 3

/** How many different events without their own id must be known in a row for the older ones to count as known. */
const KNOWN_IN_ROW = 10

/** Events of a monitor, oldest first. */
export interface Batch {
  readonly events: readonly ListedMonitorEvent[]
  /** Whether the service no longer has the events before them. */
  readonly afterGap: boolean
}

/** A page that was fetched while walking back. */
interface WalkedPage {
  readonly cursor: string | undefined
  /** Ids at its older end. If the page has them when it is fetched again, no event is missing between it and the older page. */
  readonly tail: readonly string[]
  /** Undefined once dropped to bound memory; then the page is fetched again. */
  events: readonly ListedMonitorEvent[] | undefined
}

/** The list of events that is walked. */
interface MonitorList {
  readonly monitorId: string
  readonly query: MonitorEventsQuery
}

/** The new events of a page. */
interface NewEvents {
  /** Newest first. */
  readonly events: readonly ListedMonitorEvent[]
  /** Whether the page reaches an event that was emitted before, so that all older ones were. */
  readonly reached: boolean
}

/**
 * The events of a monitor since a position, oldest first and in bounded memory, although the service lists the newest first.
 *
 * list:       new ── page 1 ── page 2 ── page 3 ── page 4 ── known walk back:         fetch ──▶ fetch ──▶ fetch ──▶ fetch ──▶
 * reached      buffers cursors, and the last 400 events emit:              ◀── fetch ◀── fetch ◀── buffer ◀── buffer
 *
 * New events may move others to the next older page, since a cursor may count from the newest event. So a page that is fetched
 * again must have its previous tail; otherwise it walks back again from there. After a retryable error it resumes.
 */
export class MonitorBacklog {
  readonly #context: Context
  readonly #monitorId: string
  readonly #query: MonitorEventsQuery
  readonly #position: MonitorPosition
  readonly #errorLimit: ProtocolErrorLimit
  /** Newest first. */
  #pages: WalkedPage[] = []
  /** Index of the first page whose events are buffered. */
  #firstBuffered = 0
  /** Number of buffered events. */
  #buffered = 0
  /** Whether it walks back; otherwise it emits. */
  #isWalking = true
  /** The next page of the walk; undefined at its end. */
  #older: { readonly cursor: string | undefined } | undefined = { cursor: undefined }
  /** The cursors of this walk. */
  #trail: PageTrail
  /** Whether this walk found an event that was emitted before. */
  #sawKnown = false
  /** The last events of this walk without their own id that were emitted before, in a row. */
  readonly #knownInRow = new Set<string>()
  /** Restarts of the walk since the last event. */
  #restarts = 0
  #prefetched:
    | { readonly cursor: string | undefined; readonly page: Promise<PaginatedMonitorEvents> }
    | undefined

  /** @param errorLimit Reset after each valid page. */
  constructor(
    context: Context,
    { monitorId, query }: MonitorList,
    position: MonitorPosition,
    errorLimit: ProtocolErrorLimit,
  ) {
    this.#errorLimit = errorLimit
    this.#context = context
    this.#monitorId = monitorId
    this.#query = query
    this.#position = position
    this.#trail = this.#newTrail()
  }

  #newTrail(): PageTrail {
    return new PageTrail(this.#context, eventList(this.#monitorId))
  }

  /** Whether the next walk begins at the newest event. A backlog that failed continues after the pages that it has. */
  get isAtStart(): boolean {
    return this.#isWalking && this.#pages.length === 0 && this.#older?.cursor === undefined
  }

  /** Called before each poll. Drops the prefetched page, whose signal was aborted. */
  resume(): void {
    this.#prefetched = undefined
  }

  /**
   * Returns the next events; undefined at the end of the backlog, after which it starts a new walk.
   *
   * Rejects with the error of a request. After a retryable error the next call resumes.
   */
  async next(signal: AbortSignal, gate: Gate | undefined): Promise<Batch | undefined> {
    try {
      const batch = await this.#next(signal, gate)
      if (batch === undefined) this.#restart()
      if (batch === undefined || batch.events.length > 0) this.#restarts = 0
      return batch
    } catch (error) {
      if (!(error instanceof BrokenPaginationError)) throw error
      this.#restart()
      this.#restarts += 1
      throw this.#restarts > MAX_RESTARTS ? error.reason : error
    }
  }

  async #next(signal: AbortSignal, gate: Gate | undefined): Promise<Batch | undefined> {
    let afterGap = false
    for (;;) {
      if (this.#isWalking) {
        await this.#walkBack(signal, gate)
        afterGap = !this.#sawKnown && this.#position.lastId !== undefined
      }
      const page = this.#pages.at(-1)
      if (page === undefined) return afterGap ? { events: [], afterGap } : undefined
      if (page.events !== undefined) {
        this.#dropOldest()
        await this.#prefetch(this.#pages.at(-1), signal)
        return { events: page.events.toReversed(), afterGap }
      }
      const events = await this.#fetchAgain(page, signal)
      if (events !== undefined) return { events: events.toReversed(), afterGap }
    }
  }

  /** Walks to the newest event that was emitted, or to the end of the list. */
  async #walkBack(signal: AbortSignal, gate: Gate | undefined): Promise<void> {
    while (this.#older !== undefined) {
      const { cursor } = this.#older
      const page = await this.#fetch(cursor, signal)
      reportWarnings(this.#context, this.#monitorId, page)
      const { events, reached } = this.#newEventsOf(page)
      this.#add(cursor, events)
      await this.#continueWalk(reached ? undefined : nextCursor(page), page, signal)
      if (this.#older === undefined) break
      this.#request(this.#older.cursor, signal)
      if (gate?.closed === true) await openOrAborted(gate, signal)
      signal.throwIfAborted()
    }
    this.#isWalking = false
  }

  /** Fetches a page again whose events were dropped. Returns undefined, and walks back again, if it no longer has its tail. */
  async #fetchAgain(
    { cursor, tail }: WalkedPage,
    signal: AbortSignal,
  ): Promise<readonly ListedMonitorEvent[] | undefined> {
    const page = await this.#fetch(cursor, signal)
    this.#sawKnown = false
    this.#knownInRow.clear()
    const { events, reached } = this.#newEventsOf(page)
    this.#dropOldest()
    const ids = new Set(events.map(({ id }) => id))
    if (reached || tail.every((id) => ids.has(id))) {
      await this.#prefetch(this.#pages.at(-1), signal)
      return events
    }
    this.#isWalking = true
    this.#trail = this.#newTrail()
    this.#add(cursor, events)
    await this.#continueWalk(nextCursor(page), page, signal)
    return undefined
  }

  #newEventsOf({ events }: PaginatedMonitorEvents): NewEvents {
    const newEvents: ListedMonitorEvent[] = []
    for (const wire of events) {
      const event = monitorEvent(this.#monitorId, wire, 'poll', this.#context.scheduler.now())
      if (this.#position.has(event.id)) {
        this.#sawKnown = true
        if (this.#isReached(event)) return { events: newEvents, reached: true }
        continue
      }
      this.#knownInRow.clear()
      newEvents.push(event)
    }
    return { events: newEvents, reached: false }
  }

  /** Whether all events older than this one, which was emitted before, were emitted too. */
  #isReached({ id, type }: ListedMonitorEvent): boolean {
    if (type !== 'unknown') return true
    // Its id is a hash of its content, which may occur again; but not so many times in a row.
    this.#knownInRow.add(id)
    return this.#knownInRow.size >= KNOWN_IN_ROW
  }

  async #continueWalk(
    cursor: string | undefined,
    { events }: PaginatedMonitorEvents,
    signal: AbortSignal,
  ): Promise<void> {
    this.#older = undefined
    if (cursor === undefined) return
    const request = lineOf(this.#monitorId)
    if (this.#trail.has(cursor))
      throw new BrokenPaginationError(
        request,
        new ProtocolError('the pages repeat a cursor', request, { retryable: false }),
      )
    await this.#trail.next(cursor, events, signal)
    this.#older = { cursor }
  }

  #add(cursor: string | undefined, events: readonly ListedMonitorEvent[]): void {
    if (events.length === 0) return
    const last = events.findLastIndex(({ type }) => type !== 'unknown')
    const tail = events.slice(Math.max(last, 0)).map(({ id }) => id)
    this.#pages.push({ cursor, tail, events })
    this.#buffered += events.length
    for (
      let page = this.#pages[this.#firstBuffered];
      this.#buffered > MAX_BUFFERED;
      page = this.#pages[this.#firstBuffered]
    ) {
      if (page?.events === undefined || this.#firstBuffered === this.#pages.length - 1) return
      this.#buffered -= page.events.length
      page.events = undefined
      this.#firstBuffered += 1
    }
  }

  #dropOldest(): void {
    const page = this.#pages.pop()
    this.#buffered -= page?.events?.length ?? 0
    this.#firstBuffered = Math.min(this.#firstBuffered, this.#pages.length)
  }

  /** Requests the page before a synchronous consumer blocks the event loop. */
  async #prefetch(page: WalkedPage | undefined, signal: AbortSignal): Promise<void> {
    if (page === undefined || page.events !== undefined) return
    this.#request(page.cursor, signal)
    await requestFlushed()
  }

  #request(cursor: string | undefined, signal: AbortSignal): void {
    const page = this.#send(cursor, signal)
    // Awaited only after the consumer has had the earlier events. Until then a rejection must not count as unhandled.
    page.catch(() => {})
    this.#prefetched = { cursor, page }
  }

  async #fetch(cursor: string | undefined, signal: AbortSignal): Promise<PaginatedMonitorEvents> {
    const prefetched = this.#prefetched
    this.#prefetched = undefined
    try {
      if (prefetched !== undefined && prefetched.cursor === cursor) return await prefetched.page
      return await this.#send(cursor, signal)
    } catch (error) {
      const isCursorRejected = error instanceof ValidationError && cursor !== undefined
      throw isCursorRejected ? new BrokenPaginationError(lineOf(this.#monitorId), error) : error
    }
  }

  async #send(cursor: string | undefined, signal: AbortSignal): Promise<PaginatedMonitorEvents> {
    const page = await monitorPage(this.#context, this.#monitorId, { ...this.#query, cursor }, signal)
    this.#errorLimit.reset()
    return page
  }

  #restart(): void {
    this.#pages = []
    this.#firstBuffered = 0
    this.#buffered = 0
    this.#isWalking = true
    this.#older = { cursor: undefined }
    this.#trail = this.#newTrail()
    this.#sawKnown = false
    this.#knownInRow.clear()
    this.#prefetched = undefined
  }
}

/** The service rejects a cursor that it sent, or repeats one. A new walk may succeed. */
class BrokenPaginationError extends ProtocolError {
  /** The error after too many restarts. */
  readonly reason: Error

  constructor(request: RequestLine, reason: Error) {
    super('the pagination broke and restarts', request, { cause: reason })
    this.reason = reason
  }
}
