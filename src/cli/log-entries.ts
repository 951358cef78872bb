import { setImmediate } from 'node:timers/promises'
import type { Entry, EventLog, Position } from 'rivulet/log'

/** Maximum number of entries that are read at once. */
const PAGE = 500

/** Which entries of a log are read. */
interface Range {
  /** Default: the start of the log. */
  readonly after?: Position
  /** Default: all. */
  readonly types?: readonly string[] | undefined
}

/** The entries of a log to its present end, a page in memory at a time. */
export async function* logEntries(
  log: EventLog,
  signal: AbortSignal,
  { after, types }: Range = {},
): AsyncGenerator<Entry> {
  let position = after ?? (await log.positionAt('start'))
  for (;;) {
    const page = await log.read(position, { limit: PAGE, types })
    yield* page.entries
    if (page.isEnd) return
    ;({ position } = page)
    // A signal of the operating system must be seen between pages.
    await setImmediate()
    signal.throwIfAborted()
  }
}
