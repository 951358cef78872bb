import { memoryStore, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import type { LogStore } from 'rivulet/log/store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { logStats } from '../../src/log/event-log/log-stats.ts'
import { append } from './append.ts'
import { caughtUp, copying, eventAt, tickThrough } from './process/windows.ts'
import { monitored } from './record/monitored.ts'
import { scratchFile } from './sqlite/scratch.ts'

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close())
  return log
}

const watermarkOf = async (log: EventLog, name: string) =>
  (await log.stats()).readers.find((reader) => reader.name === name)?.watermark

describe('the event time in the numbers of a log', () => {
  it('is not known before the first tick, and waits for nothing without a recording', async () => {
    const log = await opened(memoryStore())
    const { time } = await log.stats()
    expect(time).toEqual({ now: expect.any(Number), through: null, complete: true, recordings: [] })
    expect(Math.abs(Date.now() - time.now)).toBeLessThan(60_000)
  })

  it('is the `through` of the last tick, and waits for the recording that is the furthest behind', async () => {
    const { client, log, open, service, watched, pass, time } = await monitored()
    const other = await open()
    const one = log.record({ client, monitors: watched('a'), name: 'one' })
    await pass(30)
    await one.stop()
    const two = other.log.record({ client, monitors: watched('b'), name: 'the second' })
    await pass(30)
    const stats = await log.stats()
    const through = stats.time.recordings.map((recording) => recording.through ?? 0)
    expect(stats.time).toEqual({
      now: time.now(),
      through: through[0],
      complete: true,
      recordings: [
        { name: 'one', through: expect.any(Number), isAwaited: true, behind: 0 },
        { name: 'the second', through: expect.any(Number), isAwaited: false, behind: 0 },
      ],
    })
    expect(through[1]).toBeGreaterThan(30_000)
    await log.remove({ recording: 'one' })
    await service.stop()
    await pass(20)
    const { time: after } = await log.stats()
    expect(after.recordings).toMatchObject([{ name: 'the second', isAwaited: true }])
    expect(after.through).toBe(after.recordings[0]?.through)
    await two.stop()
  })

  it('is not complete once a recording was waited for as long as `maxHold`', async () => {
    const { client, log, service, watched, pass } = await monitored()
    const recording = log.record({ client, monitors: watched('a'), maxHold: 60_000 })
    await pass(30)
    await service.stop()
    await pass(100)
    const { time } = await log.stats()
    expect(time).toMatchObject({ complete: false, recordings: [{ name: 'main', isAwaited: true }] })
    expect(time.through).toBeGreaterThan(time.recordings[0]?.through ?? Infinity)
    await recording.stop()
  })

  it('waits for the inbox too, which has the name `webhooks`', async () => {
    const { client, log, pass } = await monitored()
    const recording = log.record({ client, webhooks: true })
    await pass(12)
    const { through, recordings } = (await log.stats()).time
    expect(recordings).toEqual([{ name: 'webhooks', through, isAwaited: true, behind: 0 }])
    await recording.stop()
  })

  it('waits for a recording that is not known to be complete up to any time', async () => {
    const { client, log, watched, pass } = await monitored()
    const recording = log.record({ client, monitors: watched('a') })
    await pass(2)
    expect((await log.stats()).time).toMatchObject({
      through: null,
      recordings: [{ name: 'main', through: null, isAwaited: true }],
    })
    await recording.stop()
  })
})

describe.each([
  ['in memory', () => memoryStore()],
  ['in memory, with partitions', () => memoryStore({ partitions: 4 })],
  ['in a file', async () => sqliteStore(await scratchFile())],
])('the watermark of a process in the numbers of a log, %s', (_where, storeOf) => {
  it('is null before its first tick, then the event time less its lateness', async () => {
    const store = await storeOf()
    const log = await opened(store)
    log.process('copies', copying('/s', { lateness: 2_500 }))
    await append(store, [eventAt(1)])
    await caughtUp(log, 'copies')
    expect(await watermarkOf(log, 'copies')).toBeNull()
    await append(store, [tickThrough(60)])
    await caughtUp(log, 'copies')
    expect(await watermarkOf(log, 'copies')).toBe(Date.UTC(2025, 0, 1, 0, 0, 57, 500))
  })

  it('is null for a consumer', async () => {
    const store = await storeOf()
    const log = await opened(store)
    log.consume('prints', () => {})
    await append(store, [tickThrough(60)])
    await caughtUp(log, 'prints')
    expect(await watermarkOf(log, 'prints')).toBeNull()
  })
})

it('has the watermark of the part of a shared process that is the furthest behind', async () => {
  const store = memoryStore({ partitions: 4 })
  const log = await opened(store)
  log.process('copies', copying('/s', { share: true }))
  await append(store, [tickThrough(60)])
  await caughtUp(log, 'copies')
  const slow = 'process.2:copies'
  const earlier = await store.reader(slow)
  await append(store, [tickThrough(90)])
  await caughtUp(log, 'copies')
  expect(await watermarkOf(log, 'copies')).toBe(Date.UTC(2025, 0, 1, 0, 1, 30))

  const reader = (name: string) => (name === slow ? Promise.resolve(earlier) : store.reader(name))
  const { readers } = await logStats({ retention: store.retention, reader })
  expect(readers).toMatchObject([{ name: 'copies', watermark: Date.UTC(2025, 0, 1, 0, 1) }])
})
