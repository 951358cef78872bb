import { describe, expect, it } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import type { AlertEvent } from '../../../src/rules/evaluate/in-memory.ts'
import type { RuleInput } from '../../../src/rules/evaluate/event-time.ts'
import type { CompiledRule } from '../../../src/rules/compiled-rule.ts'
import { tickAt } from '../../support/ticks.ts'
import { BASE, compiled, expression, inputOf, viewOf } from './plain-rule.ts'
import type { PlainRule } from './plain-rule.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const M = '/v1/monitors/m'
const N = '/v1/monitors/n'

/** Two events within an hour, for ten minutes. */
const busy: PlainRule = {
  when: { bit: 0 },
  windows: [{ kind: 'count', when: null, over: HOUR, gte: 2 }],
  keyedBy: 'nothing',
  isPerEvent: false,
  reads: 'events',
  resolveWhen: null,
  after: HOUR,
  for: 10 * MINUTE,
  keepFiringFor: 0,
  lateness: 0,
  backfill: 'ignore',
}

/** One event, then no event of another kind for five minutes. */
const alone: Partial<PlainRule> = {
  when: null,
  windows: [{ kind: 'sequence', steps: [{ bit: 0 }], notThen: { bit: 1 }, within: 5 * MINUTE }],
  for: 0,
}

/** An event of a source, so many minutes after the base. */
function event(minutes: number, { bits = 1, source = M, recorded = minutes } = {}): RuleInput {
  const fields = { bits, key: source, value: null, values: [] }
  const rest = { source, type: 'unknown', revision: 1, backfill: 'no', fields } as const
  return inputOf({ ...rest, id: `e${minutes}`, at: minutes * MINUTE, recorded: recorded * MINUTE })
}

function gap(minutes: number, source = M): RuleInput {
  const at = minutes * MINUTE
  const fields = { bits: 0, key: source, value: null, values: [] }
  const rest = { source, type: 'stream.gap', revision: 1, backfill: 'no', fields } as const
  return inputOf({ ...rest, id: `gap ${minutes}`, at, recorded: at })
}

function tick(minutes: number, complete = true): RuleInput {
  const at = BASE + minutes * MINUTE
  return { ...tickAt(at, at, complete), recorded: at }
}

const source = expression('source', ({ key }) => key ?? undefined)

/** A rule whose key is the source. */
function bySource(rule: Partial<PlainRule>): CompiledRule {
  return { ...compiled({ ...busy, ...rule }), key: [{ name: 'source', value: source }] }
}

/** What becomes of the alerts, with the minutes at which they began. */
function alertsOf(entries: readonly RuleInput[], rule: Partial<PlainRule> | CompiledRule = {}) {
  const driver = new InMemoryRules(['name' in rule ? rule : bySource(rule)], viewOf)
  return entries.flatMap((entry) => driver.next(entry)).map(textOf)
}

function textOf({ type, data }: AlertEvent): string {
  const words = [type.slice(6)]
  if ('reason' in data) words.push(data.reason)
  if ('since' in data) words.push(String((Date.parse(data.since) - BASE) / MINUTE))
  if ('complete' in data && !data.complete) words.push('incomplete')
  return words.join(' ')
}

/** It is pending from minute 2 on. */
const begun = [event(1), event(2), tick(3)]

describe('a gap of the source', () => {
  it('begins the `for` of a pending alert again, which stays the same alert', () => {
    expect(alertsOf([...begun, gap(5), tick(12), tick(14)])).toEqual(['pending 2'])
    expect(alertsOf([...begun, gap(5), tick(15)])).toEqual(['pending 2', 'firing 2 incomplete'])
    expect(alertsOf([...begun, gap(5), gap(9), tick(18), tick(19)])).toEqual([
      'pending 2',
      'firing 2 incomplete',
    ])
    expect(alertsOf([...begun, gap(5), tick(18)].concat(gap(20)))).toEqual([
      'pending 2',
      'firing 2 incomplete',
    ])
  })

  it('begins `for` again for an event of before that is still to be applied', () => {
    expect(alertsOf([event(1), event(2), gap(5), tick(3), tick(14)])).toEqual(['pending 2 incomplete'])
    const later = [event(1), event(2), gap(5), tick(3), tick(15)]
    expect(alertsOf(later)).toEqual(['pending 2 incomplete', 'firing 2 incomplete'])
  })

  it('does not end an alert that fires, whose end says what its beginning said', () => {
    const entries = [...begun, tick(12), gap(20), tick(61)]
    expect(alertsOf(entries)).toEqual(['pending 2', 'firing 2', 'resolved condition 2'])
    expect(alertsOf([...begun, gap(5), tick(15), tick(61)])).toEqual([
      'pending 2',
      'firing 2 incomplete',
      'resolved condition 2 incomplete',
    ])
  })

  it('makes the windows incomplete that reach over it, and no others', () => {
    const pairs = (first: number) => [gap(5), event(first), event(first + 1), tick(first + 2)]
    expect(alertsOf(pairs(6), { for: 0 })).toEqual(['firing 7 incomplete'])
    expect(alertsOf(pairs(63), { for: 0 })).toEqual(['firing 64 incomplete'])
    expect(alertsOf(pairs(64), { for: 0 })).toEqual(['firing 65'])
    const windows: PlainRule['windows'] = [{ kind: 'spike', when: null, over: HOUR, factor: 2, min: 2 }]
    expect(alertsOf(pairs(100), { for: 0, windows })).toEqual(['firing 101 incomplete'])
    expect(alertsOf(pairs(125), { for: 0, windows })).toEqual(['firing 126'])
  })

  it('counts as it is recorded, with events that wait', () => {
    const lateness = 2 * MINUTE
    const entries = [event(1), event(2), gap(3), tick(20)]
    expect(alertsOf(entries, { for: 0, lateness })).toEqual(['firing 2 incomplete'])
    expect(alertsOf([event(1), event(2), tick(5), gap(6), tick(20)], { for: 0, lateness })).toEqual([
      'firing 2',
    ])
  })

  it('makes a sequence unknown that waits for `not_then`, until what comes is evaluated', () => {
    const waits = [event(1), tick(2), gap(3)]
    expect(alertsOf(waits, alone)).toEqual(['unknown gap 3'])
    expect(alertsOf([...waits, tick(10)], alone)).toEqual(['unknown gap 3', 'known'])
    expect(alertsOf([...waits, event(3.5), tick(3.6)], alone)).toEqual(['unknown gap 3', 'known'])
    const next = [...waits, event(7), tick(12)]
    expect(alertsOf(next, alone)).toEqual(['unknown gap 3', 'known', 'firing 12 incomplete'])
  })

  it('makes a sequence unknown that was complete before the gap and is applied after it', () => {
    expect(alertsOf([event(1), event(2), gap(3), tick(10)], { ...alone, lateness: MINUTE })).toEqual([
      'unknown gap 3',
      'known',
    ])
  })

  it('begins the `for` of a sequence again when it is known', () => {
    const rule = { ...alone, for: 2 * MINUTE, lateness: 10 * MINUTE }
    // One is pending since minute 6. Another one waits for `not_then`, and an event of before the gap is evaluated after it.
    const entries = [event(1), event(6.5), event(7.5, { bits: 2 }), tick(17), gap(18), tick(18)]
    const unknown = ['pending 6', 'unknown gap 18', 'inactive 6']
    expect(alertsOf(entries, rule)).toEqual(unknown)
    expect(alertsOf([...entries, tick(30)], rule)).toEqual([...unknown, 'pending 19 incomplete', 'known'])
    expect(alertsOf([...entries, tick(30), tick(31)], rule).at(-1)).toBe('firing 19 incomplete')
  })

  it('stays unknown while time is not complete', () => {
    const entries = [event(1), tick(2), gap(3), tick(10, false), tick(20, false)]
    expect(alertsOf(entries, alone)).toEqual(['unknown gap 3'])
    expect(alertsOf([...entries, tick(30)], alone)).toEqual(['unknown gap 3', 'known'])
  })

  it('stays unknown until the last gap', () => {
    const entries = [event(1), tick(2), gap(3), gap(10), tick(9)]
    expect(alertsOf(entries, alone)).toEqual(['unknown gap 3'])
    expect(alertsOf([...entries, tick(12)], alone)).toEqual(['unknown gap 3', 'known'])
    const fires = [...begun, tick(12), gap(80), tick(61, false), tick(70)]
    const unknown = ['pending 2', 'firing 2', 'unknown incomplete 61', 'resolved condition 2']
    expect(alertsOf(fires)).toEqual(unknown)
    expect(alertsOf([...fires, tick(90)])).toEqual([...unknown, 'known'])
  })

  it('does not concern another source, nor a rule with another key', () => {
    const fires = ['pending 2', 'firing 2']
    expect(alertsOf([...begun, gap(5, N), tick(12)])).toEqual(fires)
    expect(alertsOf([...begun, gap(5), tick(12)], compiled({ ...busy }))).toEqual(fires)
    const both = bySource({})
    const key = [...both.key, { name: 'other', value: source }]
    expect(alertsOf([...begun, gap(5), tick(12)], { ...both, key })).toEqual(fires)
    const driver = new InMemoryRules([{ ...both, key }], viewOf)
    driver.next(gap(2))
    expect(driver.states.size).toBe(0)
  })

  it('does not concern a rule about gaps, nor one without a window and `for`', () => {
    const rule = bySource({})
    const types = new Set(['unknown', 'stream.gap'])
    expect(alertsOf([...begun, gap(5), tick(12)], { ...rule, types })).toEqual(['pending 2', 'firing 2'])
    const each: Partial<PlainRule> = { windows: [], for: 0 }
    expect(alertsOf([gap(2), event(3), tick(4)], each)).toEqual(['firing 3'])
    const driver = new InMemoryRules([bySource(each)], viewOf)
    driver.next(gap(2))
    expect(driver.states.size).toBe(0)
  })

  it('begins `for` again for a rule without a window', () => {
    const rule: Partial<PlainRule> = { windows: [] }
    expect(alertsOf([event(1), tick(2), gap(5), tick(14)], rule)).toEqual(['pending 1'])
    expect(alertsOf([event(1), tick(2), gap(5), tick(15)], rule)).toEqual(['pending 1', 'firing 1'])
  })

  it('leaves nothing behind', () => {
    for (const rule of [{}, { for: 2 * HOUR }, alone, { windows: [] }]) {
      const driver = new InMemoryRules([bySource(rule)], viewOf)
      for (const entry of [gap(1), event(1), gap(3, N), tick(4), gap(5), tick(90), tick(180)])
        driver.next(entry)
      expect([driver.states.size, driver.nextDue]).toEqual([0, undefined])
    }
  })
})

describe('an alert that fires while time is not complete', () => {
  it('says so', () => {
    const entries = [event(1), tick(1, false), event(2), tick(3, false)]
    expect(alertsOf(entries, { for: 0 })).toEqual(['firing 2 incomplete'])
    expect(alertsOf([...entries, tick(80)], { for: 0 })).toEqual([
      'firing 2 incomplete',
      'resolved condition 2 incomplete',
    ])
    expect(alertsOf([...begun, tick(12)])).toEqual(['pending 2', 'firing 2'])
  })

  it('does not say so without a window, since no other event matters', () => {
    expect(alertsOf([tick(1, false), event(2)], { windows: [], for: 0 })).toEqual(['firing 2'])
  })
})
