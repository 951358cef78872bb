import type { EventLog } from '../../log/event-log/event-log.ts'
import { LogClosedError } from '../../log/errors.ts'
import { FRAME_END } from '../../http/server-sent-events.ts'
import { nextCursor } from './cursor.ts'
import type { Ending } from './ending.ts'
import { offsetOf } from './offset.ts'
import type { VisibleEntries, VisiblePage } from './visible-entries.ts'
import { hasMore } from './waiting.ts'

/** The entries that a response in `sse` mode follows. */
export interface Following {
  readonly log: EventLog
  readonly entries: VisibleEntries
  /** The page that was already read. */
  readonly first: VisiblePage
  readonly cursor: string | null
  /** How often there is an event at least, in ms. */
  readonly keepAlive: number
  readonly ending: Ending
  /** How long the client may take to read the end, in ms. */
  readonly grace: number
}

/**
 * The log as server-sent events: entries as `data`, and after them the offset as `control`. A page is read when the client
 * takes it.
 */
export function eventStream(following: Following): ReadableStream<Uint8Array> {
  const { ending, grace } = following
  const encoder = new TextEncoder()
  const events = eventsOf(following)
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Without effect once the client has taken all.
        const cut = () => {
          ending.finish()
          controller.error(new Error('the client does not read'))
        }
        ending.signal.addEventListener('abort', () => unreferenced(setTimeout(cut, grace)), { once: true })
      },
      async pull(controller) {
        try {
          const { done, value } = await events.next()
          if (done !== true) return controller.enqueue(encoder.encode(value))
          controller.close()
        } catch (error) {
          if (error instanceof LogClosedError) controller.close()
          else controller.error(error)
        }
        ending.finish()
      },
      // The events end by themselves.
      cancel: () => ending.finish(),
    },
    { highWaterMark: 0 },
  )
}

async function* eventsOf(following: Following): AsyncGenerator<string, void> {
  const { log, entries, first, keepAlive, ending } = following
  let page = first
  let cursor = following.cursor
  /** The last page of which the client knows. */
  let reported: VisiblePage | undefined
  const control = () => {
    cursor = nextCursor(cursor, Date.now())
    reported = page
    const fields = {
      streamNextOffset: offsetOf(page.position),
      streamCursor: cursor,
      ...(page.isEnd && { upToDate: true }),
    }
    return frame('control', JSON.stringify(fields))
  }
  let reportAt = 0
  // Entries that are read while the grant ends are no longer sent.
  while (!ending.signal.aborted) {
    if (page.messages.length > 0) {
      yield frame('data', `[${page.messages.join(',')}]`) + control()
      reportAt = performance.now() + keepAlive
    } else if (performance.now() >= reportAt || (page.isEnd && reported?.isEnd === false)) {
      // Also after entries that the client does not see, so that it need not go over them again.
      yield control()
      reportAt = performance.now() + keepAlive
    }
    if (page.isEnd) await hasMore(log, page.position, reportAt - performance.now(), ending.signal)
    if (!ending.signal.aborted) page = await entries.read(page.position)
  }
  if (reported !== page && page.messages.length === 0) yield control()
}

/** Only timers of Node keep a process running. */
function unreferenced(timer: ReturnType<typeof setTimeout>): void {
  if (typeof timer === 'object') timer.unref()
}

/** An event without a space before its data: the protocol's conformance tests compare the text of a frame. */
function frame(event: string, data: string): string {
  return `event: ${event}\ndata:${data}${FRAME_END}`
}
