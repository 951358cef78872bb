import {
  aggregate,
  collect,
  count,
  define,
  from,
  hopping,
  keyBy,
  map,
  ProcessError,
  session,
  sum,
  testStream,
  tumbling,
  where,
} from 'rivulet/streams'
import type { ResultOf, TestEvent } from 'rivulet/streams'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { at, fromReadings, reading, readings, short, testOf } from './readings.ts'
import type { Reading } from './reference.ts'

const perMinute = readings(tumbling('1m'))

describe('the events of a definition', () => {
  it('are those of its types alone, for which the functions before it give a value and a key', () => {
    const positive = define(
      'positive',
      { version: 1 },
      fromReadings().pipe(
        where(({ number }) => (number ?? 0) > 0),
        map(({ key, number }) => (number === 13 ? undefined : { owner: key, number })),
        where(({ number }) => number !== 14),
        keyBy(({ owner }) => owner),
        aggregate('windows', tumbling('1m'), { all: collect(({ number }) => number) }),
      ),
    )
    const test = testStream(positive)
    const other: TestEvent = { type: 'log.tick', data: { at: '', through: null, complete: true } }
    test.send(
      reading(1),
      reading(2, { number: -1 }),
      reading(13),
      reading(14),
      reading(15, { key: null }),
      other,
    )
    test.send(reading(3))
    expect(short(test.end())).toEqual(['a 0-60: 1 3'])
  })

  it('stop it if a function throws, which is named with the event and the key', () => {
    const failing = define(
      'failing',
      { version: 1 },
      fromReadings().pipe(
        where(({ number }) => {
          if (number === 1) throw new Error('where?')
          return true
        }),
        map((item) => {
          if (item.number === 2) throw new Error('what?')
          return item
        }),
        keyBy(({ key, number }) => {
          if (number === 3) throw new Error('whose?')
          return key
        }),
        aggregate('windows', tumbling('1m'), {
          sum: sum(({ number }) => {
            if (number === 4) throw new Error('how much?')
            return number
          }),
        }),
      ),
    )
    const test = testStream(failing)
    const problems = ['where\\?', 'what\\?', 'whose\\?', 'how much\\?']
    for (const [n, problem] of problems.entries()) {
      const send = () => test.send(reading(n + 1, { id: `e${n}` }))
      expect(send).toThrow(ProcessError)
      expect(send).toThrow(new RegExp(`"failing" failed at the event "e${n}" of /test.*${problem}`))
    }
    test.send(reading(5))
    expect(test.end()).toMatchObject([{ data: { values: { sum: 5 } } }])
  })

  it.each([7, {}, true, 'x'.repeat(499)])(
    'stop it if their key is no text of up to 500 characters as JSON',
    (key) => {
      const test = testStream(
        define(
          'keys',
          { version: 1 },
          fromReadings().pipe(
            keyBy(() => key as string),
            aggregate('windows', tumbling('1m'), { events: count() }),
          ),
        ),
      )
      expect(() => test.send(reading(1))).toThrow(/keyBy: its key must be a text of up to 500 characters/)
    },
  )

  it.each(['', 'x'.repeat(498), '["a"]', 'é\u0000\ud800', '__proto__'])('may have the key %j', (key) => {
    const test = testOf(session('1m'))
    test.send(reading(1, { key }), reading(2, { key }))
    expect(test.end()).toMatchObject([{ data: { values: { events: 2 } } }])
  })
})

describe('stages of one definition', () => {
  const both = define(
    'both',
    { version: 1 },
    fromReadings().pipe(
      keyBy(({ key }) => key),
      aggregate('by key', tumbling('1m'), { all: collect(({ number }) => number) }),
    ),
    fromReadings().pipe(
      where(({ number }) => number !== 2),
      keyBy(() => 'all'),
      aggregate('sessions', session('30s'), { all: collect(({ number }) => number) }),
    ),
    from('monitor.error').pipe(
      keyBy(({ source }) => source),
      aggregate('errors', hopping('2m', '1m'), { all: collect(({ type }) => type) }),
    ),
  )

  it('have keys, windows and values of their own', () => {
    const test = testStream(both)
    test.send(reading(1), reading(2), reading(3, { key: 'b' }))
    const data = { type: 'error', error: 'e', id: '1', date: '' } as never
    test.send({ type: 'monitor.error', time: at(5), source: '/m', data })
    const stages = test.end().map((event) => [event.data.stage, short([event]).join()])
    expect(stages.toSorted()).toEqual([
      ['by key', 'a 0-60: 1 2'],
      ['by key', 'b 0-60: 3'],
      ['errors', '/m -60-60: monitor.error'],
      ['errors', '/m 0-120: monitor.error'],
      ['sessions', 'all 1-33: 1 3'],
    ])
  })

  it('are described by their types, windows and values', () => {
    expect(both.describe()).toEqual([
      {
        name: 'by key',
        types: ['unknown'],
        after: [],
        shape: [{ kind: 'tumbling', size: 60_000, every: 60_000 }, [['all', 'collect']]],
      },
      {
        name: 'sessions',
        types: ['unknown'],
        after: [],
        shape: [{ kind: 'session', gap: 30_000 }, [['all', 'collect']]],
      },
      {
        name: 'errors',
        types: ['monitor.error'],
        after: [],
        shape: [{ kind: 'hopping', size: 120_000, every: 60_000 }, [['all', 'collect']]],
      },
    ])
  })

  it('have results of their types', () => {
    const test = testStream(
      define(
        'typed',
        { version: 1 },
        fromReadings().pipe(
          keyBy(({ key }) => key),
          aggregate('counts', tumbling('1m'), { n: count() }),
        ),
        fromReadings().pipe(
          keyBy(({ key }) => key),
          aggregate('lists', tumbling('1m'), { all: collect(({ number }) => number) }),
        ),
      ),
    )
    type Results = Extract<(typeof test.outputs)[number], { readonly type: 'window.result' }>['data']
    expectTypeOf<Results>().toEqualTypeOf<
      | ResultOf<'counts', { readonly n: number }>
      | ResultOf<'lists', { readonly all: readonly (number | null)[] }>
    >()
    test.send(reading(1))
    expect(test.end()).toHaveLength(2)
  })
})

describe('a definition over the results of another one', () => {
  const perHour = define(
    'per-hour',
    { version: 1 },
    from(perMinute).pipe(
      where(({ data }) => data.values.events > 0),
      keyBy(({ data }) => data.key),
      aggregate('hours', tumbling('1h'), {
        all: collect(({ data }) => data.values.sum),
      }),
    ),
  )

  /** The results of the first definition, as events for the second one. */
  const resultsOf = (...events: readonly TestEvent[]) => {
    const inner = testStream(perMinute)
    inner.send(...events)
    return inner
      .end()
      .map(({ type, time, source, id, data }) => ({ type, time, source, id, data }) as TestEvent)
  }

  it('comes after its process', () => {
    expect(perHour.after).toEqual(['readings'])
    expect(perMinute.after).toEqual([])
    expect(perHour.describe()).toMatchObject([{ after: ['readings'] }])
  })

  it('has the last result of an hour in that hour, and is not late for it once the watermark is there', () => {
    const results = resultsOf(reading(1), reading(3_599), reading(3_600))
    const test = testStream(perHour)
    // The process of the results is at most as far.
    test.tick(at(3_599.999))
    test.send(...results)
    expect(short(test.tick(at(3_600)))).toEqual(['a 0-3600: 1 3599'])
    expect(short(test.end())).toEqual(['a 3600-7200: 3600'])
  })

  it('reads no results of others, nor reports of dropped events', () => {
    const test = testStream(perHour)
    const [result] = resultsOf(reading(1))
    if (result === undefined) throw new Error('no result')
    const late = testStream(perMinute)
    late.tick(at(60))
    late.send(reading(1))
    const [dropped] = late
      .end()
      .map(({ type, time, source, data }) => ({ type, time, source, data }) as TestEvent)
    if (dropped === undefined) throw new Error('no report')
    test.send({ ...result, source: '/processes/other' }, dropped)
    expect(test.end()).toEqual([])
  })

  it('knows which events are its results', () => {
    const test = testStream(perMinute)
    test.send(reading(1))
    const [result] = test.end()
    if (result === undefined) throw new Error('no result')
    expect(perMinute.isResult(result)).toBe(true)
    expect(perMinute.isResult({ ...result, source: '/processes/other' })).toBe(false)
    expect(perHour.isResult(result)).toBe(false)
  })
})

describe('the shape of a definition', () => {
  const shapeOf = (windows = tumbling('1m'), options: Parameters<typeof readings>[1] = {}) =>
    readings(windows, options).shape

  it('is the same for the same windows and values, in any version', () => {
    expect(shapeOf()).toBe(shapeOf(tumbling(60_000)))
    expect(shapeOf(tumbling('1m'), { version: 2 })).toBe(shapeOf())
  })

  it('differs with each of its parts', () => {
    const own = (name: string, value: string) =>
      define(
        'readings',
        { version: 1 },
        fromReadings().pipe(
          keyBy(({ key }) => key),
          aggregate(name, tumbling('1m'), { [value]: count<Reading>() }),
        ),
      ).shape
    const shapes = [
      shapeOf(),
      shapeOf(tumbling('2m')),
      shapeOf(hopping('2m', '1m')),
      shapeOf(session('1m')),
      shapeOf(tumbling('1m'), { lateness: '1s' }),
      shapeOf(tumbling('1m'), { backfill: 'place' }),
      own('windows', 'events'),
      own('windows', 'count'),
      own('other', 'events'),
    ]
    expect(new Set(shapes).size).toBe(shapes.length)
  })
})
