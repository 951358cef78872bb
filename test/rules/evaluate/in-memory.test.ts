import { describe, expect, it } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import { staleKeys, ruleProgram } from '../../../src/rules/evaluate/program.ts'
import type { AlertOutput } from '../../../src/rules/evaluate/context.ts'
import type { Json } from '../../../src/protocol/json.ts'
import { BASE, compiled, countRule, expression, inputOf, viewOf } from './plain-rule.ts'
import type { PlainRule } from './plain-rule.ts'

const burst = countRule(3, 2)

function event(id: string, at = 0, key = 'a', bits = 1, source = '/s', recorded = at) {
  const fields = { bits, key, value: null, values: [] }
  return inputOf({ id, source, type: 'unknown', at, recorded, revision: 1, backfill: 'no', fields })
}

/** An event that is recorded later than it happened. */
function recordedAt(recorded: number, id: string, at: number) {
  return event(id, at, 'a', 1, '/s', recorded)
}

describe('rules in memory', () => {
  it('do not watch more keys than they may, and say so once for each rule', () => {
    const driver = new InMemoryRules([compiled(burst)], viewOf, 2)
    const output = [0, 1, 2, 3].flatMap((number) =>
      driver.arrive(event(`${number}`, number % 2, `key${number}`)),
    )
    expect(output.map(({ type, data }) => [type, 'reason' in data && data.reason])).toEqual([
      ['alert.unknown', 'keys'],
    ])
    expect(driver.states.size).toBe(2)
  })

  it('report the late events of a key once a minute, and do not count them', () => {
    const driver = new InMemoryRules([compiled(burst)], viewOf)
    const late = [recordedAt(10, '2', 9), recordedAt(11, '3', 5), recordedAt(12, '4', 8)]
    expect([event('1', 10), ...late].flatMap((each) => driver.arrive(each))).toEqual([])
    expect(driver.tick(BASE + 60_009)).toEqual([])
    const [output, ...others] = driver.tick(BASE + 60_010)
    expect(output?.type).toBe('alert.late')
    expect(output?.data).toMatchObject({
      alert: 'R',
      key: { key: 'a' },
      labels: { alertname: 'R' },
      event: { id: '2' },
      count: 3,
      by: 5,
      since: new Date(BASE + 10).toISOString(),
    })
    expect(others).toEqual([])
    // Nothing is left of the key.
    expect([driver.states.size, driver.nextDue]).toEqual([0, undefined])
  })

  it('report the late events of the next minute again', () => {
    const driver = new InMemoryRules([compiled({ ...burst, windows: [], after: 200_000 })], viewOf)
    driver.arrive(event('1', 10))
    driver.tick(BASE + 200_010)
    driver.arrive(recordedAt(200_020, '2', 5))
    driver.arrive(recordedAt(260_019, '3', 5))
    const later = [recordedAt(260_020, '4', 5), recordedAt(320_020, '5', 5)]
    const counts = later
      .flatMap((each) => driver.arrive(each))
      .map(({ data }) => ('count' in data ? [data.event.id, data.count] : []))
    expect(counts).toEqual([
      ['2', 2],
      ['4', 1],
    ])
  })

  it.each(['changed', 'distinct'] as const)(
    'do not take the order of fields for another value of %s',
    (kind) => {
      const value = expression('value', ({ bits }) => (bits === 1 ? { a: 1, b: [2] } : { b: [2], a: 1 }))
      const window = { kind, value, within: 10, over: 10, gte: 2 }
      const driver = new InMemoryRules([{ ...compiled(burst), windows: [window], when: undefined }], viewOf)
      const output = [1, 2].flatMap((bits) => driver.arrive(event(`${bits}`, bits, 'a', bits)))
      expect(output.filter(({ type }) => type === 'alert.firing')).toEqual([])
    },
  )

  it.each([
    ['sum', 2_000, false],
    ['percentile', 2, false],
    ['max', 7, true],
  ] as const)(
    'say whether the %s of more numbers than there is room for is complete',
    (kind, value, complete) => {
      const number = expression('number', ({ bits }) => bits)
      const settings = { value: number, over: 10_000, gte: undefined, lte: undefined, p: 50 }
      const rule = {
        ...compiled({ ...burst, for: 1_001 }),
        when: undefined,
        windows: [{ kind, ...settings }],
      }
      const driver = new InMemoryRules([rule], viewOf)
      const numbers = [7, ...Array.from({ length: 1_000 }, () => 2)]
      for (const [at, bits] of numbers.entries()) driver.arrive(event(`${at}`, at, 'a', bits))
      expect(driver.tick(BASE + 1_001).map(({ data }) => data)).toMatchObject([{ value, complete }])
    },
  )

  it('count an event without a number for no aggregate, and say so', () => {
    const values: readonly Json[] = ['12', true, [1], 1e301, null, -0, 3]
    const number = expression('number', ({ bits }) => values[bits])
    const window = { kind: 'min' as const, value: number, over: 10, gte: 0, lte: undefined }
    const driver = new InMemoryRules(
      [{ ...compiled(burst), windows: [window], when: undefined, key: [] }],
      viewOf,
    )
    const firing = values.flatMap((_, bits) => driver.arrive(event(`${bits}`, 1, 'a', bits)))
    expect(firing.map(({ type, data }) => [type, 'value' in data && data.value])).toEqual([
      ['alert.firing', 0],
    ])
    expect(driver.states.get('R')).toMatchObject({ counts: { missing: 1, errors: 4 } })
  })

  it('give events of the same id from two sources an alert each, per event', () => {
    const each: PlainRule = { ...burst, windows: [], keyedBy: 'nothing', isPerEvent: true, after: 5 }
    const driver = new InMemoryRules([compiled(each)], viewOf)
    const output = ['/s', '/t'].flatMap((source) => driver.arrive(event('1', 0, 'a', 1, source)))
    expect(output.map(({ data }) => data.key)).toEqual([
      { event: '1', source: '/s' },
      { event: '1', source: '/t' },
    ])
    expect(new Set(output.map(({ data }) => 'episode' in data && data.episode)).size).toBe(2)
  })

  it('forget a key of which nothing is left', () => {
    const driver = new InMemoryRules([compiled(burst)], viewOf)
    driver.arrive(event('1', 10))
    expect(driver.states.size).toBe(1)
    driver.tick(BASE + 13)
    expect([driver.states.size, driver.nextDue]).toEqual([0, undefined])
  })

  it('end the alerts of a rule that is gone', () => {
    const driver = new InMemoryRules([compiled(burst)], viewOf)
    driver.arrive(event('1', 10))
    driver.arrive(event('2', 11))
    const edited = [{ ...compiled(burst), version: '00000002' }]
    const [key = '', ...others] = staleKeys(driver.states.keys(), edited)
    expect(others).toEqual([])
    const output: AlertOutput[] = []
    const states: unknown[] = []
    ruleProgram(edited, viewOf).event(driver.states.get(key) ?? {}, event('3', 12), {
      key,
      complete: true,
      now: () => BASE + 12,
      set: (state) => states.push(state),
      timer: () => {},
      cancel: () => {},
      append: (each) => output.push(each),
    })
    expect(output.map(({ type, data }) => [type, 'reason' in data && data.reason])).toEqual([
      ['alert.resolved', 'rule'],
    ])
    expect(states).toEqual([null])
  })
})
