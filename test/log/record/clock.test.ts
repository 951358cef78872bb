import { VirtualTimeScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ArgumentError } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { Recorder } from '../../../src/log/record/recorder.ts'
import { Clock } from '../../../src/log/record/clock.ts'
import type { ClockedPart } from '../../../src/log/record/clock.ts'
import { allEntriesOf, completed, recordingLog, settled, until } from './recording-log.ts'
import { ProgressRegistry } from '../../../src/log/record/progress-registry.ts'

describe('the ticks of a log', () => {
  const ticksOf = async (log: Parameters<typeof allEntriesOf>[0]) =>
    (await allEntriesOf(log)).filter(({ type }) => type === 'log.tick')

  it('are recorded whenever nothing was for 10 s, and numbered over restarts', async () => {
    const { client, log, time } = await recordingLog()
    const first = log.record({ client, webhooks: true })
    await settled()
    for (const [advance, ticks] of [
      [9_999, 0],
      [1, 1],
      [9_999, 1],
      [1, 2],
    ] as const) {
      time.advance(advance)
      await settled()
      expect(await ticksOf(log)).toHaveLength(ticks)
    }
    await first.stop()
    time.advance(60_000)
    const second = log.record({ client, webhooks: true, tick: 100 })
    await settled()
    time.advance(100)
    await until(async () => (await ticksOf(log)).length === 3)
    await second.stop()
    expect(await ticksOf(log)).toMatchObject([
      { id: 'tick:1', source: '/log', via: 'log', data: { at: '1970-01-01T00:00:10.000Z' } },
      { id: 'tick:2', data: { at: '1970-01-01T00:00:20.000Z' } },
      { id: 'tick:3', data: { at: '1970-01-01T00:01:20.100Z' } },
    ])
  })

  it('come each second while events are recorded, and after the last one', async () => {
    const { client, log, time, put, isDrained } = await recordingLog()
    const recording = log.record({ client, webhooks: true })
    await settled()
    time.advance(9_000)
    for (const [minute, ticks] of [
      ['00', 1],
      ['01', 2],
    ] as const) {
      await put(minute, completed('m1', `2026-01-01T00:${minute}:00Z`))
      await until(isDrained)
      time.advance(999)
      await settled()
      expect(await ticksOf(log)).toHaveLength(ticks - 1)
      time.advance(1)
      await until(async () => (await ticksOf(log)).length === ticks)
    }
    time.advance(9_999)
    await settled()
    expect(await ticksOf(log)).toHaveLength(2)
    time.advance(1)
    await until(async () => (await ticksOf(log)).length === 3)
    await recording.stop()
  })

  it('come from one recording of a log, and from the next when that ends', async () => {
    const { client, log, open, time } = await recordingLog()
    const other = await open()
    const recordings = [log, log, other.log].map((each, n) =>
      each.record({ client, webhooks: true, name: `${n}` }),
    )
    await settled()
    for (let n = 1; n <= 3; n++) {
      time.advance(10_000)
      await settled()
      expect(await ticksOf(log)).toHaveLength(n)
      await recordings[n - 1]?.stop()
      await settled()
    }
    time.advance(60_000)
    await settled()
    expect(await ticksOf(log)).toHaveLength(3)
  })

  it('are not recorded with an infinite `tick`, and a wrong one is refused at the call', async () => {
    const { client, log, time } = await recordingLog()
    const recording = log.record({ client, webhooks: true, tick: Infinity })
    await settled()
    time.advance(1e9)
    await settled()
    await recording.stop()
    expect(await allEntriesOf(log)).toEqual([])
    for (const tick of [0, -1, Number.NaN, 0.5, '1' as never]) {
      expect(() => log.record({ client, webhooks: true, tick })).toThrow(ArgumentError)
    }
  })

  it.each([
    ['behind', -365 * 24 * 3_600_000, 4_000],
    ['ahead', 365 * 24 * 3_600_000, 3_000],
  ])(
    'have the time of the log when the wall clock of the recorder is a year %s',
    async (state, by, third) => {
      const scheduler = new VirtualTimeScheduler()
      let jumped = 0
      const begin = Date.now()
      vi.spyOn(Date, 'now').mockImplementation(() => begin + scheduler.frame + jumped)
      vi.spyOn(performance, 'now').mockImplementation(() => scheduler.frame)
      onTestFinished(() => void vi.restoreAllMocks())
      const store = memoryStore()
      const changes: string[] = []
      const recorder = new Recorder(store, () => {}, { onClock: (change) => changes.push(change.state) })
      const wall = { now: () => Date.now(), schedule: scheduler.schedule.bind(scheduler) }
      const clock = clockOf(recorder, wall, 1_000)
      const stopping = new AbortController()
      void clock.run(stopping.signal)
      const ticks = async () =>
        (await allEntriesOf(await openLog(store))).filter(({ type }) => type === 'log.tick')
      for (let count = 1; count <= 5; count++) {
        if (count === 2) jumped = by
        await settled()
        // Where the clock was set back, the tick takes an interval more.
        for (let looks = 0; looks < 2 && (await ticks()).length < count; looks++) {
          scheduler.maxFrames += 1_000
          scheduler.flush()
          await settled()
        }
        await until(async () => (await ticks()).length === count)
      }
      stopping.abort()

      const times = (await ticks()).map(({ time }) => Date.parse(time ?? '') - begin)
      // The jump is known once something was appended after it.
      expect([times[0], ...times.slice(2)]).toEqual([1_000, third, third + 1_000, third + 2_000])
      expect(changes).toEqual([state])
    },
  )
})

describe('the last tick of a recording', () => {
  /** A clock that ticks, and its part. */
  const ticking = async () => {
    const scheduler = new VirtualTimeScheduler()
    const store = memoryStore()
    const recorder = new Recorder(store, () => {})
    const part = { name: 'progress/main', through: 1, look: () => part.through }
    const clock = clockOf(recorder, scheduler, 1_000, [part])
    const stopping = new AbortController()
    const ended = clock.run(stopping.signal)
    await settled()
    const pass = (to: number) => {
      scheduler.maxFrames = to
      scheduler.flush()
    }
    const last = async () => {
      stopping.abort()
      await ended
      await recorder.close()
      return (await allEntriesOf(await openLog(store))).findLast(({ type }) => type === 'log.tick')
    }
    return { recorder, part, clock, pass, last }
  }
  const through = (ms: number) => ({ data: { through: new Date(ms).toISOString() } })

  it('comes also while a tick is under way', async () => {
    const { part, clock, pass, last } = await ticking()
    pass(1_000)
    part.through = 2
    await clock.finish()
    expect(await last()).toMatchObject(through(2))
  })

  it('comes also while the log is behind', async () => {
    const { recorder, part, clock, last } = await ticking()
    recorder.gate.close()
    part.through = 0
    await clock.finish()
    expect(await last()).toMatchObject(through(0))
  })
})

/** The clock of a recording with these parts. */
function clockOf(
  recorder: Recorder,
  scheduler: SchedulerLike,
  interval: number,
  parts: readonly ClockedPart[] = [],
): Clock {
  const registry = new ProgressRegistry(recorder)
  return new Clock({ recorder, registry, scheduler, interval, maxHold: Infinity, parts: () => parts })
}
