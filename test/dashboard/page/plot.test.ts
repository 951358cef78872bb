import { describe, expect, it } from 'vitest'
import { slicesOf } from '../../../src/dashboard/page/plot/activity.ts'
import { lagTicks, timeTicks, valueTicks } from '../../../src/dashboard/page/plot/ticks.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('the ticks of an axis', () => {
  it.each([
    [0, [0, 1]],
    [Number.NaN, [0, 1]],
    [Infinity, [0, 1]],
    [1, [0, 0.5, 1]],
    [0.3, [0, 0.1, 0.2, 0.3]],
    [48, [0, 20, 40, 60]],
    [100, [0, 50, 100]],
    [101, [0, 50, 100, 150]],
    [1_234_567, [0, 500_000, 1_000_000, 1_500_000]],
  ])('are round and reach %s', (highest, ticks) => {
    expect(valueTicks(highest)).toEqual(ticks)
  })

  it('are whole for numbers of events', () => {
    expect(valueTicks(1, 4, true)).toEqual([0, 1])
    expect(valueTicks(3, 4, true)).toEqual([0, 1, 2, 3])
  })

  it.each([
    [[], [], [1, 10]],
    [[0], [0], [1, 10]],
    [[7], [7], [1, 10]],
    [
      [250, 400],
      [300, 2_600],
      [100, 1_000, 10_000],
    ],
    [[100], [100], [10, 100]],
    [[20], [50 * MINUTE], [10, 100, 1_000, 10_000, MINUTE, 10 * MINUTE, HOUR]],
  ])('of a logarithmic axis span the lags %j to %j', (lowest, highest, ticks) => {
    expect(lagTicks(lowest, highest)).toEqual(ticks)
  })

  it('of a logarithmic axis end somewhere, whatever the lag', () => {
    expect(lagTicks([1e15], [1e15])).toHaveLength(2)
  })

  it('are at full hours of the reader', () => {
    // India is 5 h 30 min ahead.
    const from = Date.parse('2026-01-31T22:10:00Z')
    const ticks = timeTicks(from, from + 24 * HOUR, 4, () => -330)
    expect(ticks.map((at) => new Date(at).toISOString())).toEqual([
      '2026-02-01T00:30:00.000Z',
      '2026-02-01T06:30:00.000Z',
      '2026-02-01T12:30:00.000Z',
      '2026-02-01T18:30:00.000Z',
    ])
  })

  it('stay at midnight when the clocks change', () => {
    const change = Date.parse('2026-03-29T01:00:00Z')
    const offsetOf = (at: number) => (at < change ? -60 : -120)
    const from = Date.parse('2026-03-27T12:00:00Z')
    const ticks = timeTicks(from, from + 96 * HOUR, 4, offsetOf)
    expect(ticks.map((at) => new Date(at).toISOString())).toEqual([
      '2026-03-27T23:00:00.000Z',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
      '2026-03-30T22:00:00.000Z',
    ])
  })

  it('are none for no time', () => {
    expect(timeTicks(5, 5, 4)).toEqual([])
    expect(timeTicks(0, HOUR, 0)).toEqual([])
  })
})

describe('the slices of a plot', () => {
  const row = (minute: number, types: Record<string, number>, lag = { count: 0, sum: 0, max: 0 }) => ({
    minute,
    events: 0,
    types,
    lag,
  })
  const now = 100 * HOUR + 30_000

  it('count events by family, those without events too', () => {
    const rows = [
      row(100 * HOUR, { 'task_run.state': 2, 'monitor.error': 1, 'stream.gap': 1, 'own.type': 4 }),
      row(100 * HOUR - 2 * MINUTE, { 'alert.firing': 1 }),
    ]
    const slices = slicesOf(rows, now, 1, 3)
    expect(slices.map(({ from, total }) => [from, total])).toEqual([
      [100 * HOUR - 2 * MINUTE, 1],
      [100 * HOUR - MINUTE, 0],
      [100 * HOUR, 8],
    ])
    expect(slices[2]?.counts).toEqual({ Monitors: 1, Runs: 2, Groups: 0, Alerts: 0, Sources: 1, Other: 4 })
  })

  it('leave out what is older or of a time to come', () => {
    const rows = [row(97 * HOUR, { error: 1 }), row(101 * HOUR, { error: 1 })]
    expect(slicesOf(rows, now, 1, 60).every(({ total }) => total === 0)).toBe(true)
  })

  it('average the lag by events, and know where there is none', () => {
    const rows = [
      row(100 * HOUR, {}, { count: 3, sum: 300, max: 200 }),
      row(100 * HOUR + MINUTE, {}, { count: 1, sum: 500, max: 500 }),
    ]
    const [before, last] = slicesOf(rows, now + MINUTE, 5, 2)
    expect(before?.lag).toBeUndefined()
    expect(last?.lag).toEqual({ mean: 200, max: 500 })
  })
})
