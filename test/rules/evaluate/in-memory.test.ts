import { describe, expect, it } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import { staleKeys, ruleProgram } from '../../../src/rules/evaluate/program.ts'
import type { AlertOutput } from '../../../src/rules/evaluate/context.ts'
import { BASE, compiled, expression, inputOf, viewOf } from './plain-rule.ts'
import type { PlainRule } from './plain-rule.ts'

const burst: PlainRule = {
  when: { bit: 0 },
  windows: [{ kind: 'count', when: null, over: 3, gte: 2 }],
  isKeyed: true,
  isPerEvent: false,
  resolveWhen: null,
  after: 0,
  for: 0,
  keepFiringFor: 0,
  lateness: 0,
  backfill: 'ignore',
}

function event(id: string, at = 0, key = 'a', bits = 1, source = '/s') {
  const fields = { bits, key, value: null, values: [] }
  return inputOf({ id, source, type: 'unknown', at, recorded: at, revision: 1, backfill: 'no', fields })
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

  it('report an event that is late, and do not count it', () => {
    const driver = new InMemoryRules([compiled(burst)], viewOf)
    const output = [event('1', 10), event('2', 9), event('3', 20)].flatMap((each) => driver.arrive(each))
    expect(output.map(({ type, data }) => [type, 'by' in data && data.by])).toEqual([['alert.late', 1]])
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

  it('give events of the same id from two sources an alert each, per event', () => {
    const each: PlainRule = { ...burst, windows: [], isKeyed: false, isPerEvent: true, after: 5 }
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
