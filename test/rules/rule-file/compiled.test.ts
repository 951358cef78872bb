import { defineRules, parseRules } from 'rivulet/rules'
import type { Rule, RuleFile } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { compiledRules } from '../../../src/rules/rule-set.ts'

/** A rule as the engine gets it. */
function compiled(rules: Rule | RuleFile) {
  const [first] = compiledRules(defineRules('version' in rules ? rules : [rules]))
  if (first === undefined) throw new Error('there is no rule')
  return first
}

const HOUR = 3_600_000
const PULSE = { alert: 'A', on: ['error'] } as const
const COUNT = { alert: 'A', count: { over: '1h', gte: 3 } } as const

describe('a compiled rule', () => {
  it('has defaults', () => {
    expect(compiled(PULSE)).toMatchObject({
      name: 'A',
      group: null,
      types: new Set(['error']),
      windows: [],
      key: [],
      isPerEvent: false,
      resolve: { after: HOUR },
      for: 0,
      keepFiringFor: 0,
      lateness: 0,
      backfill: 'ignore',
    })
    expect(compiled({ ...PULSE, per: 'event' }).resolve.after).toBe(300_000)
    expect(compiled({ alert: 'A', when: 'true' }).types).toBeUndefined()
  })

  it('reads events of types that are not ours, with any fields', () => {
    const [rule] = compiledRules(
      parseRules('version: 1\nrules: [{ alert: A, on: [tank.full, error], when: data.level > 0.9 }]'),
    )

    expect(rule?.types).toEqual(new Set(['tank.full', 'error']))
  })

  it('waits a minute for late events where their order matters', () => {
    expect(compiled(COUNT).lateness).toBe(60_000)
    expect(compiled({ ...PULSE, for: '1m' }).lateness).toBe(60_000)
    expect(compiled({ alert: 'A', when: 'changed(source)' }).lateness).toBe(60_000)
    expect(compiled({ ...COUNT, lateness: 0 }).lateness).toBe(0)
  })

  it('has each window in ms', () => {
    const of = (window: Partial<Rule>) => compiled({ alert: 'A', ...window }).windows
    const value = expect.objectContaining({ text: 'id' })

    expect(of({ count: { over: '1h30m', gte: 3 }, rate: { over: '1d', per: '1h', gte: 0.5 } })).toEqual([
      { kind: 'count', over: 1.5 * HOUR, gte: 3 },
      { kind: 'rate', over: 24 * HOUR, per: HOUR, gte: 0.5 },
    ])
    expect(of({ distinct: { value: 'id', over: 500, gte: 2 } })).toEqual([
      { kind: 'distinct', value, over: 500, gte: 2 },
    ])
    expect(of({ spike: { over: '1w', factor: 2.5 } })).toEqual([
      { kind: 'spike', over: 168 * HOUR, factor: 2.5, min: 3 },
    ])
    const size = expect.objectContaining({ text: 'size(id)' })
    expect(of({ sum: { value: 'size(id)', over: '1h', gte: 100 } })).toEqual([
      { kind: 'sum', value: size, over: HOUR, gte: 100 },
    ])
    expect(of({ percentile: { value: 'size(id)', p: 95, over: '1h', lte: -1 } })).toEqual([
      { kind: 'percentile', value: size, p: 95, over: HOUR, lte: -1 },
    ])
    expect(of({ new: { value: 'id', within: '30d' } })).toEqual([{ kind: 'new', value, within: 720 * HOUR }])
    expect(of({ changed: { value: 'id' } })).toEqual([{ kind: 'changed', value }])
    expect(of({ sequence: { steps: ['true', 'false'], within: '1m' } })).toEqual([
      {
        kind: 'sequence',
        steps: [expect.objectContaining({ text: 'true' }), expect.objectContaining({ text: 'false' })],
        within: 60_000,
      },
    ])
  })

  it('watches the monitors of an absence by their sources, for what shows that they work', () => {
    const rule = compiled({ alert: 'A', absence: { within: '3h', of: ['mon_1', '/v1/monitors/mon_2'] } })

    expect(rule.windows).toEqual([
      { kind: 'absence', within: 3 * HOUR, of: new Set(['/v1/monitors/mon_1', '/v1/monitors/mon_2']) },
    ])
    expect(rule.types).toEqual(new Set(['monitor.event_stream', 'monitor.snapshot', 'monitor.completion']))
  })

  it('has the settings of its group, and its own before them', () => {
    const rules = compiledRules(
      defineRules({
        version: 1,
        groups: [
          {
            name: 'g',
            defaults: {
              labels: { team: 'a', severity: 'low' },
              for: '1m',
              resolve: { after: '2h' },
              on: ['error'],
            },
            rules: [
              { alert: 'A', labels: { severity: 'high' } },
              { alert: 'B', count: { over: '1h', gte: 3 }, for: 0 },
              { alert: 'C', absence: { within: '1h' } },
            ],
          },
        ],
      }),
    )
    const [a, b, c] = rules

    expect(rules.map(({ group }) => group)).toEqual(['g', 'g', 'g'])
    expect([...(a?.labels ?? [])].map(([name, { text }]) => [name, text])).toEqual([
      ['severity', 'high'],
      ['team', 'a'],
    ])
    expect(a).toMatchObject({ for: 60_000, resolve: { after: 2 * HOUR }, types: new Set(['error']) })
    expect(b).toMatchObject({ for: 0, types: new Set(['error']) })
    expect(c?.types).toContain('monitor.completion')
  })

  it('is not there where it is disabled', () => {
    const set = defineRules([PULSE, { ...COUNT, alert: 'B', enabled: false }])

    expect(set).toMatchObject({ names: ['A'], disabled: ['B'], size: 1 })
    expect(compiledRules(set)).toHaveLength(1)
  })
})

describe('the version of a rule', () => {
  const rule: Rule = { ...COUNT, key: { a: 'source', b: 'type' }, labels: { x: '1', y: '2' } }
  const version = (change: Partial<Rule> = {}) => compiled({ ...rule, ...change }).version

  // Another one would drop the state of all rules at an update of the package.
  it('is the same in each release', () => {
    expect(version()).toMatchInlineSnapshot(`"ab1a6dd6"`)
  })

  it.each<Partial<Rule>>([
    { annotations: { summary: 'x' } },
    { for: '10m' },
    { keep_firing_for: '1h' },
    { key: { b: 'type', a: 'source' } },
    { labels: { y: '2', x: '1' } },
    { count: { over: '60m', gte: 3 } },
  ])('is the same with %j', (change) => {
    expect(version(change)).toBe(version())
  })

  it.each<Partial<Rule>>([
    { on: ['error'] },
    { when: 'true' },
    { count: { over: '1h', gte: 4 } },
    { count: { over: '1h', gte: 3, when: 'true' } },
    { key: { a: 'source' } },
    { labels: { x: '1', y: '3' } },
    { resolve: { when: 'true' } },
    { lateness: '2m' },
    { backfill: 'place' },
  ])('is another one with %j', (change) => {
    expect(version(change)).not.toBe(version())
  })

  it('does not depend on the place of the rule', () => {
    const text =
      'version: 1\nrules:\n  - { alert: Z, on: [error] }\n  - { alert: A, count: { over: 1h, gte: 3 }, key: { a: source, b: type }, labels: { x: "1", y: "2" } }'

    expect(compiledRules(parseRules(text))[1]?.version).toBe(version())
  })
})
