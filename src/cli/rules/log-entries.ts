import { setImmediate } from 'node:timers/promises'
import type { Entry, EventLog } from 'rivulet'

/** Maximum number of entries that are read at once. */
const PAGE = 500

/** The entries of a log from its beginning to its present end, a page in memory at a time. */
export async function* logEntries(log: EventLog, signal: AbortSignal): AsyncGenerator<Entry> {
  let position = await log.positionAt('start')
  for (;;) {
    const page = await log.read(position, { limit: PAGE })
    yield* page.entries
    if (page.isEnd) return
    position = page.position
    // A signal of the operating system must be seen between pages.
    await setImmediate()
    signal.throwIfAborted()
  }
}
