import { describe, expect, it } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import { RestartedRules, transitionsOf } from './equivalence.ts'
import { BASE, compiled, countRule, inputOf, viewOf } from './plain-rule.ts'
import type { PlainRule, Sample } from './plain-rule.ts'
import { reference } from './reference.ts'
import type { Transition } from './reference.ts'
import type { RuleInput } from '../../../src/rules/evaluate/event-time.ts'

const burst = countRule(5, 4)

/** How many events a source has that catches up. */
const BACKLOG = 700

/** When both sources have caught up. */
const CAUGHT_UP = 3_000

/** The events of one key that two sources catch up one after the other: the first has every other one, the second those between. */
const backlogs: readonly Sample[] = ['/even', '/odd'].flatMap((source, odd) =>
  Array.from({ length: BACKLOG }, (_, index): Sample => {
    const number = 2 * index + odd
    // A silence after each ten events, so that the alert begins and ends again.
    const at = number + 10 * Math.floor(number / 10)
    const fields = { bits: 1, key: 'a', value: null, values: [] }
    return {
      id: `e${number}`,
      source,
      type: 'unknown',
      at,
      recorded: CAUGHT_UP,
      revision: 1,
      backfill: 'no',
      fields,
    }
  }),
)

/** The alerts of the definitions. */
function expected(rule: PlainRule): readonly Transition[] {
  const moments = backlogs.map((sample) => ({ recorded: CAUGHT_UP, sample }))
  return reference(rule, moments, 4 * BACKLOG).map((each) => Object.assign(each, { key: '{"key":"a"}' }))
}

describe.each([
  ['in memory', InMemoryRules],
  ['as JSON', RestartedRules],
])('events that wait until none can come before them, %s,', (_, Engine) => {
  it('are in order after two backlogs of a key within the lateness', () => {
    const rule = { ...burst, lateness: 2 * CAUGHT_UP }
    const rules = new Engine([compiled(rule)], viewOf)
    const output = backlogs.flatMap((sample) => rules.arrive(inputOf(sample)))
    output.push(...rules.tick(BASE + 4 * CAUGHT_UP))
    expect(transitionsOf(output)).toEqual(expected(rule))
  })

  it('are in order after two backlogs of a key that event time has waited for', () => {
    const rules = new Engine([compiled(burst)], viewOf)
    const output = [tick(0, 0), ...backlogs.map(inputOf), tick(CAUGHT_UP, CAUGHT_UP + 2)].flatMap((entry) =>
      rules.next(entry),
    )
    expect(transitionsOf(output)).toEqual(expected(burst))
  })
})

/** The tick of a log whose entries are complete up to a time. */
function tick(through: number, recorded: number): RuleInput {
  const at = new Date(BASE + recorded).toISOString()
  return {
    id: `tick${recorded}`,
    source: '/log',
    type: 'log.tick',
    time: at,
    received: at,
    recorded: BASE + recorded,
    via: 'log',
    data: { at, through: new Date(BASE + through).toISOString(), complete: true },
  }
}
