import {
  aggregate,
  average,
  collect,
  count,
  define,
  distinct,
  from,
  hopping,
  keyBy,
  latest,
  map,
  max,
  min,
  percentile,
  session,
  sum,
  testStream,
  tumbling,
  where,
} from 'rivulet/streams'
import type { TestEvent } from 'rivulet/streams'
import { expect, expectTypeOf, it } from 'vitest'

const T = Date.UTC(2026, 0, 1)

const price = (seconds: number, amount: number, shop = 'a', rest: Partial<TestEvent> = {}): TestEvent => ({
  type: 'unknown',
  time: T + seconds * 1_000,
  data: { amount, shop },
  ...(rest as object),
})

interface Price {
  readonly amount: number
  readonly shop: string
}

/** The tests declare no type of their own: that would be one for all programs of this folder. */
const fromPrices = () => from('unknown').pipe(map(({ data }) => ({ data: data as Price })))

const prices = define(
  'prices',
  { version: 1, lateness: '10s' },
  fromPrices().pipe(
    keyBy(({ data }) => data.shop),
    aggregate('per-minute', tumbling('1m'), {
      events: count(),
      large: count(({ data }) => data.amount > 5),
      sum: sum(({ data }) => data.amount),
      min: min(({ data }) => data.amount),
      max: max(({ data }) => data.amount),
      mean: average(({ data }) => data.amount),
      shops: distinct(({ data }) => data.shop),
      median: percentile(({ data }) => data.amount, 50),
      last: latest(({ data }) => data.amount),
      all: collect(({ data }) => data.amount),
    }),
  ),
)

it('gives a percentile the rank that it has without rounding', () => {
  const seventh = define(
    'seventh',
    { version: 1 },
    fromPrices().pipe(
      keyBy(({ data }) => data.shop),
      aggregate('all', tumbling('10m'), { seventh: percentile(({ data }) => data.amount, 7) }),
    ),
  )
  const test = testStream(seventh)
  test.send(...Array.from({ length: 100 }, (_, index) => price(index, 2 ** index)))
  const [result] = test.end()
  expect(result).toMatchObject({ data: { values: { seventh: expect.closeTo(2 ** 6, -1) } } })
})

it('gives one result for each window with an event, once the watermark has passed its end', () => {
  const test = testStream(prices)
  expect(test.send(price(5, 3), price(20, 9), price(10, 6), price(61, 1))).toEqual([])
  expect(test.tick(T + 69_999)).toEqual([])
  const [result] = test.tick(T + 70_000)
  expect(result).toMatchObject({
    type: 'window.result',
    source: '/processes/prices',
    time: '2026-01-01T00:01:00.000Z',
    data: {
      stage: 'per-minute',
      key: 'a',
      start: '2026-01-01T00:00:00.000Z',
      end: '2026-01-01T00:01:00.000Z',
      complete: true,
      values: { events: 3, large: 2, sum: 18, min: 3, max: 9, mean: 6, shops: 1, last: 9, all: [3, 9, 6] },
    },
  })
  expect(test.end()).toHaveLength(1)
  expect(test.state.size).toBe(0)
})

it('types', () => {
  const totals = define(
    'totals',
    { version: 1 },
    from(prices).pipe(
      where(({ data }) => data.values.events > 1),
      map(({ data }) => ({ key: data.key, sum: data.values.sum })),
      keyBy(({ key }) => key),
      aggregate('per-hour', hopping('1h', '30m'), { sum: sum((item) => item.sum) }),
    ),
    fromPrices().pipe(
      keyBy(({ data }) => data.shop),
      aggregate('visits', session('30s'), { n: count() }),
    ),
  )
  const test = testStream(totals)
  const [first] = test.send(price(1, 1))
  if (first?.type === 'window.result' && first.data.stage === 'visits') {
    expectTypeOf(first.data.values.n).toEqualTypeOf<number>()
  }
})
