import { ArgumentError } from 'rivulet'
import {
  aggregate,
  average,
  collect,
  count,
  define,
  distinct,
  from,
  hopping,
  inMemory,
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
import { describe, expect, it } from 'vitest'
import { fromReadings, reading, readings } from './readings.ts'

/** An argument that the types refuse: a caller may be JavaScript. */
const wrong = (value: unknown) => value as never

/** The name of the argument that a call refuses with an ArgumentError. */
function refused(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    if (error instanceof ArgumentError) return error.argument
    throw error
  }
  throw new Error('it was not refused')
}

const stage = (name = 'windows') =>
  fromReadings().pipe(
    keyBy(({ key }) => key),
    aggregate(name, tumbling('1m'), { events: count() }),
  )

describe('a time span', () => {
  it.each([
    0,
    -1,
    1.5,
    NaN,
    Infinity,
    '',
    '0s',
    '5 minutes',
    '1m1h',
    '367d',
    367 * 86_400_000,
    null,
    undefined,
    {},
    '-1s',
  ])('%j is refused as the length of a window, and as a gap', (span) => {
    expect(refused(() => tumbling(wrong(span)))).toBe('size')
    expect(refused(() => hopping(wrong(span), '1m'))).toBe('size')
    expect(refused(() => hopping('1m', wrong(span)))).toBe('every')
    expect(refused(() => session(wrong(span)))).toBe('gap')
  })

  it('may be a text or a number of ms', () => {
    expect(tumbling('1h30m')).toEqual({ kind: 'tumbling', size: 5_400_000, every: 5_400_000 })
    expect(session(1)).toEqual({ kind: 'session', gap: 1 })
    expect(tumbling('366d')).toMatchObject({ size: 366 * 86_400_000 })
  })

  it('between hopping windows is at most their length, and at least a thousandth of it', () => {
    expect(refused(() => hopping('1m', '61s'))).toBe('every')
    expect(refused(() => hopping(1_001, 1))).toBe('every')
    expect(hopping(1_000, 1)).toEqual({ kind: 'hopping', size: 1_000, every: 1 })
  })
})

describe('aggregate', () => {
  const values = { events: count() }

  it.each(['', ' ', 7, null, undefined, 'x'.repeat(101)])('refuses the name %j', (name) => {
    expect(refused(() => aggregate(wrong(name), tumbling('1m'), values))).toBe('name')
  })

  it.each([
    null,
    undefined,
    '1m',
    {},
    { kind: 'sliding', size: 60_000 },
    { kind: 'session', gap: 0 },
    { kind: 'tumbling', size: Infinity, every: 1 },
    { kind: 'hopping', size: 60_000, every: 0 },
  ])('refuses the windows %j', (windows) => {
    expect(refused(() => aggregate('windows', wrong(windows), values))).toMatch(/^(windows|size|every|gap)$/)
  })

  it('refuses no values, more than 100, and such as are no aggregates', () => {
    expect(refused(() => aggregate('windows', tumbling('1m'), {}))).toBe('values')
    expect(refused(() => aggregate('windows', tumbling('1m'), wrong(null)))).toBe('values')
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`v${n}`, count()]))
    expect(refused(() => aggregate('windows', tumbling('1m'), many))).toBe('values')
    for (const value of [undefined, null, 7, count, { kind: 'own', init: () => 0 }]) {
      expect(refused(() => aggregate('windows', tumbling('1m'), { own: wrong(value) }))).toBe('values.own')
    }
  })

  it('refuses events without a key', () => {
    expect(refused(() => fromReadings().pipe(wrong(aggregate('windows', tumbling('1m'), values))))).toBe(
      'aggregate',
    )
  })
})

describe('an aggregate', () => {
  it.each([null, 7, 'number', {}])('refuses %j as its function', (value) => {
    for (const of of [sum, min, max, average, distinct, latest, collect]) {
      expect(refused(() => Reflect.apply(of, undefined, [value]))).toBe('value')
    }
    expect(refused(() => percentile(wrong(value), 50))).toBe('value')
    expect(refused(() => count(wrong(value)))).toBe('where')
  })

  it.each([-1, 100.1, NaN, '50', null, undefined])('refuses the percentile %j', (p) => {
    expect(refused(() => percentile(() => 1, wrong(p)))).toBe('p')
  })

  it.each([0, -1, 1.5, NaN, 10_001, '5', null])('refuses %j as its greatest number of values', (most) => {
    expect(refused(() => distinct(() => 1, wrong(most)))).toBe('most')
    expect(refused(() => collect(() => 1, wrong(most)))).toBe('most')
  })
})

describe('the steps of a stream', () => {
  it.each([null, undefined, 7, {}])('refuse %j as a function', (value) => {
    expect(refused(() => where(wrong(value)))).toBe('wanted')
    expect(refused(() => map(wrong(value)))).toBe('value')
    expect(refused(() => keyBy(wrong(value)))).toBe('key')
    expect(refused(() => fromReadings().pipe(wrong(value)))).toBe('pipe')
  })

  it('begin with types or a definition', () => {
    expect(refused(() => from(wrong(undefined)))).toBe('types[0]')
    expect(refused(() => from('unknown', wrong('')))).toBe('types[1]')
    expect(refused(() => from(wrong({ name: 'other' })))).toBe('types[0]')
  })

  it('have one key', () => {
    const twice = () =>
      fromReadings().pipe(
        keyBy(({ key }) => key),
        wrong(keyBy(() => 'again')),
      )
    expect(refused(twice)).toBe('keyBy')
  })
})

describe('define', () => {
  it.each(['', ' ', 7, null, undefined])('refuses the name %j', (name) => {
    expect(refused(() => define(wrong(name), { version: 1 }, stage()))).toBe('name')
  })

  it.each([
    ['version', { version: 0 }],
    ['version', { version: 1.5 }],
    ['version', {}],
    ['lateness', { version: 1, lateness: NaN }],
    ['lateness', { version: 1, lateness: -1 }],
    ['lateness', { version: 1, lateness: 'soon' }],
    ['lateness', { version: 1, lateness: '367d' }],
    ['backfill', { version: 1, backfill: 'drop' }],
    ['options', null],
    ['options', undefined],
    ['options.late', { version: 1, late: 'drop' }],
  ])('refuses a wrong %s: %j', (argument, options) => {
    expect(refused(() => define('p', wrong(options), stage()))).toMatch(argument.replace(/^options\./, ''))
  })

  it('refuses no stages, more than 100, what is no stage, and names that are there twice', () => {
    expect(refused(() => Reflect.apply(define, undefined, ['p', { version: 1 }]))).toBe('stages')
    const many = Array.from({ length: 101 }, (_, n) => stage(`s${n}`))
    expect(refused(() => Reflect.apply(define, undefined, ['p', { version: 1 }, ...many]))).toBe('stages')
    expect(refused(() => define('p', { version: 1 }, wrong(fromReadings())))).toBe('stages[0]')
    expect(refused(() => define('p', { version: 1 }, stage(), wrong(undefined)))).toBe('stages[1]')
    expect(refused(() => define('p', { version: 1 }, stage(), stage()))).toBe('stages[1]')
  })

  it('refuses a stage that reads the results of its own name', () => {
    const own = readings(tumbling('1m'))
    const again = from(own).pipe(
      keyBy(({ data }) => data.key),
      aggregate('again', tumbling('1h'), { n: count() }),
    )
    expect(refused(() => define('readings', { version: 1 }, again))).toBe('stages[0]')
  })
})

describe('testStream', () => {
  const test = () => testStream(readings(tumbling('1m')))

  it.each([undefined, null, {}, 'p'])('refuses %j', (definition) => {
    expect(refused(() => testStream(wrong(definition)))).toBe('definition')
  })

  it.each(['soon', NaN, Infinity, 9e15])('refuses the time %j of an event', (time) => {
    expect(refused(() => test().send(reading(1, { time })))).toBe('time')
  })

  it.each([NaN, Infinity, 9e15])('refuses %j as the time of a recording', (recorded) => {
    expect(refused(() => test().send(reading(1, { recorded })))).toBe('recorded')
  })

  it('refuses an event with an unknown field', () => {
    expect(refused(() => test().send(wrong({ ...reading(1), at: 1 })))).toMatch('at')
    expect(refused(() => test().send(wrong(null)))).toBe('event')
  })

  it.each(['soon', '', NaN, Infinity, 9e15, null, undefined])('refuses the tick %j', (through) => {
    expect(refused(() => test().tick(wrong(through)))).toBe('through')
  })
})

describe('inMemory of a definition', () => {
  const definition = readings(tumbling('1m'))

  it.each([
    ['watermark', { watermark: 'clock' }],
    ['maxKeys', { maxKeys: 0 }],
    ['onDeadLetter', { onDeadLetter: 'skip' }],
    ['options', null],
    ['version', { version: 2 }],
  ])('refuses a wrong %s', (argument, options) => {
    expect(refused(() => inMemory(definition, wrong(options)))).toMatch(argument)
  })
})
