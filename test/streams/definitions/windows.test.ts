import { of, toArray } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { hopping, inMemory, session, tumbling } from 'rivulet/streams'
import type { Windows } from 'rivulet/streams'
import { describe, expect, it } from 'vitest'
import { at, reading, readings, short, T, testOf } from './readings.ts'

const DAY = 86_400

/** What is emitted once all windows end, after these events have come in this order. */
const ended = (windows: Windows, ...seconds: readonly number[]) => {
  const test = testOf(windows)
  // All are recorded at the same time: none of them is in the future.
  test.send(...seconds.map((each) => reading(each, { recorded: at(1_000) })))
  return short(test.end())
}

describe('a tumbling window', () => {
  it('contains its start, and not its end', () => {
    expect(ended(tumbling('1m'), 0, 59.999, 60, 119.999)).toEqual([
      'a 0-60: 0 59.999',
      'a 60-120: 60 119.999',
    ])
  })

  it('begins at a multiple of its length since 1970, also before that', () => {
    const test = testOf(tumbling('7d'))
    test.send(reading(0, { time: '1969-12-31T23:59:59.999Z' }), reading(1, { time: '1970-01-08T00:00:00Z' }))
    expect(test.end().map(({ data }) => [data.start, data.end])).toEqual([
      ['1969-12-25T00:00:00.000Z', '1970-01-01T00:00:00.000Z'],
      ['1970-01-08T00:00:00.000Z', '1970-01-15T00:00:00.000Z'],
    ])
  })

  it('has a result for each key that has an event in it, and none for an empty one', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(1), reading(2, { key: 'b' }), reading(130))
    expect(short(test.tick(at(200)))).toEqual(['a 0-60: 1', 'b 0-60: 2', 'a 120-180: 130'])
  })

  it('keeps the order in which events have come, whatever their times', () => {
    expect(ended(tumbling('1m'), 30, 10, 20)).toEqual(['a 0-60: 30 10 20'])
  })

  it('is emitted at the tick that reaches its end, once', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(10))
    expect(test.tick(at(59.999))).toEqual([])
    expect(short(test.tick(at(60)))).toEqual(['a 0-60: 10'])
    expect(test.tick(at(60))).toEqual([])
    expect(test.end()).toEqual([])
    expect(short(test.outputs)).toEqual(['a 0-60: 10'])
  })

  it('is not ended by events, however late they are recorded', () => {
    const test = testOf(tumbling('1m'))
    test.tick(at(0))
    expect(test.send(reading(10), reading(5_000), reading(20))).toEqual([])
    expect(short(test.end())).toEqual(['a 0-60: 10 20', 'a 4980-5040: 5000'])
  })

  it('has no state left once it was emitted', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(10), reading(20), reading(70))
    expect(test.state.size).toBe(2)
    test.tick(at(60))
    expect(test.state.size).toBe(1)
    test.tick(at(120))
    expect(test.state.size).toBe(0)
  })

  it('is an event at its end, of the process', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(10, { id: 'first' }), reading(11))
    expect(test.end()).toMatchObject([
      {
        type: 'window.result',
        source: '/processes/readings',
        time: '2026-01-01T00:01:00.000Z',
        via: 'process',
        cause: { process: 'readings', source: '/test', id: 'first', hops: 1 },
        data: { stage: 'windows', key: 'a', values: { events: 2, sum: 21 } },
      },
    ])
  })
})

describe('hopping windows', () => {
  it('each have the events between their start and their end', () => {
    expect(ended(hopping('20s', '10s'), 100, 109.999, 110)).toEqual([
      'a 90-110: 100 109.999',
      'a 100-120: 100 109.999 110',
      'a 110-130: 110',
    ])
  })

  it('need not be a whole number of steps long', () => {
    expect(ended(hopping('25s', '10s'), 100, 104, 105)).toEqual([
      'a 80-105: 100 104',
      'a 90-115: 100 104 105',
      'a 100-125: 100 104 105',
    ])
  })

  it('are tumbling ones if they do not overlap', () => {
    const seconds = [0, 10, 59, 60, 61]
    expect(ended(hopping('1m', '1m'), ...seconds)).toEqual(ended(tumbling('1m'), ...seconds))
  })

  it('drop an event from those that have ended, and place it in the others', () => {
    const test = testOf(hopping('20s', '10s'))
    test.tick(at(110))
    test.send(reading(105))
    expect(short(test.tick(at(120)))).toEqual(['a 100-120: 105'])
    expect(short(test.end())).toEqual(['a 90-110 late: 1'])
  })
})

describe('a session', () => {
  it('goes on with an event within less than the gap, and not with one after the gap', () => {
    expect(ended(session('30s'), 100, 129.999)).toEqual(['a 100-159.999: 100 129.999'])
    expect(ended(session('30s'), 100, 130)).toEqual(['a 100-130: 100', 'a 130-160: 130'])
  })

  it('begins earlier with an earlier event', () => {
    expect(ended(session('30s'), 100, 70.001)).toEqual(['a 70.001-130: 100 70.001'])
    expect(ended(session('30s'), 100, 70)).toEqual(['a 70-100: 70', 'a 100-130: 100'])
  })

  it('becomes one with another one by an event between them, the values of the earlier one first', () => {
    expect(ended(session('30s'), 150, 100, 125)).toEqual(['a 100-180: 100 150 125'])
    expect(ended(session('30s'), 160, 100, 130)).toEqual([
      'a 100-130: 100',
      'a 130-160: 130',
      'a 160-190: 160',
    ])
    expect(ended(session('30s'), 100, 159, 200, 130)).toEqual([
      'a 100-130: 100',
      'a 130-189: 159 130',
      'a 200-230: 200',
    ])
  })

  it('is of one key', () => {
    const test = testOf(session('30s'))
    test.send(reading(100), reading(110, { key: 'b' }), reading(120))
    expect(short(test.end())).toEqual(['b 110-140: 110', 'a 100-150: 100 120'])
  })

  it('lasts as long as its events come, and ends once the watermark has passed the gap after the last one', () => {
    const test = testOf(session('30s'))
    test.send(reading(100))
    test.tick(at(129))
    test.send(reading(129))
    expect(test.tick(at(158.999))).toEqual([])
    expect(short(test.tick(at(159)))).toEqual(['a 100-159: 100 129'])
  })

  it('that has ended takes no more events: one that is not late begins another session', () => {
    const test = testOf(session('30s'))
    test.send(reading(100))
    expect(short(test.tick(at(130)))).toEqual(['a 100-130: 100'])
    test.send(reading(110), reading(100))
    expect(short(test.tick(at(140)))).toEqual(['a 100-140: 110 100'])
  })

  it('that is open takes an event that would be late by itself', () => {
    const test = testOf(session('30s'))
    test.send(reading(100), reading(125))
    test.tick(at(140))
    test.send(reading(105))
    expect(short(test.end())).toEqual(['a 100-155: 100 125 105'])
  })

  it('leaves out an event whose own session would have ended', () => {
    const test = testOf(session('30s'))
    test.tick(at(130))
    test.send(reading(100), reading(100.001))
    expect(short(test.end())).toEqual(['a 100.001-130.001: 100.001', 'a 100-130 late: 1'])
  })
})

describe('an event that comes after the end of its window', () => {
  it('counts within the lateness of the definition, and not later', () => {
    const test = testOf(tumbling('1m'), { lateness: '10s' })
    test.tick(at(69.999))
    test.send(reading(1))
    expect(short(test.tick(at(70)))).toEqual(['a 0-60: 1'])
    test.send(reading(2))
    expect(short(test.end())).toEqual(['a 0-60 late: 1'])
  })

  it('is reported a minute after the first one of its window, with those that came until then', () => {
    const test = testOf(tumbling('1m'))
    test.tick(at(200))
    test.send(reading(1, { recorded: at(200) }), reading(2, { recorded: at(259.999) }))
    const reports = test.send(reading(3, { recorded: at(260) }))
    expect(short(reports)).toEqual(['a 0-60 late: 2'])
    expect(reports).toMatchObject([
      {
        type: 'stage.dropped',
        source: '/processes/readings',
        time: '2026-01-01T00:04:20.000Z',
        data: { stage: 'windows', reason: 'late' },
      },
    ])
    expect(short(test.end())).toEqual(['a 0-60 late: 1'])
    expect(test.state.size).toBe(0)
  })

  it('is reported by window and key', () => {
    const test = testOf(tumbling('1m'))
    test.tick(at(200))
    test.send(reading(1), reading(61), reading(2, { key: 'b' }), reading(3))
    expect(short(test.end()).toSorted()).toEqual(['a 0-60 late: 2', 'a 60-120 late: 1', 'b 0-60 late: 1'])
  })

  it('is reported by key if windows are sessions, from the first to the last one, while others go on', () => {
    const test = testOf(session('30s'))
    test.tick(at(200))
    test.send(reading(190, { recorded: at(200) }), reading(100), reading(20), reading(150))
    expect(short(test.send(reading(300, { recorded: at(260) })))).toEqual(['a 20-180 late: 3'])
    expect(short(test.end())).toEqual(['a 190-220: 190', 'a 260-290: 300'])
  })
})

describe('the time of an event', () => {
  it('is when it came if it has none, and the result says how many were placed so', () => {
    const test = testOf(tumbling('1m'))
    const untimed = { time: null, recorded: at(70) }
    test.send(reading(61), reading(1, untimed), reading(2, untimed))
    const [result] = test.end()
    expect(short(test.outputs)).toEqual(['a 60-120: 61 1 2'])
    expect(result?.data).toMatchObject({ byArrival: 2 })
  })

  it('is counted as by arrival in sessions that become one, and left out of results without such events', () => {
    const test = testOf(session('30s'))
    test.send(reading(1, { time: null, recorded: at(10) }), reading(50))
    test.send(reading(2, { time: null, recorded: at(60) }), reading(30), reading(300))
    expect(test.end().map(({ data }) => 'byArrival' in data && data.byArrival)).toEqual([2, false])
  })

  it('is not later than when it was recorded', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(500, { recorded: at(30) }))
    expect(short(test.end())).toEqual(['a 0-60: 500'])
  })

  it.each(['soon', '', '2026-13-45', '2026-01-01T25:00:00Z'])(
    'is when it came if it is %j, which is no time',
    (time) => {
      const test: ResearchEvent[] = []
      const event = {
        id: '1',
        source: '/s',
        type: 'unknown',
        time,
        data: { key: 'a', number: 1 },
        via: 'log',
      } as const
      of({ ...event, received: '2026-01-01T00:00:10Z' })
        .pipe(inMemory(readings(tumbling('1m'))), toArray())
        .subscribe((all) => test.push(...all))
      expect(short(test)).toEqual(['a 0-60: 1'])
      expect(test[0]?.data).toMatchObject({ byArrival: 1 })
    },
  )

  it('may be any that a service sends', () => {
    const test = testOf(tumbling('366d'))
    test.send(reading(1, { time: '-271821-04-20T00:00:00Z' }), reading(2, { time: '0000-01-01' }))
    test.send(reading(3, { time: '0001-01-01T00:00:00Z' }))
    for (const { data } of test.end()) {
      expect(data.start).toMatch(/^\d{4}-\d\d-\d\dT00:00:00.000Z$/)
      expect(Date.parse(data.end) - Date.parse(data.start)).toBe(366 * DAY * 1_000)
    }
    expect(test.outputs.length).toBeGreaterThan(0)
  })
})

describe('an event of a whole day', () => {
  it.each([
    ['days', tumbling('1d')],
    ['windows of several days', tumbling('2d')],
    ['windows that begin each day', hopping('2d', '1d')],
  ])('has its place in %s', (_, windows) => {
    const test = testOf(windows)
    test.send(reading(1, { time: '2026-01-01', recorded: at(DAY) }), reading(DAY - 1))
    const counts = test.end().map(({ type, data }) => [type, 'values' in data && data.values.events])
    expect(counts.length).toBeGreaterThan(0)
    expect(counts.every(([type, events]) => type === 'window.result' && events === 2)).toBe(true)
  })

  it.each([
    ['hours', tumbling('1h')],
    ['windows of two days that begin each twelve hours', hopping('2d', '12h')],
    ['windows of 36 hours', tumbling('36h')],
    ['sessions', session('1d')],
  ])('is left out of %s, and reported with its day', (_, windows) => {
    const test = testOf(windows)
    test.send(reading(1, { time: '2026-01-01', recorded: at(5 * DAY) }))
    test.send(reading(2, { time: '2026-01-03' }), reading(3, { time: '2026-01-02' }))
    expect(short(test.end())).toEqual([`a 0-${3 * DAY} whole_day: 3`])
    expect(test.state.size).toBe(0)
  })

  it('is late once its day has ended', () => {
    const test = testOf(tumbling('1d'), { lateness: '1h' })
    test.tick(at(DAY + 3_599))
    test.send(reading(1, { time: '2026-01-01' }))
    expect(short(test.tick(at(DAY + 3_600)))).toEqual([`a 0-${DAY}: 1`])
    test.send(reading(2, { time: '2026-01-01' }))
    expect(short(test.end())).toEqual([`a 0-${DAY} late: 1`])
  })
})

describe('an event of a first walk into the past', () => {
  it('is ignored by default, without a report', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(1, { backfill: true }), reading(2))
    test.tick(at(60))
    test.send(reading(3, { backfill: true }))
    expect(test.end()).toEqual([])
    expect(short(test.outputs)).toEqual(['a 0-60: 2'])
  })

  it('is placed by its time with `place`, and may be late', () => {
    const test = testOf(tumbling('1m'), { backfill: 'place' })
    test.send(reading(1, { backfill: true }), reading(2))
    test.tick(at(60))
    test.send(reading(3, { backfill: true }))
    expect(short(test.end())).toEqual(['a 0-60 late: 1'])
    expect(short(test.outputs)[0]).toBe('a 0-60: 1 2')
  })
})

it('counts an event once, and none of its more complete duplicates', () => {
  const test = testOf(tumbling('1m'))
  test.send(reading(1), reading(1, { revision: 2 }), reading(1, { revision: 3 }))
  test.tick(at(60))
  test.send(reading(1, { revision: 4 }))
  expect(short(test.end())).toEqual([])
  expect(short(test.outputs)).toEqual(['a 0-60: 1'])
})

describe('`complete`', () => {
  it('is that of the tick which ends the window', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(1), reading(61), reading(121))
    test.tick(at(60))
    test.tick(at(120), false)
    test.tick(at(180), true)
    const completes = test.outputs.map(({ data }) => 'complete' in data && data.complete)
    expect(completes).toEqual([true, false, true])
  })

  it('is true if no more events come before the first tick', () => {
    const test = testOf(tumbling('1m'))
    test.send(reading(1))
    expect(test.end()).toMatchObject([{ data: { complete: true } }])
  })
})

describe('a tick', () => {
  it('moves the watermark to its time less `lateness`, and never back', () => {
    const test = testOf(tumbling('1m'), { lateness: '10s' })
    expect(test.watermark).toBeNull()
    test.tick(at(60))
    expect(test.watermark).toBe(at(50))
    test.tick(at(30))
    expect(test.watermark).toBe(at(50))
  })

  it('ends windows of all keys in the order of their ends', () => {
    const test = testOf(session('10s'))
    test.send(reading(70), reading(5, { key: 'b' }), reading(30, { key: 'c' }), reading(31))
    const times = test.tick(at(1_000)).map(({ time }) => time)
    expect(times).toEqual(times.toSorted())
    expect(times).toHaveLength(4)
  })

  it('has an effect for no other than the windows that have events', () => {
    const test = testOf(tumbling('1m'))
    expect(test.tick(T)).toEqual([])
    expect(test.tick(at(10_000))).toEqual([])
    expect(test.end()).toEqual([])
  })
})
