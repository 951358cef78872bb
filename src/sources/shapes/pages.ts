import { firstValueFrom, timer } from 'rxjs'
import type { Observable } from 'rxjs'
import { gateOf } from '../../protocol/gate.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { openOrAborted } from './backpressure.ts'
import { fromAsync } from './from-async.ts'
import { requestFlushed } from './request-flushed.ts'
import { sourceOf } from './source.ts'

/** Number of pages in a row without anything new from which on each waits for {@link BARREN_PAUSE}. */
const MAX_UNPACED = 16

/** The pause before a page that follows many without anything new, in ms. */
const BARREN_PAUSE = 100

/** The most pages in a row without anything new. A filter of the service may leave out all entries of some hundred pages. */
const MAX_BARREN = 1_000

/** The longest cursor, in characters. All cursors of a list are kept. */
const MAX_CURSOR = 4_096

/** A list of the service, whose pages are requested one after the other. */
export interface List {
  /** The request, for errors. */
  readonly line: RequestLine
  /** The most pages that the list can have. Default `Infinity`. */
  readonly maxPages?: number
}

/** The cursors of one list. Requires progress of a service whose pages would never end. */
export class PageTrail {
  readonly #context: Context
  readonly #list: List
  readonly #cursors = new Set<string>()
  /** The entries of the last page, as JSON. */
  #last = ''
  /** Pages in a row without anything new. */
  #barren = 0

  constructor(context: Context, list: List) {
    this.#context = context
    this.#list = list
  }

  /** Whether a page had this cursor already. */
  has(cursor: string): boolean {
    return this.#cursors.has(cursor)
  }

  /**
   * Resolves when the page at this cursor may be requested: at once, or after a pause once many pages had nothing new. Rejects with a
   * ProtocolError for a list that repeats a cursor, or that does not end.
   *
   * @param entries The entries of the page with this cursor.
   */
  async next(cursor: string, entries: readonly unknown[], signal: AbortSignal): Promise<void> {
    const { line, maxPages = Infinity } = this.#list
    if (this.has(cursor)) throw new ProtocolError('the pages repeat a cursor', line)
    const refuse = (problem: string) => new ProtocolError(problem, line, { retryable: false })
    if (cursor.length > MAX_CURSOR) throw refuse(`a cursor has more than ${MAX_CURSOR} characters`)
    this.#cursors.add(cursor)
    if (this.#cursors.size >= maxPages) throw refuse(`the list has more than ${maxPages} pages`)
    this.#barren = this.#isBarren(entries) ? this.#barren + 1 : 0
    if (this.#barren >= MAX_BARREN) throw refuse(`${MAX_BARREN} pages in a row had nothing new`)
    if (this.#barren < MAX_UNPACED) return
    const { report, scheduler } = this.#context
    if (this.#barren === MAX_UNPACED) report({ kind: 'barren_pages', path: line.path, pages: MAX_UNPACED })
    await firstValueFrom(sourceOf(timer(BARREN_PAUSE, scheduler), signal))
  }

  /** Whether the page is empty, or has the entries of the page before. Compared only in a long list. */
  #isBarren(entries: readonly unknown[]): boolean {
    if (entries.length === 0) return true
    if (this.#cursors.size < MAX_UNPACED) return false
    const text = JSON.stringify(entries)
    const isSame = text === this.#last
    this.#last = text
    return isSame
  }
}

/** A paginated list of the service. */
export interface Paged<Page> extends List {
  /** The cursor of the first page to fetch; undefined for the start of the list. */
  readonly cursor: string | undefined
  readonly fetch: (cursor: string | undefined, signal: AbortSignal) => Promise<Page>
  /** Returns the cursor of the next page; undefined on the last page. */
  readonly next: (page: Page) => string | undefined
  readonly entries: (page: Page) => readonly unknown[]
}

/**
 * Emits each page of a list and completes after the last. The next page is prefetched while the current one is consumed; no
 * more than that is requested while the gate is closed.
 */
export function pagesOf<Page>(context: Context, paged: Paged<Page>): Observable<Page> {
  const { cursor: first, fetch, next, entries } = paged
  return fromAsync(async (subscriber, signal) => {
    const gate = gateOf(subscriber)
    const trail = new PageTrail(context, paged)
    let upcoming: Promise<Page> | undefined = fetch(first, signal)
    while (upcoming !== undefined) {
      const page: Page = await upcoming
      const cursor = next(page)
      upcoming = undefined
      if (cursor !== undefined) {
        await trail.next(cursor, entries(page), signal)
        upcoming = fetch(cursor, signal)
        // Awaited only after the consumer has had this page. Until then a rejection must not count as unhandled.
        upcoming.catch(() => {})
        // The request must be sent before a synchronous consumer blocks the event loop.
        await requestFlushed()
        if (signal.aborted) return
      }
      subscriber.next(page)
      if (gate?.closed === true) await openOrAborted(gate, signal)
      if (signal.aborted) return
    }
  })
}

/** Reads a cursor. The service may omit it, or send null or an empty one, on the last page. */
export function cursorOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
