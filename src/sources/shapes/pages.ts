import type { Observable } from 'rxjs'
import { gateOf } from '../../protocol/gate.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import { openOrAborted } from './backpressure.ts'
import { fromAsync } from './from-async.ts'
import { requestFlushed } from './request-flushed.ts'

/** A paginated list of the service. */
export interface Paged<Page> {
  /** The cursor of the first page to fetch; undefined for the start of the list. */
  readonly cursor: string | undefined
  readonly fetch: (cursor: string | undefined, signal: AbortSignal) => Promise<Page>
  /** Returns the cursor of the next page; undefined on the last page. */
  readonly next: (page: Page) => string | undefined
  /** The request, for errors. */
  readonly line: RequestLine
}

/**
 * Emits each page of a list and completes after the last. The next page is prefetched while the current one is consumed; no
 * more than that is requested while the gate is closed.
 */
export function pagesOf<Page>({ cursor: first, fetch, next, line }: Paged<Page>): Observable<Page> {
  return fromAsync(async (subscriber, signal) => {
    const gate = gateOf(subscriber)
    // Detects a service that returns the same cursor twice, which would loop forever.
    const cursors = new Set<string>()
    let upcoming: Promise<Page> | undefined = fetch(first, signal)
    while (upcoming !== undefined) {
      const page: Page = await upcoming
      const cursor = next(page)
      upcoming = undefined
      if (cursor !== undefined) {
        if (cursors.has(cursor)) throw new ProtocolError('the pages repeat a cursor', line)
        cursors.add(cursor)
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
