import { describe, expect, it } from 'vitest'
import type { ChangesPage } from '../../src/log/store/process-store.ts'
import { Counters } from '../../src/gateway/feed/counters.ts'
import { Feed } from '../../src/gateway/feed/feed.ts'

/** A feed over a store whose reads the test ends. */
function controlled() {
  const reads: PromiseWithResolvers<ChangesPage>[] = []
  const unused = () => Promise.reject(new Error('not used here'))
  const feed = new Feed(
    {
      reader: 'process:view:rows',
      states: {
        states: unused,
        start: unused,
        range: unused,
        end: () => Promise.resolve('0'),
        wait: () => new Promise(() => {}),
        changes: () => {
          const read = Promise.withResolvers<ChangesPage>()
          reads.push(read)
          return read.promise
        },
      },
      counters: new Counters(),
      scopeOf: () => '',
      sourceOf: () => undefined,
    },
    () => {},
  )
  return { feed, reads }
}

describe('the changes of a view', () => {
  it.each(Array.from({ length: 12 }, (_, turn) => turn))(
    'are read by one call at a time, also for who asks %i turns after the end of the one before',
    async (turns) => {
      const { feed, reads } = controlled()
      const stop = feed.follow({ onMore: () => {}, onError: () => {} })
      const settle = async (count: number) => {
        for (let turn = 0; turn < count; turn++) await Promise.resolve()
      }
      const waiting = feed.latest()
      await settle(20)
      expect(reads).toHaveLength(1)

      reads[0]?.resolve({ changes: [], position: '0', isEnd: true })
      await settle(turns)
      const later = feed.latest()
      await settle(20)

      // Who asks while a read is under way waits for the next one.
      expect(reads).toHaveLength(2)
      reads[1]?.resolve({ changes: [], position: '0', isEnd: true })
      await settle(20)
      for (const read of reads.slice(2)) read.resolve({ changes: [], position: '0', isEnd: true })
      expect([await waiting, await later]).toEqual(['0', '0'])
      stop()
    },
  )
})
