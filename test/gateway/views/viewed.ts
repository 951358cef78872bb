import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { LogStore } from 'rivulet/log/store'
import { onTestFinished } from 'vitest'
import { viewProcess } from '../../../src/gateway/feed/view-process.ts'
import type { View } from '../../../src/gateway/view.ts'
import { append } from '../../log/append.ts'

/** How many events are appended at once. */
const PART = 100

/** A view over a log in memory. */
export interface Viewed<Row> {
  readonly store: LogStore
  /** Appends events, and resolves with all rows by key when the view has processed them. */
  rows(...events: readonly ResearchEvent[]): Promise<ReadonlyMap<string, Row>>
}

/** Runs a view over a log in memory, until the test ends. Any failure of the view fails the test. */
export async function viewed<Row, Param extends string>({
  definition,
}: View<Row, Param>): Promise<Viewed<Row>> {
  // Tests set the date alone.
  const store = memoryStore({ clock: () => Date.now() })
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const process = log.process('view', viewProcess(definition))
  return {
    store,
    async rows(...events) {
      for (let at = 0; at < events.length; at += PART) await append(store, events.slice(at, at + PART))
      const end = await log.positionAt('end')
      for (;;) {
        const [reader] = (await log.stats()).readers
        if (reader?.cursor === end) break
        await Promise.race([process.done, new Promise((resolve) => setImmediate(resolve))])
      }
      const { state } = await process.snapshot()
      // The view's own rows.
      return state as ReadonlyMap<string, Row>
    },
  }
}
