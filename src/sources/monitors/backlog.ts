import type { Gate } from '../../protocol/gate.ts'
import { monitorEvent } from '../../protocol/event.ts'
import type { ListedMonitorEvent } from '../../protocol/event.ts'
import type { MonitorEventsQuery, PaginatedMonitorEvents } from '../../protocol/monitor.ts'
import { ProtocolError, ValidationError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { lineOf, monitorPage, nextCursor, reportWarnings } from './pages.ts'
import type { MonitorPosition } from './position.ts'
import { openOrAborted } from '../shapes/backpressure.ts'
import { requestFlushed } from '../shapes/request-flushed.ts'
import type { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'

/** Events that are kept from walking back to emitting, so that a short backlog costs no request twice. */
const KEPT = 400

/** Pages of one backlog, far more than the service lists: a list without an end must not grow the heap without an end. */
const MAX_PAGES = 100_000

/** Times in a row that the pages may break off and the walk begins again. */
const WALKS = 3

/** Different events without an id of their own that have to be known in a row, for what follows to count as known too. */
const KNOWN_IN_ROW = 10

/** Events of a monitor, oldest first. */
export interface Portion {
  readonly events: readonly ListedMonitorEvent[]
  /** Whether events before them were lost at the service. */
  readonly afterGap: boolean
}

/** A page that was seen while walking back. */
interface SeenPage {
  readonly cursor: string | undefined
  /** Ids at its older end. A page under the same cursor that has them leaves nothing out between itself and the older page. */
  readonly joint: readonly string[]
  /** Undefined where they were given up, and the page is fetched again. */
  events: readonly ListedMonitorEvent[] | undefined
}

/** What is new of a page. */
interface News {
  /** Newest first. */
  readonly events: readonly ListedMonitorEvent[]
  /** Whether it has an event that was emitted before, so that what follows is known. */
  readonly reached: boolean
}

/**
 * What a monitor reported since a position, oldest first and in bounded memory, though the service lists the newest first.
 *
 *     list:       new ── page 1 ── page 2 ── page 3 ── page 4 ── known
 *     walk back:         fetch ──▶ fetch ──▶ fetch ──▶ fetch ──▶ reached      keeps cursors, and the last 400 events
 *     emit:              ◀── fetch  ◀── fetch  ◀── kept  ◀── kept
 *
 * New events may move others from a page to the next older one, since a cursor may count from the newest event. So a page that is
 * fetched again must have the end that it had before; otherwise it walks back from there. A walk that failed goes on where
 * it was.
 */
export class MonitorBacklog {
  readonly #context: Context
  readonly #monitorId: string
  readonly #query: MonitorEventsQuery
  readonly #position: MonitorPosition
  readonly #answers: ProtocolErrorLimit
  /** Newest first. */
  #pages: SeenPage[] = []
  /** The pages from this one on have their events. */
  #firstKept = 0
  #kept = 0
  /** Whether it walks back; otherwise events are emitted. */
  #walks = true
  /** The page to walk back to; undefined behind the last one. */
  #ahead: { readonly cursor: string | undefined } | undefined = { cursor: undefined }
  /** The cursors of this walk. */
  #cursors = new Set<string>()
  /** Whether this walk saw anything that was emitted before. */
  #sawKnown = false
  /** Events without an id of their own that this walk saw last, one after the other, and that were emitted before. */
  readonly #knownInRow = new Set<string>()
  /** Walks that broke off since something was emitted. */
  #broken = 0
  #upcoming:
    | { readonly cursor: string | undefined; readonly page: Promise<PaginatedMonitorEvents> }
    | undefined

  /** @param answers Is called for each right one. */
  constructor(
    context: Context,
    monitorId: string,
    query: MonitorEventsQuery,
    position: MonitorPosition,
    answers: ProtocolErrorLimit,
  ) {
    this.#answers = answers
    this.#context = context
    this.#monitorId = monitorId
    this.#query = query
    this.#position = position
  }

  /** Forgets the requests of a signal that was aborted. */
  resume(): void {
    this.#upcoming = undefined
  }

  /**
   * The next events; undefined at the end of the backlog, after which it begins anew.
   *
   * Rejects with the error of a request. One that can be retried leaves everything as it is.
   */
  async next(signal: AbortSignal, gate: Gate | undefined): Promise<Portion | undefined> {
    try {
      const portion = await this.#next(signal, gate)
      if (portion === undefined) this.#beginAgain()
      if (portion === undefined || portion.events.length > 0) this.#broken = 0
      return portion
    } catch (error) {
      if (!(error instanceof BrokenWalk)) throw error
      this.#beginAgain()
      this.#broken += 1
      throw this.#broken > WALKS ? error.reason : error
    }
  }

  async #next(signal: AbortSignal, gate: Gate | undefined): Promise<Portion | undefined> {
    let afterGap = false
    for (;;) {
      if (this.#walks) {
        await this.#walkBack(signal, gate)
        afterGap = !this.#sawKnown && this.#position.mark !== undefined
      }
      const page = this.#pages.at(-1)
      if (page === undefined) return afterGap ? { events: [], afterGap } : undefined
      if (page.events !== undefined) {
        this.#dropOldest()
        await this.#fetchAhead(this.#pages.at(-1), signal)
        return { events: page.events.toReversed(), afterGap }
      }
      const events = await this.#fetchAgain(page, signal)
      if (events !== undefined) return { events: events.toReversed(), afterGap }
    }
  }

  /** Walks to the newest event that was emitted, or to the end of the list. */
  async #walkBack(signal: AbortSignal, gate: Gate | undefined): Promise<void> {
    while (this.#ahead !== undefined) {
      const { cursor } = this.#ahead
      const page = await this.#fetch(cursor, signal)
      reportWarnings(this.#context, this.#monitorId, page)
      const { events, reached } = this.#newsOf(page)
      this.#add(cursor, events)
      this.#walkOn(reached ? undefined : nextCursor(page))
      if (this.#ahead === undefined) break
      this.#request(this.#ahead.cursor, signal)
      if (gate?.closed === true) await openOrAborted(gate, signal)
      signal.throwIfAborted()
    }
    this.#walks = false
  }

  /**
   * Fetches a page again whose events were given up. Undefined where it does not join the older ones: then there is a walk
   * back ahead.
   */
  async #fetchAgain(
    { cursor, joint }: SeenPage,
    signal: AbortSignal,
  ): Promise<readonly ListedMonitorEvent[] | undefined> {
    const page = await this.#fetch(cursor, signal)
    this.#sawKnown = false
    this.#knownInRow.clear()
    const { events, reached } = this.#newsOf(page)
    this.#dropOldest()
    const ids = new Set(events.map(({ id }) => id))
    if (reached || joint.every((id) => ids.has(id))) {
      await this.#fetchAhead(this.#pages.at(-1), signal)
      return events
    }
    this.#walks = true
    this.#cursors = new Set(cursor === undefined ? [] : [cursor])
    this.#add(cursor, events)
    this.#walkOn(nextCursor(page))
    return undefined
  }

  #newsOf({ events }: PaginatedMonitorEvents): News {
    const news: ListedMonitorEvent[] = []
    for (const wire of events) {
      const event = monitorEvent(this.#monitorId, wire, 'poll', this.#context.scheduler.now())
      if (this.#position.has(event.id)) {
        this.#sawKnown = true
        if (this.#isReached(event)) return { events: news, reached: true }
        continue
      }
      this.#knownInRow.clear()
      news.push(event)
    }
    return { events: news, reached: false }
  }

  /** Whether what follows this event, which was emitted before, was emitted too. */
  #isReached({ id, type }: ListedMonitorEvent): boolean {
    if (type !== 'unknown') return true
    // Its id is made of its content, and one content may come again. That many in a row do not.
    this.#knownInRow.add(id)
    return this.#knownInRow.size >= KNOWN_IN_ROW
  }

  #walkOn(cursor: string | undefined): void {
    this.#ahead = undefined
    if (cursor === undefined) return
    const request = lineOf(this.#monitorId)
    if (this.#cursors.has(cursor))
      throw new BrokenWalk(
        request,
        new ProtocolError('the pages go round in a circle', request, { retryable: false }),
      )
    if (this.#pages.length >= MAX_PAGES || this.#cursors.size >= MAX_PAGES)
      throw new ProtocolError(`the list has more than ${MAX_PAGES} pages`, request, { retryable: false })
    this.#cursors.add(cursor)
    this.#ahead = { cursor }
  }

  #add(cursor: string | undefined, events: readonly ListedMonitorEvent[]): void {
    if (events.length === 0) return
    const last = events.findLastIndex(({ type }) => type !== 'unknown')
    const joint = events.slice(Math.max(last, 0)).map(({ id }) => id)
    this.#pages.push({ cursor, joint, events })
    this.#kept += events.length
    for (let page = this.#pages[this.#firstKept]; this.#kept > KEPT; page = this.#pages[this.#firstKept]) {
      if (page?.events === undefined || this.#firstKept === this.#pages.length - 1) return
      this.#kept -= page.events.length
      page.events = undefined
      this.#firstKept += 1
    }
  }

  #dropOldest(): void {
    const page = this.#pages.pop()
    this.#kept -= page?.events?.length ?? 0
    this.#firstKept = Math.min(this.#firstKept, this.#pages.length)
  }

  /** The service should have the next request while a consumer is busy with the events before it. */
  async #fetchAhead(page: SeenPage | undefined, signal: AbortSignal): Promise<void> {
    if (page === undefined || page.events !== undefined) return
    this.#request(page.cursor, signal)
    await requestFlushed()
  }

  #request(cursor: string | undefined, signal: AbortSignal): void {
    const page = this.#send(cursor, signal)
    // It is awaited only after the consumer has had the events before; until then its rejection must not count as unhandled.
    page.catch(() => {})
    this.#upcoming = { cursor, page }
  }

  async #fetch(cursor: string | undefined, signal: AbortSignal): Promise<PaginatedMonitorEvents> {
    const upcoming = this.#upcoming
    this.#upcoming = undefined
    try {
      if (upcoming !== undefined && upcoming.cursor === cursor) return await upcoming.page
      return await this.#send(cursor, signal)
    } catch (error) {
      const isCursor = error instanceof ValidationError && cursor !== undefined
      throw isCursor ? new BrokenWalk(lineOf(this.#monitorId), error) : error
    }
  }

  async #send(cursor: string | undefined, signal: AbortSignal): Promise<PaginatedMonitorEvents> {
    const page = await monitorPage(this.#context, this.#monitorId, { ...this.#query, cursor }, signal)
    this.#answers.reset()
    return page
  }

  #beginAgain(): void {
    this.#pages = []
    this.#firstKept = 0
    this.#kept = 0
    this.#walks = true
    this.#ahead = { cursor: undefined }
    this.#cursors = new Set()
    this.#sawKnown = false
    this.#knownInRow.clear()
    this.#upcoming = undefined
  }
}

/** The service no longer knows a cursor that it gave, or leads back to one. Another walk may succeed. */
class BrokenWalk extends ProtocolError {
  /** What a walk ends with that broke off too often. */
  readonly reason: Error

  constructor(request: RequestLine, reason: Error) {
    super('the pages break off, and the walk begins again', request, { cause: reason })
    this.reason = reason
  }
}
