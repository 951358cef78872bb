import { describe, expect, it } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import type { AlertEvent } from '../../../src/rules/evaluate/in-memory.ts'
import type { RuleInput } from '../../../src/rules/evaluate/event-time.ts'
import { tickAt } from '../../support/ticks.ts'
import { BASE, compiled, inputOf, viewOf } from './plain-rule.ts'
import type { PlainRule } from './plain-rule.ts'

const MINUTE = 60_000
const source = '/v1/monitors/m'

/** Two events within an hour, for ten minutes. */
const busy: PlainRule = {
  when: { bit: 0 },
  windows: [{ kind: 'count', when: null, over: 60 * MINUTE, gte: 2 }],
  keyedBy: 'nothing',
  isPerEvent: false,
  reads: 'events',
  resolveWhen: null,
  after: 60 * MINUTE,
  for: 10 * MINUTE,
  keepFiringFor: 0,
  lateness: 0,
  backfill: 'ignore',
}

/** An event, so many minutes after the base. */
function event(minutes: number, bits = 1): RuleInput {
  const at = minutes * MINUTE
  const fields = { bits, key: null, value: null, values: [] }
  const rest = { source, type: 'unknown', at, recorded: at, revision: 1, backfill: 'no', fields } as const
  return inputOf({ id: `e${minutes}`, ...rest })
}

/** A tick at which everything has come, or at which time goes on without what is still to come. */
function tick(minutes: number, complete = true): RuleInput {
  const at = BASE + minutes * MINUTE
  return { ...tickAt(at, at, complete), recorded: at }
}

const without = (minutes: number) => tick(minutes, false)

/** What becomes of the alert, with its minutes. */
function alertsOf(entries: readonly RuleInput[], rule: Partial<PlainRule> = {}): readonly string[] {
  const driver = new InMemoryRules([compiled({ ...busy, ...rule })], viewOf)
  return entries.flatMap((entry) => driver.next(entry)).map(textOf)
}

function textOf({ type, data }: AlertEvent): string {
  const since = 'since' in data ? (Date.parse(data.since) - BASE) / MINUTE : ''
  return `${type.slice(6)} ${'reason' in data ? `${data.reason} ` : ''}${since}`.trim()
}

/** It is pending from minute 2 on. */
const begun = [event(1), event(2), tick(3)]

describe('time that is not complete', () => {
  it('makes an alert unknown whose `for` ends then, which begins again when time is complete', () => {
    expect(alertsOf([...begun, tick(12)])).toEqual(['pending 2', 'firing 2'])
    const unknown = ['pending 2', 'unknown incomplete 12', 'inactive 2']
    expect(alertsOf([...begun, without(12), without(14), without(30)])).toEqual(unknown)
    const again = [...begun, without(12), without(14), tick(20)]
    expect(alertsOf(again)).toEqual([...unknown, 'pending 15', 'known'])
    expect(alertsOf([...again, tick(24)])).toEqual([...unknown, 'pending 15', 'known'])
    expect(alertsOf([...again, tick(25)])).toEqual([...unknown, 'pending 15', 'known', 'firing 15'])
  })

  it('is over for an alert whose condition no longer holds', () => {
    const entries = [...begun, without(12), without(70), tick(80)]
    expect(alertsOf(entries)).toEqual(['pending 2', 'unknown incomplete 12', 'inactive 2', 'known'])
  })

  it('does not end an alert that fires, since what would prolong it may be missing', () => {
    const fires = ['pending 2', 'firing 2']
    expect(alertsOf([...begun, tick(12), tick(61)])).toEqual([...fires, 'resolved condition 2'])
    const later = [...begun, tick(12), without(61), without(90)]
    expect(alertsOf(later)).toEqual([...fires, 'unknown incomplete 61'])
    expect(alertsOf([...later, tick(95)])).toEqual([
      ...fires,
      'unknown incomplete 61',
      'resolved condition 2',
      'known',
    ])
  })

  it('does not stop a rule without `for`, which fires with the events that are there', () => {
    expect(alertsOf([event(1), without(1), event(2), without(3)], { for: 0 })).toEqual(['firing 2'])
    const resolveWhen = { bit: 1 }
    expect(
      alertsOf([event(1), without(1), event(2), event(3, 2), without(4)], { for: 0, resolveWhen }),
    ).toEqual(['firing 2', 'resolved condition 2'])
  })

  it('makes a sequence unknown that waits for `not_then`, and gives it up', () => {
    const rule: Partial<PlainRule> = {
      when: null,
      windows: [{ kind: 'sequence', steps: [{ bit: 0 }], notThen: { bit: 1 }, within: 5 * MINUTE }],
      for: 0,
    }
    expect(alertsOf([event(1), tick(6)], rule)).toEqual(['firing 6'])
    expect(alertsOf([event(1), without(6), without(8), tick(10)], rule)).toEqual([
      'unknown incomplete 6',
      'known',
    ])
    // The next one is decided by what comes.
    const next = [event(1), without(6), event(7), tick(12)]
    expect(alertsOf(next, rule)).toEqual(['unknown incomplete 6', 'known', 'firing 12'])
  })

  it('makes absence unknown, which fires from when the source was silent when time is complete', () => {
    const rule: Partial<PlainRule> = {
      when: null,
      windows: [{ kind: 'absence', within: 5 * MINUTE, of: new Set([source]) }],
      for: 0,
    }
    const unknown = [event(1), tick(2), without(6), without(30)]
    expect(alertsOf(unknown, rule)).toEqual(['unknown incomplete 6'])
    expect(alertsOf([...unknown, tick(31)], rule)).toEqual(['unknown incomplete 6', 'firing 6', 'known'])
    expect(alertsOf([...unknown, event(31), tick(32)], rule)).toEqual(['unknown incomplete 6', 'known'])
  })

  it('leaves nothing behind', () => {
    const driver = new InMemoryRules([compiled(busy)], viewOf)
    for (const entry of [...begun, without(12), tick(90)]) driver.next(entry)
    expect([driver.states.size, driver.nextDue]).toEqual([0, undefined])
  })
})
