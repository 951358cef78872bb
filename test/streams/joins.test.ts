import { from as fromList, lastValueFrom, toArray } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import {
  define,
  enrich,
  from,
  join,
  keyBy,
  latestBy,
  map,
  orderByTime,
  testStream,
  where,
} from 'rivulet/streams'
import type { TestEvent } from 'rivulet/streams'
import { expect, expectTypeOf, it } from 'vitest'

const T = Date.UTC(2026, 0, 1)

interface Item {
  readonly kind: string
  readonly key: string
  readonly n: number
}

const items = (kind: string) =>
  from('unknown').pipe(
    map(({ data }) => data as Item),
    where((item) => item.kind === kind),
  )

const keyed = (kind: string) => items(kind).pipe(keyBy(({ key }) => key))

const event = (kind: string, seconds: number, n: number, key = 'k'): TestEvent => ({
  type: 'unknown',
  time: T + seconds * 1_000,
  data: { kind, key, n },
})

const pairs = (kind: 'inner' | 'left') =>
  define('pairs', { version: 1 }, keyed('l').pipe(join('pairs', keyed('r'), { within: '10s', kind })))

interface Joined {
  readonly left: Item
  readonly right: Item | null
  readonly time: string
  readonly count: number
}

const told = (outputs: readonly { readonly type: string; readonly data: unknown }[]) =>
  outputs.map(({ type, data }) => {
    const { left, right, time, count } = data as Partial<Joined>
    const n = (item: Item | null | undefined) => item?.n ?? null
    return type === 'join.result'
      ? `${n(left)}-${n(right)}@${(Date.parse(time ?? '') - T) / 1_000}`
      : `${type} ${count}`
  })

it('pairs events of a key within the time, whichever comes first', () => {
  const test = testStream(pairs('inner'))
  expect(
    told(test.send(event('l', 0, 1), event('r', 10, 2), event('r', 11, 3), event('r', 5, 4, 'other'))),
  ).toEqual(['1-2@10'])
  expect(told(test.send(event('l', 21, 5)))).toEqual(['5-3@21'])
  expect(told(test.end())).toEqual([])
  expect(test.state.size).toBe(0)
})

it('gives what has no partner once the watermark has passed the time of one, and not before', () => {
  const test = testStream(pairs('left'))
  expect(told(test.send(event('l', 0, 1), event('l', 1, 2), event('r', 11, 3)))).toEqual(['2-3@11'])
  expect(told(test.tick(T + 10_000))).toEqual([])
  expect(told(test.send(event('r', 10, 4)))).toEqual(['1-4@10', '2-4@10'])
  expect(told(test.send(event('l', 12, 5)))).toEqual(['5-4@12', '5-3@12'])
  expect(told(test.send(event('l', 21, 6)))).toEqual(['6-3@21'])
  expect(told(test.send(event('l', 30, 7)))).toEqual([])
  expect(told(test.tick(T + 40_000))).toEqual([])
  expect(told(test.tick(T + 40_001))).toEqual(['7-null@30'])
})

it('leaves out and reports an event that the watermark has passed', () => {
  const test = testStream(pairs('inner'))
  test.send(event('l', 0, 1))
  test.tick(T + 5_000)
  expect(told(test.send(event('r', 4, 2), event('r', 3, 3)))).toEqual([])
  expect(told(test.tick(T + 100_000))).toEqual(['stage.dropped 2'])
})

it('fails for an event with more partners than a call may append', () => {
  const test = testStream(pairs('inner'))
  for (let n = 0; n < 257; n++) test.send(event('l', 0, n))
  expect(() => test.send(event('r', 0, 0))).toThrow(/appends 257 events: at most 256/)
})

it('enriches events by the row that a table has when they come', () => {
  const table = items('t').pipe(latestBy('table', ({ key }) => key))
  const known = keyed('e').pipe(enrich('known', table))
  const test = testStream(define('known', { version: 1 }, table, known))
  expect(told(test.send(event('e', 0, 1)))).toEqual(['1-null@0'])
  expect(told(test.send(event('t', 5, 2), event('e', 6, 3), event('t', 4, 4), event('e', 7, 5)))).toEqual([
    '3-2@6',
    '5-2@7',
  ])
  const [first] = test.outputs
  if (first?.type === 'join.result') expectTypeOf(first.data.right).toEqualTypeOf<Item | null>()
  expect(() => define('known', { version: 1 }, known)).toThrow(/its table "table"/)
})

it('puts events in the order of their time', async () => {
  const at = (seconds: number): ResearchEvent => {
    const time = new Date(T + seconds * 1_000).toISOString()
    return {
      id: String(seconds),
      source: '/s',
      type: 'unknown',
      time,
      data: {},
      received: new Date(T + 1e6).toISOString(),
      via: 'app',
    }
  }
  const ordered = async (...seconds: number[]) => {
    const late: string[] = []
    const order = orderByTime<ResearchEvent>({ lateness: 2_000, onLate: ({ id }) => late.push(id) })
    const events = await lastValueFrom(fromList(seconds.map(at)).pipe(order, toArray()))
    return [events.map(({ id }) => Number(id)), late.map(Number)]
  }
  expect(await ordered(1, 3, 2, 5, 4)).toEqual([[1, 2, 3, 4, 5], []])
  expect(await ordered(1, 5, 2, 3)).toEqual([[1, 2, 3, 5], []])
  expect(await ordered(1, 5, 6, 2)).toEqual([[1, 2, 5, 6], []])
  expect(await ordered(1, 5, 9, 2)).toEqual([[1, 5, 9], [2]])
})
