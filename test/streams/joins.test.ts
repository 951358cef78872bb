import {
  aggregate,
  count,
  define,
  enrich,
  from,
  join,
  keyBy,
  latestBy,
  map,
  testStream,
  tumbling,
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

const short = (outputs: readonly { readonly type: string; readonly data: unknown }[]) =>
  outputs.map(({ type, data }) => {
    const { left, right, time, count: dropped } = data as Partial<Joined>
    const n = (item: Item | null | undefined) => item?.n ?? null
    return type === 'join.result'
      ? `${n(left)}-${n(right)}@${(Date.parse(time ?? '') - T) / 1_000}`
      : `${type} ${dropped}`
  })

it('pairs events of a key within the time, whichever comes first', () => {
  const test = testStream(pairs('inner'))
  expect(
    short(test.send(event('l', 0, 1), event('r', 10, 2), event('r', 11, 3), event('r', 5, 4, 'other'))),
  ).toEqual(['1-2@10'])
  expect(short(test.send(event('l', 21, 5)))).toEqual(['5-3@21'])
  expect(short(test.end())).toEqual([])
  expect(test.state.size).toBe(0)
})

it('gives what has no partner once the watermark has passed the time of one, and not before', () => {
  const test = testStream(pairs('left'))
  expect(short(test.send(event('l', 0, 1), event('l', 1, 2), event('r', 11, 3)))).toEqual(['2-3@11'])
  expect(short(test.tick(T + 10_000))).toEqual([])
  expect(short(test.send(event('r', 10, 4)))).toEqual(['1-4@10', '2-4@10'])
  expect(short(test.send(event('l', 12, 5)))).toEqual(['5-4@12', '5-3@12'])
  expect(short(test.send(event('l', 21, 6)))).toEqual(['6-3@21'])
  expect(short(test.send(event('l', 30, 7)))).toEqual([])
  expect(short(test.tick(T + 40_000))).toEqual([])
  expect(short(test.tick(T + 40_001))).toEqual(['7-null@30'])
})

it('leaves out and reports an event that the watermark has passed', () => {
  const test = testStream(pairs('inner'))
  test.send(event('l', 0, 1))
  test.tick(T + 5_000)
  expect(short(test.send(event('r', 4, 2), event('r', 3, 3)))).toEqual([])
  expect(short(test.tick(T + 100_000))).toEqual(['stage.dropped 2'])
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
  expect(short(test.send(event('e', 0, 1)))).toEqual(['1-null@0'])
  expect(short(test.send(event('t', 5, 2), event('e', 6, 3), event('t', 4, 4), event('e', 7, 5)))).toEqual([
    '3-2@6',
    '5-2@7',
  ])
  const [first] = test.outputs
  if (first?.type === 'join.result') expectTypeOf(first.data.right).toEqualTypeOf<Item | null>()
  expect(() => define('known', { version: 1 }, known)).toThrow(/its table "table"/)
})

it('has pairs of events that are exactly `within` apart, and none that are 1 ms more', () => {
  const test = testStream(pairs('inner'))
  test.send(event('l', 10, 1))
  expect(short(test.send(event('r', 0, 2), event('r', 20, 3)))).toEqual(['1-2@10', '1-3@20'])
  expect(short(test.send(event('r', -0.001, 4), event('r', 20.001, 5)))).toEqual([])
})

it('takes an event at the watermark, and leaves out one that is 1 ms before it', () => {
  const test = testStream(pairs('inner'))
  test.send(event('l', 0, 1))
  test.tick(T + 10_000)
  expect(short(test.send(event('r', 9.999, 2), event('r', 10, 3)))).toEqual(['1-3@10'])
  expect(short(test.end())).toEqual(['stage.dropped 1'])
})

it('waits for `lateness` more before an event has no partner', () => {
  const definition = define(
    'pairs',
    { version: 1, lateness: '5s' },
    keyed('l').pipe(join('pairs', keyed('r'), { within: '10s', kind: 'left' })),
  )
  const test = testStream(definition)
  test.send(event('l', 0, 1))
  expect(short(test.tick(T + 15_000))).toEqual([])
  expect(short(test.send(event('r', 10, 2), event('l', 20, 3)))).toEqual(['1-2@10', '3-2@20'])
  expect(short(test.send(event('l', 21, 4)))).toEqual([])
  expect(short(test.tick(T + 36_000))).toEqual([])
  expect(short(test.tick(T + 36_001))).toEqual(['4-null@21'])
})

it('says of an event without a partner whether all events had come', () => {
  const test = testStream(pairs('left'))
  test.send(event('l', 0, 1), event('l', 20, 2))
  const complete = (outputs: typeof test.outputs) =>
    outputs.map(({ data }) => ('complete' in data ? data.complete : undefined))
  expect(complete(test.tick(T + 10_001, false))).toEqual([false])
  expect(complete(test.tick(T + 30_001))).toEqual([true])
})

it('pairs the events of a stream that is joined with itself, each with the others and none with itself', () => {
  const self = define('self', { version: 1 }, keyed('l').pipe(join('self', keyed('l'), { within: '10s' })))
  const test = testStream(self)
  expect(short(test.send(event('l', 0, 1)))).toEqual([])
  expect(short(test.send(event('l', 5, 2)))).toEqual(['2-1@5', '1-2@5'])
  expect(short(test.end())).toEqual([])
})

it('has no partner in an event that both streams have, but in the others', () => {
  const all = from('unknown').pipe(map(({ data }) => data as Item))
  const byKey = all.pipe(keyBy(({ key }) => key))
  const left = define(
    'both',
    { version: 1 },
    byKey.pipe(join('both', byKey, { within: '10s', kind: 'left' })),
  )
  const test = testStream(left)
  test.send(event('l', 0, 1))
  expect(short(test.tick(T + 10_001))).toEqual(['1-null@0'])
})

it('reports the events of a day without a time, which have no place beside others', () => {
  const test = testStream(pairs('inner'))
  test.send({ ...event('l', 0, 1), time: '2026-01-01', recorded: T + 1_000 } as TestEvent)
  const [report] = test.end()
  expect(report?.data).toEqual({
    stage: 'pairs',
    key: 'k',
    start: '2026-01-01T00:00:00.000Z',
    end: '2026-01-02T00:00:00.000Z',
    reason: 'whole_day',
    count: 1,
  })
})

it('pairs an event with 256 others, and none of them if there are more', () => {
  const test = testStream(pairs('left'))
  for (let n = 0; n < 256; n++) test.send(event('l', 0, n))
  expect(test.send(event('r', 10, 0))).toHaveLength(256)
  test.send(event('l', 1, 256))
  expect(() => test.send(event('r', 5, 1))).toThrow(/appends 257 events: at most 256/)
  expect(short(test.end())).toEqual([])
})

it('places results of a window in their window, beside other events', () => {
  const perMinute = define(
    'per-minute',
    { version: 1 },
    keyed('l').pipe(aggregate('n', tumbling('1m'), { n: count() })),
  )
  const counts = from(perMinute).pipe(
    map(({ data }) => ({ key: data.key, n: data.values.n })),
    keyBy(({ key }) => key),
  )
  const joined = define('joined', { version: 1 }, counts.pipe(join('joined', keyed('r'), { within: '1s' })))
  expect(joined.after).toEqual(['per-minute'])
  const test = testStream(joined)
  const data = {
    stage: 'n',
    key: 'k',
    start: new Date(T).toISOString(),
    end: new Date(T + 60_000).toISOString(),
    complete: true,
    values: { n: 3 },
  }
  test.send({ type: 'window.result', source: perMinute.source, time: T + 60_000, data })
  expect(short(test.send(event('r', 58.999, 1), event('r', 58.998, 2), event('r', 60.999, 3)))).toEqual([
    '3-1@59.999',
    '3-3@60.999',
  ])
})

it('enriches an event that is in the table by itself, if the table comes first', () => {
  const table = from('unknown').pipe(
    map(({ data }) => data as Item),
    latestBy('table', ({ key }) => key),
  )
  const known = from('unknown').pipe(
    map(({ data }) => data as Item),
    keyBy(({ key }) => key),
    enrich('known', table),
  )
  const before = testStream(define('known', { version: 1 }, table, known))
  const after = testStream(define('known', { version: 1 }, known, table))
  const events = [event('e', 0, 1), event('e', 1, 2), event('e', 0, 3)]
  expect(short(before.send(...events))).toEqual(['1-1@0', '2-2@1', '3-2@0'])
  expect(short(after.send(...events))).toEqual(['1-null@0', '2-1@1', '3-2@0'])
})

it('keeps the event that happened last, of one time the one that came last, with revisions and the past', () => {
  const table = items('t').pipe(latestBy('table', ({ key }) => key))
  const test = testStream(define('table', { version: 1 }, table))
  const row = () => Object(test.state.get('["table","k"]')).item.n
  const after = (...events: readonly TestEvent[]) => {
    test.send(...events)
    return row()
  }
  expect(after(event('t', 5, 1), event('t', 5, 2))).toBe(2)
  expect(after(event('t', 4, 3))).toBe(2)
  expect(after({ ...event('t', 5, 4), id: '2', revision: 2 })).toBe(4)
  expect(after({ ...event('t', 4, 5), id: '3', revision: 2 })).toBe(4)
  expect(after({ ...event('t', 6, 6), backfill: true })).toBe(6)
})

it('joins the events of a first walk into the past if they are to be placed, and no revision', () => {
  const joinOf = (backfill: 'ignore' | 'place') =>
    testStream(
      define(
        'pairs',
        { version: 1, backfill },
        keyed('l').pipe(join('pairs', keyed('r'), { within: '10s' })),
      ),
    )
  const past = { ...event('l', 0, 1), id: 'past', backfill: true }
  for (const [backfill, results] of [
    ['ignore', []],
    ['place', ['1-2@1']],
  ] as const) {
    const test = joinOf(backfill)
    expect(short(test.send(past, { ...past, revision: 2 }, event('r', 1, 2)))).toEqual(results)
  }
})

it('refuses wrong arguments at the call', () => {
  const table = items('t').pipe(latestBy('table', ({ key }) => key))
  const counted = keyed('l').pipe(aggregate('n', tumbling('1m'), { n: count() }))
  const right = keyed('r')
  const wrong: readonly (readonly [RegExp, () => unknown])[] = [
    [/`?name`?/, () => join('', right, { within: 1 })],
    [/within/, () => join('pairs', right, { within: 0 })],
    [/within/, () => join('pairs', right, { within: Number.NaN })],
    [/within/, () => join('pairs', right, { within: '367d' })],
    // @ts-expect-error An option that is missing.
    [/within/, () => join('pairs', right, {})],
    // @ts-expect-error There is no such option.
    [/until/, () => join('pairs', right, { within: 1, until: 2 })],
    // @ts-expect-error There is no such kind.
    [/kind/, () => join('pairs', right, { within: 1, kind: 'outer' })],
    // @ts-expect-error It has no keys.
    [/right/, () => join('pairs', items('r'), { within: 1 })],
    // @ts-expect-error It has no keys.
    [/`keyBy` before it/, () => items('l').pipe(join('pairs', right, { within: 1 }))],
    // @ts-expect-error It is no function.
    [/key/, () => latestBy('table', 'key')],
    [/name/, () => latestBy('x'.repeat(101), () => 'key')],
    // @ts-expect-error It is no table.
    [/a table, as/, () => enrich('known', counted)],
    // @ts-expect-error It is no table.
    [/a table, as/, () => enrich('known', undefined)],
    // @ts-expect-error It has no keys.
    [/`keyBy` before it/, () => items('e').pipe(enrich('known', table))],
  ]
  for (const [message, call] of wrong) expect(call).toThrow(message)
})

it('refuses a table of the same name that is another one', () => {
  const tableOf = () => items('t').pipe(latestBy('table', ({ key }) => key))
  const known = keyed('e').pipe(enrich('known', tableOf()))
  expect(() => define('known', { version: 1 }, tableOf(), known)).toThrow(/its table "table"/)
})
