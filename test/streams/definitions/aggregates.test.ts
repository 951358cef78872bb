import * as fc from 'fast-check'
import {
  aggregate,
  average,
  collect,
  count,
  define,
  distinct,
  keyBy,
  latest,
  max,
  min,
  percentile,
  ProcessError,
  session,
  sum,
  testStream,
  tumbling,
} from 'rivulet/streams'
import type { Aggregate, TestEvent, Windows } from 'rivulet/streams'
import { describe, expect, it } from 'vitest'
import { at, fromReadings, reading } from './readings.ts'
import { isWithin } from './random-streams.ts'
import type { Reading } from './reference.ts'

/** The value of an aggregate over events, in their order, once all windows end. */
function valueOf<Value>(
  of: Aggregate<Reading, Value>,
  events: readonly TestEvent[],
  windows: Windows = tumbling('1h'),
): unknown {
  const test = testOf(of, windows)
  test.send(...events)
  const results = test.end().filter(({ type }) => type === 'window.result')
  expect(results).toHaveLength(1)
  const [result] = results
  return result?.type === 'window.result' ? result.data.values.value : undefined
}

const testOf = <Value>(of: Aggregate<Reading, Value>, windows: Windows = tumbling('1h')) =>
  testStream(
    define(
      'p',
      { version: 1 },
      fromReadings().pipe(
        keyBy(({ key }) => key),
        aggregate<Reading, 'values', { value: Value }>('values', windows, { value: of }),
      ),
    ),
  )

const number = (item: Reading) => item.number

/** Events of one window with these numbers. */
const numbered = (...numbers: readonly (number | null)[]) =>
  numbers.map((each, n) => reading(n / 1_000, { number: each, recorded: at(3_000) }))

describe('an aggregate', () => {
  const numbers = [4, null, -2.5, 4, 0]

  it.each<readonly [string, Aggregate<Reading, unknown>, unknown, unknown]>([
    ['count', count(), 5, 1],
    ['count of some', count((item) => (item.number ?? 0) > 0), 2, 0],
    ['sum', sum(number), 5.5, 0],
    ['min', min(number), -2.5, null],
    ['max', max(number), 4, null],
    ['average', average(number), 1.375, null],
    ['distinct', distinct(number), 3, 0],
    ['latest', latest(number), 0, null],
    ['collect', collect(number), numbers, [null]],
    ['percentile', percentile(number, 0), -2.5, null],
  ])('has a value over events, and over one without a number: %s', (_, of, expected, ofNone) => {
    const value = valueOf(of, numbered(...numbers))
    expect(typeof value === 'number' && isWithin(value, Number(expected)) ? expected : value).toEqual(
      expected,
    )
    expect(valueOf(of, numbered(null))).toEqual(ofNone)
  })

  it.each<readonly [string, Aggregate<Reading, unknown>, unknown]>([
    ['count', count(), 4],
    ['sum', sum(number), 30],
    ['min', min(number), 2],
    ['max', max(number), 16],
    ['average', average(number), 7.5],
    ['distinct', distinct(number), 4],
    ['latest', latest(number), 16],
    ['collect', collect(number), [2, 8, 16, 4]],
  ])('has the value of both if sessions become one: %s', (_, of, expected) => {
    const late = { recorded: at(3_000) }
    const events = [
      reading(50, { number: 8, ...late }),
      reading(51, { number: 16, ...late }),
      reading(10, { number: 2, ...late }),
      reading(30, { number: 4, ...late }),
    ]
    expect(valueOf(of, events, session('30s'))).toEqual(expected)
  })

  it('is computed apart for each window and key', () => {
    const test = testOf(sum(number))
    test.send(...numbered(1, 2), reading(3_600, { number: 4 }), reading(1, { key: 'b', number: 8 }))
    expect(test.end().map(({ data }) => 'values' in data && data.values.value)).toEqual([3, 8, 4])
  })

  it('may be one of your own, whose parts are merged with the earlier session first', () => {
    const texts: Aggregate<Reading, string, string> = {
      kind: 'texts',
      init: () => '',
      add: (state, item, time) => `${state}+${item.number}@${(time - at(0)) / 1_000}`,
      merge: (a, b) => `(${a})(${b})`,
      result: (state) => `${state}.`,
    }
    const events = [50, 10, 30].map((seconds) => reading(seconds, { recorded: at(100) }))
    expect(valueOf(texts, events, session('30s'))).toBe('(+10@10)(+50@50)+30@30.')
  })

  it('gets the same state back for each event, whatever a function does to it', () => {
    const seen: number[] = []
    const own: Aggregate<Reading, number, { n: number }> = {
      kind: 'own',
      init: () => ({ n: 0 }),
      add(state) {
        seen.push(state.n)
        return { n: state.n + 1 }
      },
      merge: (a) => a,
      result: ({ n }) => n,
    }
    expect(valueOf(own, numbered(1, 1, 1))).toBe(3)
    expect(seen).toEqual([0, 1, 2])
  })
})

describe('a sum', () => {
  it('is that of floating-point numbers in the order in which they came', () => {
    expect(valueOf(sum(number), numbered(0.1, 0.2, 0.3))).toBe(0.1 + 0.2 + 0.3)
    expect(valueOf(sum(number), numbered(0.3, 0.2, 0.1))).toBe(0.3 + 0.2 + 0.1)
    expect(valueOf(average(number), numbered(0.1, 0.2, 0.3))).toBe((0.1 + 0.2 + 0.3) / 3)
  })

  it.each([sum(number), average(number)])('stops the process when it is no longer finite', (of) => {
    const test = testOf(of)
    test.send(...numbered(Number.MAX_VALUE))
    expect(() => test.send(...numbered(Number.MAX_VALUE))).toThrow(/must be a finite number, not Infinity/)
  })
})

it.each([
  ['sum', sum],
  ['min', min],
  ['max', max],
  ['average', average],
  ['percentile', (value: (item: Reading) => number | null) => percentile(value, 50)],
])('%s stops the process at a number that is none, and names the event', (kind, of) => {
  for (const wrong of [NaN, Infinity, '7', {}, true]) {
    const test = testOf(of(() => wrong as number))
    expect(() => test.send(reading(1, { id: 'wrong' }))).toThrow(ProcessError)
    expect(() => test.send(reading(1, { id: 'wrong' }))).toThrow(
      new RegExp(`the event "wrong" of /test.*: ${kind}: its value must be a finite number, not`),
    )
  }
})

it.each([
  ['sum', sum<Reading>(() => undefined), 0],
  ['min', min<Reading>(() => undefined), null],
  ['distinct', distinct<Reading>(() => undefined), 0],
  ['percentile', percentile<Reading>(() => undefined, 50), null],
])('%s leaves out an event whose value is undefined', (_, of, expected) => {
  expect(valueOf<unknown>(of, numbered(1, 2))).toBe(expected)
})

describe('distinct', () => {
  it('distinguishes a text from a number', () => {
    const values: readonly (string | number)[] = ['1', 1, '1', 1, '']
    const of = distinct<Reading>((item) => values[item.number ?? 0])
    expect(valueOf(of, numbered(0, 1, 2, 3, 4))).toBe(3)
  })

  it('stops the process at one value more than `most`, in a window and in sessions that become one', () => {
    const test = testOf(distinct(number, 2))
    test.send(...numbered(1, 2, 1, 2))
    expect(() => test.send(...numbered(3))).toThrow(/distinct: a window has more than 2 different values/)
    const sessions = testOf(distinct(number, 2), session('30s'))
    sessions.send(reading(1), reading(40), reading(41))
    expect(() => sessions.send(reading(20))).toThrow(/distinct: a window has more than 2 different values/)
  })

  it('stops the process at a value that is neither a text nor a number', () => {
    for (const wrong of [true, {}, NaN, Infinity]) {
      const test = testOf(distinct(() => wrong as number))
      expect(() => test.send(reading(1))).toThrow(/distinct: its value must be a text or a finite number/)
    }
  })
})

describe('latest', () => {
  it('is the value with the greatest time, of several the one that came last', () => {
    const test = testOf(latest(number))
    const late = { recorded: at(3_000) }
    test.send(reading(20, { number: 1, ...late }), reading(20, { number: 2, ...late }))
    test.send(reading(10, { number: 3, ...late }))
    expect(test.end()).toMatchObject([{ data: { values: { value: 2 } } }])
  })

  it('may be null, or any JSON value', () => {
    expect(valueOf(latest(number), numbered(1, null))).toBeNull()
    expect(
      valueOf(
        latest((item) => ({ list: [item.number] })),
        numbered(1, 2),
      ),
    ).toEqual({ list: [2] })
    expect(
      valueOf(
        latest(() => undefined),
        numbered(1),
      ),
    ).toBeNull()
    expect(
      valueOf(
        latest(() => false),
        numbered(1),
      ),
    ).toBe(false)
  })
})

describe('collect', () => {
  it('stops the process at one value more than `most`, in a window and in sessions that become one', () => {
    const test = testOf(collect(number, 2))
    test.send(...numbered(1, 1))
    expect(() => test.send(...numbered(1))).toThrow(/collect: a window has more than 2 values/)
    const sessions = testOf(collect(number, 2), session('30s'))
    sessions.send(reading(1), reading(40))
    expect(() => sessions.send(reading(20))).toThrow(/collect: a window has more than 2 values/)
  })

  it('leaves out undefined, and keeps null', () => {
    expect(
      valueOf(
        collect(({ number: n }: Reading) => (n === 1 ? undefined : n === 2 ? null : n)),
        numbered(1, 2, 3),
      ),
    ).toEqual([null, 3])
  })

  it('stops the process at a value that is not JSON', () => {
    const test = testOf(collect(() => new Map()))
    expect(() => test.send(reading(1))).toThrow(/its state is not JSON/)
  })
})

describe('a percentile', () => {
  const exact = (numbers: readonly number[], p: number) => {
    const ascending = numbers.toSorted((a, b) => a - b)
    return ascending[Math.max(Math.ceil((p * ascending.length) / 100), 1) - 1] ?? null
  }

  it('is within 1 % of the value with its rank, for any numbers and any order', () => {
    const some = fc.array(
      fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e12, max: 1e12 }), fc.integer()),
      { minLength: 1, maxLength: 60 },
    )
    fc.assert(
      fc.property(some, fc.double({ noNaN: true, min: 0, max: 100 }), (numbers, p) => {
        // Those next to zero have no 1 %.
        const normal = numbers.map((each) => (Math.abs(each) < 1e-300 ? 0 : each))
        const value = valueOf(percentile(number, p), numbered(...normal))
        expect({ value, isWithin: isWithin(value as number | null, exact(normal, p)) }).toMatchObject({
          isWithin: true,
        })
      }),
      { numRuns: 300 },
    )
  })

  it.each([1, 7, 14, 28, 29, 55, 56, 57, 58, 99])('has the rank that its number says: %d of 100', (p) => {
    const numbers = Array.from({ length: 100 }, (_, n) => 1.1 ** n)
    const value = valueOf(percentile(number, p), numbered(...numbers))
    expect(isWithin(value as number, exact(numbers, p))).toBe(true)
  })

  it('is the least number at 0, and the greatest one at 100', () => {
    const numbers = [8, -3, 0, 5]
    expect(isWithin(valueOf(percentile(number, 0), numbered(...numbers)) as number, -3)).toBe(true)
    expect(isWithin(valueOf(percentile(number, 100), numbered(...numbers)) as number, 8)).toBe(true)
  })

  it('is zero for zeros', () => {
    expect(valueOf(percentile(number, 50), numbered(0, -0, 0))).toBe(0)
  })

  it.each([Number.MAX_VALUE, -Number.MAX_VALUE, Number.MAX_VALUE / 2, 1e-300])('takes %d', (extreme) => {
    expect(isWithin(valueOf(percentile(number, 50), numbered(extreme)) as number, extreme)).toBe(true)
  })

  it('does not depend on the order, also if sessions become one', () => {
    const numbers = Array.from({ length: 50 }, (_, n) => (n * 37) % 50)
    const one = valueOf(percentile(number, 90), numbered(...numbers))
    expect(valueOf(percentile(number, 90), numbered(...numbers.toReversed()))).toBe(one)
    const [left, right] = [numbers.slice(0, 20), numbers.slice(20, 49)]
    const late = { recorded: at(3_000) }
    const events = [
      ...right.map((each) => reading(70, { number: each, ...late })),
      ...left.map((each) => reading(20, { number: each, ...late })),
      reading(45, { number: numbers[49] ?? null, ...late }),
    ]
    expect(valueOf(percentile(number, 90), events, session('30s'))).toBe(one)
  })

  it('fails if the numbers of a window, or of sessions that become one, are too far apart for its bins', () => {
    const of = percentile(number, 50)
    const sketch = (from: number, to: number) => {
      let state = of.init()
      for (let n = from; n < to; n++) state = of.add(state, { key: 'a', number: 1e-150 * 1.1 ** n }, 0)
      return state
    }
    const [low, high] = [sketch(0, 2_000), sketch(2_000, 4_001)]
    expect(() => of.merge(low, high)).toThrow(/percentile: the numbers of a window are too far apart/)
    const full = of.merge(low, sketch(2_000, 4_000))
    expect(() => of.add(full, { key: 'a', number: -1 }, 0)).not.toThrow()
    expect(() => of.add(full, { key: 'a', number: 1e-200 }, 0)).toThrow(/need more than 4000 bins/)
  })
})
