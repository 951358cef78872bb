import { join } from 'node:path'
import * as fc from 'fast-check'
import { sqliteStore } from 'rivulet/log/sqlite'
import { migrateLog } from 'rivulet/log/store'
import { describe, expect, it } from 'vitest'
import { contentOf } from './migration/content.ts'
import { CONSUMER, Historian, histories, PROCESS, STREAM, VIEW } from './migration/history.ts'
import { scratchFolder } from './sqlite/scratch.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const READERS = [CONSUMER, PROCESS, VIEW, STREAM]

describe('migrateLog', () => {
  it('makes a log that has all that the first one has', async () => {
    const folder = scratchFolder()
    let run = 0
    await fc.assert(
      fc.asyncProperty(histories, async (steps) => {
        let now = 1_000
        const clock = () => (now += 7)
        run += 1
        const from = sqliteStore(join(folder, `from-${run}.db`), { clock })
        const { events, webhooks } = await new Historian(from).run(steps)
        const to = sqliteStore(join(folder, `to-${run}.db`), { clock })
        const { entries, hash } = await migrateLog(from, to)
        const content = await contentOf(to, [STREAM, CONSUMER], READERS)
        expect(content).toEqual(await contentOf(from, [STREAM, CONSUMER], READERS))
        expect(entries).toBe(content.entries.length)
        expect(hash).toMatch(/^[\da-f]{64}$/)
        expect((await to.retention.stats()).inbox).toEqual((await from.retention.stats()).inbox)

        // Both take the same of what was recorded before: nothing, but what follows from entries that were forgotten and trimmed since.
        const fences = await Promise.all([from, to].map((log) => log.claim('another')))
        for (let at = 0; at < events.length; at += 100) {
          const some = events.slice(at, at + 100).map((event) => newEntry(event))
          const [before, after] = await Promise.all(
            [from, to].map((log, index) => {
              const fence = fences[index] ?? { name: '', token: 0 }
              return log.append([{ fence, expect: null, entries: some }])
            }),
          )
          expect(after?.entries).toBe(before?.entries)
        }
        for (const id of webhooks) {
          expect(await to.inbox.put({ id, timestamp: 0, payload: {} }, '{}')).toBe('duplicate')
        }
        await from.close()
        await to.close()
      }),
      { numRuns: 20 },
    )
  })
})
