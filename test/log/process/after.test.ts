import { setImmediate as turn } from 'node:timers/promises'
import { ArgumentError } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { progressEvent } from '../../../src/protocol/log-event.ts'
import { rfc3339 } from '../../../src/protocol/timestamp.ts'
import { entriesOf } from '../entries.ts'
import { append } from '../append.ts'
import { behindEvent, caughtUpEvent } from '../../../src/protocol/log-event.ts'
import { scratchFile } from '../sqlite/scratch.ts'
import { caughtUp, copying, counting, eventAt, lateIn, outputsOf, tickThrough } from './windows.ts'

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

/** Events of each second, and a tick each ten seconds. */
const seconds = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => from + n).flatMap((second) =>
    second % 10 === 9 ? [eventAt(second), tickThrough(second + 1)] : [eventAt(second)],
  )

const windows = (from: number, to: number) =>
  Array.from({ length: (to - from) / 10 }, (_, n) => ({ from: from + n * 10, count: 10 }))

describe.each([
  ['in memory', () => memoryStore()],
  ['in a file', async () => sqliteStore(await scratchFile())],
])('a process after another one, %s', (_where, storeOf) => {
  it('gets nothing late of a process that lags, which is stopped and started again', async () => {
    const store = await storeOf()
    const log = await opened(store)
    const first = log.process('copies', copying('/s'))
    log.process('counts', counting('/processes/copies', { after: ['copies'] }))
    await append(store, seconds(0, 100))
    await caughtUp(log, 'copies', 'counts')
    await first.stop()
    await append(store, seconds(100, 300))
    await caughtUp(log, 'counts')
    // Its time stands.
    expect((await outputsOf(log, 'counts')).length).toBeLessThanOrEqual(10)
    log.process('copies', copying('/s'))
    await append(store, seconds(300, 310))
    await caughtUp(log, 'copies', 'counts')
    expect(await lateIn(log, 'counts')).toBe(0)
    expect(await outputsOf(log, 'counts')).toEqual(windows(0, 310))
  })

  it('gets nothing late of a process that held a source, which has caught up', async () => {
    const store = await storeOf()
    const log = await opened(store)
    log.process('sums', counting('/s'))
    let counts = log.process('counts', counting('/processes/sums', { after: ['sums'] }))
    const now = Date.now()
    const through = Date.parse(eventAt(12).time ?? '')
    await append(store, seconds(0, 12))
    await append(store, [tickThrough(12), behindEvent('/s', '1', { through, until: Infinity }, now)])
    for (let second = 20; second <= 100; second += 10) await append(store, [tickThrough(second)])
    await caughtUp(log, 'sums', 'counts')
    expect(await outputsOf(log, 'sums')).toHaveLength(1)
    await append(
      store,
      seconds(12, 89).filter(({ type }) => type !== 'log.tick'),
    )
    await append(store, [caughtUpEvent('/s', '2', now, now)])
    await caughtUp(log, 'sums', 'counts')
    await counts.stop()
    counts = log.process('counts', counting('/processes/sums', { after: ['sums'] }))
    for (let second = 110; second <= 130; second += 10) {
      await append(store, [tickThrough(second)])
      await caughtUp(log, 'sums', 'counts')
    }
    await append(store, [tickThrough(200)])
    await caughtUp(log, 'sums', 'counts')
    expect(await lateIn(log, 'counts')).toBe(0)
    expect(await outputsOf(log, 'sums')).toEqual([...windows(0, 80), { from: 80, count: 9 }])
    expect(await outputsOf(log, 'counts')).toEqual(
      Array.from({ length: 9 }, (_, n) => ({ from: (n + 1) * 10, count: 1 })),
    )
    await counts.stop()
  })

  it('is late for nearly all of them without `after`', async () => {
    const store = await storeOf()
    const log = await opened(store)
    log.process('counts', counting('/processes/copies'))
    await append(store, seconds(0, 300))
    await caughtUp(log, 'counts')
    log.process('copies', copying('/s'))
    await caughtUp(log, 'copies', 'counts')
    expect(await lateIn(log, 'counts')).toBe(300)
  })
})

describe('after', () => {
  it('waits for processes that start later, and for those that come after others', async () => {
    const store = memoryStore()
    const log = await opened(store)
    log.process('sums', counting('/processes/counts', { after: ['counts'] }))
    log.process('counts', counting('/processes/copies', { after: ['copies'] }))
    await append(store, seconds(0, 50))
    await caughtUp(log, 'sums', 'counts')
    log.process('copies', copying('/s'))
    await append(store, seconds(50, 100))
    await caughtUp(log, 'copies', 'counts', 'sums')
    expect(await outputsOf(log, 'counts')).toEqual(windows(0, 100))
    expect(await lateIn(log, 'sums')).toBe(0)
    // The count of a window comes with its end, which is the next window.
    expect(await outputsOf(log, 'sums')).toEqual(windows(10, 100).map(({ from }) => ({ from, count: 1 })))
  })

  it('waits for the least of several processes, and for all parts of a divided one', async () => {
    const store = memoryStore({ partitions: 4 })
    const log = await opened(store)
    log.process('one', copying('/s', { share: true }))
    const two = log.process('two', copying('/s'))
    log.process('counts', counting('/processes/one', { after: ['one', 'two'] }))
    await append(store, seconds(0, 100))
    await caughtUp(log, 'one', 'two', 'counts')
    await two.stop()
    await append(store, seconds(100, 200))
    await caughtUp(log, 'one', 'counts')
    const stood = await outputsOf(log, 'counts')
    expect(stood.length).toBeLessThanOrEqual(10)
    log.process('two', copying('/s'))
    await append(store, seconds(200, 210))
    await caughtUp(log, 'one', 'two', 'counts')
    expect(await lateIn(log, 'counts')).toBe(0)
    expect(await outputsOf(log, 'counts')).toEqual(windows(0, 210))
  })

  it('no longer waits for a process that was removed', async () => {
    const store = memoryStore()
    const log = await opened(store)
    log.process('counts', counting('/s', { after: ['gone'] }))
    await append(store, seconds(0, 20))
    await caughtUp(log, 'counts')
    expect(await outputsOf(log, 'counts')).toEqual([])
    await log.remove({ process: 'gone' })
    await append(store, [tickThrough(30)])
    await caughtUp(log, 'counts')
    expect(await outputsOf(log, 'counts')).toEqual(windows(0, 20))
  })

  it('is followed by no progress once no process waits', async () => {
    const store = memoryStore()
    const log = await opened(store)
    const progress = async () => (await entriesOf(log)).filter(({ type }) => type === 'log.progress').length
    log.process('copies', copying('/s'))
    const counts = log.process('counts', counting('/s', { after: ['copies'] }))
    await append(store, seconds(0, 20))
    await caughtUp(log, 'copies', 'counts')
    await counts.stop()
    await log.remove({ process: 'counts' })
    const before = await progress()
    expect(before).toBeGreaterThan(0)
    await append(store, seconds(20, 60))
    await caughtUp(log, 'copies')
    expect(await progress()).toBe(before)
  })

  it('is complete as its own time says, whatever the progress of another process says', async () => {
    const store = memoryStore()
    const log = await opened(store)
    const other = (through: number, complete: boolean) =>
      progressEvent({ process: 'other', part: undefined, through, complete }, `${through}`, {
        time: null,
        received: rfc3339(0),
      })
    log.process('copies', copying('/s'))
    log.process('counts', counting('/s', { after: ['copies'] }))
    await append(store, [tickThrough(10)])
    await caughtUp(log, 'copies', 'counts')
    await append(store, [other(1, false), tickThrough(20, false), other(2, true), tickThrough(30)])
    await caughtUp(log, 'copies', 'counts')
    const reported = (await entriesOf(log))
      .filter(({ source, type }) => type === 'log.progress' && source === '/processes/copies')
      .map(({ data }) => data)
    expect(reported).toMatchObject([{ complete: true }, { complete: false }, { complete: true }])
  })

  it('has the same progress after a new version was built again, and never goes back', async () => {
    const store = memoryStore()
    const log = await opened(store)
    const first = log.process('copies', copying('/s'))
    log.process('counts', counting('/processes/copies', { after: ['copies'] }))
    await append(store, seconds(0, 50))
    await caughtUp(log, 'copies', 'counts')
    await first.stop()
    log.process('copies', copying('/s', { version: 2, rebuild: true, lateness: 30_000 }))
    await append(store, seconds(50, 60))
    await caughtUp(log, 'copies', 'counts')
    const { length } = await outputsOf(log, 'counts')
    await append(store, seconds(60, 150))
    await caughtUp(log, 'copies', 'counts')
    expect(length).toBeLessThanOrEqual(5)
    expect(await lateIn(log, 'counts')).toBe(0)
    expect(await outputsOf(log, 'counts')).toEqual(windows(0, 120))
  })

  it('names the way round if processes would wait for each other, also in another program', async () => {
    const store = memoryStore()
    const [one, two] = [await opened(store.connect()), await opened(store.connect())]
    one.process('a', copying('/s', { after: ['b'] }))
    one.process('b', copying('/s', { after: ['c'] }))
    for (const name of ['a', 'b']) await listed(one, name)
    const { done } = two.process('c', copying('/s', { after: ['x', 'a'] }))
    const error = await done.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ArgumentError)
    expect(error).toMatchObject({ argument: 'after', message: expect.stringContaining('c → a → b → c') })
  })

  it('refuses the process itself, and what is no list of names, at the call', async () => {
    const log = await opened(memoryStore())
    const start = (after: unknown) => () => log.process('a', copying('/s', { after: after as string[] }))
    expect(start(['b', 'a'])).toThrow(ArgumentError)
    expect(start('b')).toThrow(ArgumentError)
    expect(start([''])).toThrow(ArgumentError)
    expect(start([1])).toThrow(ArgumentError)
    expect(start(Array.from({ length: 101 }, (_, n) => `p${n}`))).toThrow(ArgumentError)
  })
})

/** Resolves once the log knows a process. */
async function listed(log: EventLog, name: string): Promise<void> {
  while (!(await log.stats()).readers.some((reader) => reader.name === name)) await turn()
}
