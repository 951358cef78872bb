import { memoryLog, openLog } from 'rivulet'
import type { LogStore, ResearchEvent } from 'rivulet'
import { onTestFinished } from 'vitest'
import { rowKey, rowPath } from '../../../src/protocol/live.ts'
import type { RowPath, View } from '../../../src/gateway/view.ts'
import { append } from '../../log/append.ts'

/** How many events are appended at once. */
const PART = 100

/** A view over a log in memory. */
export interface Viewed<Row> {
  readonly store: LogStore
  /** Appends events, and resolves with all rows by key when the view has processed them. */
  rows(...events: readonly ResearchEvent[]): Promise<ReadonlyMap<string, Row>>
}

/** Runs a view as a process of a log in memory, until the test ends. Any failure of the view fails the test. */
export async function viewed<Row, Param extends string>({
  definition,
}: View<Row, Param>): Promise<Viewed<Row>> {
  const store = memoryLog()
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const { key, reduce, source, ...options } = definition
  const process = log.process('view', {
    version: options.version,
    ...(options.types !== undefined && { types: options.types }),
    ...(options.where !== undefined && { where: options.where }),
    maxStateBytes: 256 * 1024,
    key: (entry) => {
      const paths = key(entry)
      if (paths === undefined) return undefined
      return isPath(paths) ? rowKey(paths) : paths.map(rowKey)
    },
    init: (): unknown => ({}),
    event: (state: unknown, entry, context) => {
      const path = rowPath(context.key)
      source?.(path)
      context.set(reduce(JSON.stringify(state) === '{}' ? undefined : state, entry, path))
    },
  })
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
      return state as ReadonlyMap<string, Row>
    },
  }
}

function isPath(paths: RowPath | readonly RowPath[]): paths is RowPath {
  return paths.every((part) => typeof part === 'string')
}
