import type { Observable } from 'rxjs'
import { gateOf } from '../../protocol/gate.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import { fedBy } from './fed-by.ts'
import { opened } from './opened.ts'
import { requestWritten } from './request-written.ts'

/** A list that the service gives page by page. */
export interface Paged<Page> {
  /** Where it begins; undefined for the beginning of the list. */
  readonly cursor: string | undefined
  readonly fetch: (cursor: string | undefined, signal: AbortSignal) => Promise<Page>
  /** Where the next page is; undefined on the last one. */
  readonly next: (page: Page) => string | undefined
  /** The request, as errors name it. */
  readonly line: RequestLine
}

/**
 * The pages of a list, until the last. The next page is requested while the current one is consumed; behind a closed gate
 * none is asked for beyond that.
 */
export function pagesOf<Page>({ cursor: first, fetch, next, line }: Paged<Page>): Observable<Page> {
  return fedBy(async (subscriber, signal) => {
    const gate = gateOf(subscriber)
    // A service that hands out a cursor twice would lead round in a circle.
    const cursors = new Set<string>()
    let upcoming: Promise<Page> | undefined = fetch(first, signal)
    while (upcoming !== undefined) {
      const page: Page = await upcoming
      const cursor = next(page)
      upcoming = undefined
      if (cursor !== undefined) {
        if (cursors.has(cursor)) throw new ProtocolError('the pages go round in a circle', line)
        cursors.add(cursor)
        upcoming = fetch(cursor, signal)
        // It is awaited only after the consumer has had this page; until then its rejection must not count as unhandled.
        upcoming.catch(() => {})
        // The service should have the request while a synchronous consumer is busy with this page.
        await requestWritten()
        if (signal.aborted) return
      }
      subscriber.next(page)
      if (gate?.closed === true) await opened(gate, signal)
      if (signal.aborted) return
    }
  })
}

/** A cursor that can be followed; the service may leave it out, or send null or an empty one. */
export function cursorOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
