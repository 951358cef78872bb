import * as fc from 'fast-check'
import { memoryStore } from 'rivulet/log'
import type { Entry, Position } from 'rivulet/log'
import type { LogStore, Fence } from 'rivulet/log/store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { inFrontOf } from '../../../src/log/store/in-front-of.ts'
import { sharedPages } from '../../../src/log/store/shared-pages.ts'
import { change } from '../../operators/events.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** A store with shared pages, with so many entries, and the reads of the store behind it. */
async function shared(count: number) {
  const store = memoryStore()
  onTestFinished(() => store.close())
  const reads: Position[] = []
  const counted = inFrontOf<LogStore>(store, {
    read(after, options) {
      reads.push(after)
      return store.read(after, options)
    },
  })
  const log = sharedPages(counted)
  const fence = await store.claim('stream:s')
  let next = 0
  const append = (more: number) =>
    store.append([
      { fence, expect: null, entries: Array.from({ length: more }, () => newEntry(change(`e${next++}`))) },
    ])
  if (count > 0) await append(count)
  return { log, store, reads, append, start: await store.positionAt('start') }
}

/** All entries that a reader receives until there are no more. */
async function readFrom(log: LogStore, start: Position, limit: number): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  for (let position = start; ;) {
    const page = await log.read(position, { limit })
    entries.push(...page.entries)
    ;({ position } = page)
    if (page.isEnd) return entries
  }
}

describe('pages that readers share', () => {
  it('are read once for two readers, whatever limits they have', async () => {
    const { log, reads, start } = await shared(250)
    await log.claim('consumer:a')
    await log.claim('process:b')
    const [one, other] = await Promise.all([readFrom(log, start, 100), readFrom(log, start, 37)])
    expect(one.map(({ id }) => id)).toEqual(Array.from({ length: 250 }, (_, n) => `e${n}`))
    expect(other).toEqual(one)
    expect(other.every((entry, n) => entry === one[n])).toBe(true)
    // The end is looked at by each of them.
    expect(reads.length).toBeLessThanOrEqual(5)
  })

  it('are not shared by one reader, by partitions with a reader each, and after the other has left', async () => {
    const { log, reads, start } = await shared(10)
    await log.claim('consumer.0:a')
    await log.claim('consumer.1:a')
    await log.claim('stream:other')
    const entries = [await readFrom(log, start, 10), await readFrom(log, start, 10)]
    expect(reads).toEqual([start, start])
    expect(entries[0]?.[0]).not.toBe(entries[1]?.[0])
    expect(Object.isFrozen(entries[0]?.[0]?.data)).toBe(false)

    const fence: Fence = await log.claim('consumer:a')
    const other = await log.claim('consumer:b')
    await readFrom(log, start, 10)
    await log.release(other)
    await readFrom(log, start, 10)
    expect(reads.slice(2)).toEqual([start, start])
    await log.release(fence)
  })

  it('have frozen entries, so that no reader changes what another one receives', async () => {
    const { log, start } = await shared(1)
    await log.claim('consumer:a')
    await log.claim('consumer:b')
    const [entry] = await readFrom(log, start, 10)
    const data = Object(entry?.data)
    expect(() => (data.output = null)).toThrow(TypeError)
    expect(
      Object.values(data).filter((value) => typeof value === 'object' && !Object.isFrozen(value)),
    ).toEqual([])
  })

  it('never say that the log ends where entries have followed since', async () => {
    const { log, start, append } = await shared(3)
    await log.claim('consumer:a')
    await log.claim('consumer:b')
    expect(await log.read(start, { limit: 10 })).toMatchObject({ isEnd: true })
    await append(2)
    const page = await log.read(start, { limit: 10 })
    expect(page.isEnd).toBe(false)
    expect(await readFrom(log, page.position, 10)).toHaveLength(2)
  })

  it('have nothing of a source that was forgotten', async () => {
    const { log, start } = await shared(3)
    await log.claim('consumer:a')
    await log.claim('consumer:b')
    const [entry] = await readFrom(log, start, 10)
    await log.retention.forget(entry?.source ?? '')
    expect(await readFrom(log, start, 10)).toEqual([])
  })

  it('are read again where the store has failed', async () => {
    const { store, start } = await shared(3)
    let fails = true
    const log = sharedPages(
      inFrontOf<LogStore>(store, {
        read: (after, options) => (fails ? Promise.reject(new Error('gone')) : store.read(after, options)),
      }),
    )
    await log.claim('consumer:a')
    await log.claim('consumer:b')
    const both = await Promise.allSettled([log.read(start, { limit: 1 }), log.read(start, { limit: 1 })])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    fails = false
    expect(await readFrom(log, start, 1)).toHaveLength(3)
  })

  it('give each reader all entries once, in order, while entries are appended', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('append' as const), count: fc.integer({ min: 1, max: 150 }) }),
      fc.record({
        do: fc.constant('read' as const),
        reader: fc.integer({ min: 0, max: 2 }),
        limit: fc.integer({ min: 1, max: 200 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { log, start, append } = await shared(0)
        const names = ['consumer:a', 'consumer:b', 'process:c']
        await Promise.all(names.map((name) => log.claim(name)))
        const readers = names.map(() => ({ position: start, ids: [] as string[] }))
        const reading: Promise<void>[] = []
        let appended = 0
        for (const given of steps) {
          if (given.do === 'append') {
            appended += given.count
            await append(given.count)
            continue
          }
          const reader = readers[given.reader]
          if (reader === undefined) continue
          const read = async () => {
            const page = await log.read(reader.position, { limit: given.limit })
            expect(page.entries.length).toBeLessThanOrEqual(given.limit)
            expect(page.lengths).toHaveLength(page.entries.length)
            reader.ids.push(...page.entries.map(({ id }) => id))
            reader.position = page.position
          }
          // Two readers may read at the same time, but none twice.
          await Promise.all(reading.splice(0))
          reading.push(read())
        }
        await Promise.all(reading)
        for (const { position, ids } of readers) {
          ids.push(...(await readFrom(log, position, 100)).map(({ id }) => id))
          expect(ids).toEqual(Array.from({ length: appended }, (_, n) => `e${n}`))
        }
      }),
      { numRuns: 50 },
    )
  })
})
