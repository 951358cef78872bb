import { deepStrictEqual } from 'node:assert/strict'
import type { ResearchEvent } from 'rivulet'
import { defineRules } from 'rivulet/rules'
import type { Rule } from 'rivulet/rules'
import { viewOf } from '../../src/rules/cel/index.ts'
import { InMemoryRules } from '../../src/rules/evaluate/in-memory.ts'
import type { AlertEvent } from '../../src/rules/evaluate/in-memory.ts'
import { compiledRules } from '../../src/rules/rule-set.ts'
import { RulesByHand } from '../by-hand/rules.ts'
import type { CountAlert, CountRule } from '../by-hand/rules.ts'
import { detection } from '../filled-log.ts'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure, Result, Target } from '../figure.ts'
import { alternately, perProcessorSecond } from '../rounds.ts'

const EVENTS = 50_000
/** The number of rules that read the type of the events. */
const MATCHING = 10
const KEYS = 10_000

/**
 * - `rules-100`, `rules-1000`: events per second through so many rules in memory, of which 10 read the events' type, against a bare loop that
 *   evaluates the same 10 conditions. One event in 100 matches. It is processor time.
 * - `rules-matching`: the same with 100 rules, where one event in 10 matches; `rules-all`: where each does.
 * - `rules-by-hand`: the same as `rules-all`, with alerts that fire and end, against the same rules as TypeScript functions.
 * - `rules-memory-{window}`: bytes of the heap for each key of a rule with this window, three events a key.
 */
export const measure: Measure = async () => [
  await speed('rules-100', 100, 0.01, { atLeast: 0.5 }),
  await speed('rules-1000', 1_000, 0.01, { atLeast: 0.5 }),
  await speed('rules-matching', 100, 0.1, { atLeast: 0.5 }),
  await speed('rules-all', 100, 1),
  await byHand(),
  ...memory(),
]

/** @param share Of the events that match one of the rules. */
async function speed(name: string, count: number, share: number, target?: Target): Promise<Result> {
  const rules = compiledRules(
    defineRules(Array.from({ length: count }, (_, number) => ruleOf(number, share))),
  )
  const matching = rules.filter(({ types }) => types?.has('monitor.event_stream'))
  expectCount(matching.length, MATCHING)
  const events = detections(EVENTS)
  const ours = () => {
    const driver = new InMemoryRules(rules, viewOf)
    return perProcessorSecond(EVENTS, () => {
      for (const event of events) driver.arrive(event)
    })
  }
  const theirs = () =>
    perProcessorSecond(EVENTS, () => {
      let matches = 0
      for (const event of events) {
        const view = viewOf(event)
        for (const { when } of matching) if (when?.evaluate(view) === true) matches++
      }
      expectCount(matches, EVENTS * share)
    })
  const { ratio, ...details } = await alternately(ours, theirs, { rounds: 5, warmUp: 1 })
  return result(name, ratio, target, { ...details, unit: 'events/s' })
}

/** Fires in each burst of events, and ends after it. */
const FEWER = 500
/** Number of events in a burst, and the pause after it in ms. */
const BURST = 5_000
const PAUSE = 2 * 60_000

async function byHand(): Promise<Result> {
  const rules = Array.from({ length: 100 }, (_, number) => ruleOf(number, 1, FEWER))
  const compiled = compiledRules(defineRules(rules))
  const written = rules.map((rule, number): CountRule => {
    const ending = endingOf(number, 1)
    const matches = ({ id }: ResearchEvent) => id.endsWith(ending)
    return { name: rule.alert, type: typeOf(number), matches, over: 60_000, gte: FEWER }
  })
  const events = detections(EVENTS, PAUSE)
  let alerts: readonly AlertEvent[] = []
  let alertsByHand: readonly CountAlert[] = []
  const ours = () => {
    const driver = new InMemoryRules(compiled, viewOf)
    const emitted: AlertEvent[] = []
    alerts = emitted
    return perProcessorSecond(EVENTS, () => {
      for (const event of events) emitted.push(...driver.arrive(event))
    })
  }
  const theirs = () => {
    const emitted: CountAlert[] = []
    alertsByHand = emitted
    const driver = new RulesByHand(written, (alert) => emitted.push(alert))
    return perProcessorSecond(EVENTS, () => {
      for (const event of events) driver.next(event)
    })
  }
  const { ratio, ...details } = await alternately(ours, theirs, { rounds: 5, warmUp: 1 })
  expectCount(alertsByHand.length, (2 * EVENTS) / BURST - 1, 'alerts')
  deepStrictEqual(alerts.map(asCounted), alertsByHand)
  return result('rules-by-hand', ratio, undefined, { ...details, unit: 'events/s' })
}

function asCounted(alert: AlertEvent): CountAlert {
  if (alert.type !== 'alert.firing' && alert.type !== 'alert.resolved') throw new Error(alert.type)
  const { alert: rule, since, value, events } = alert.data
  return { type: alert.type, rule, since: Date.parse(since), value: Number(value), events }
}

/** The first ten rules read the events, and the first one of them matches some. */
function ruleOf(number: number, share: number, gte = 1_000): Rule {
  return {
    alert: `Rule${number}`,
    on: [typeOf(number)],
    when: `id.endsWith('${endingOf(number, share)}')`,
    count: { over: '1m', gte },
    lateness: 0,
  }
}

function typeOf(number: number): 'monitor.event_stream' | 'monitor.error' {
  return number < MATCHING ? 'monitor.event_stream' : 'monitor.error'
}

/** What the ids of the events end with that the rule matches. */
function endingOf(number: number, share: number): string {
  return number === 0 ? '0'.repeat(Math.round(-Math.log10(share))) : `#${number}`
}

function memory(): readonly Result[] {
  const windows: Readonly<Record<string, Partial<Rule>>> = {
    match: { resolve: { after: '30d' } },
    count: { count: { over: '30d', gte: 1_000 } },
    rate: { rate: { over: '30d', per: '30d', gte: 1_000 } },
    distinct: { distinct: { value: 'id', over: '30d', gte: 1_000 } },
    spike: { spike: { over: '30d', factor: 1_000 } },
    new: { new: { value: 'id', within: '30d' } },
    changed: { changed: { value: 'source' } },
    sequence: { sequence: { steps: ["id != 'x'", "id == 'y'"], within: '30d' } },
  }
  return Object.entries(windows).map(([kind, window]) => {
    const rule: Rule = {
      alert: 'R',
      on: ['monitor.event_stream'],
      key: { monitor: 'source' },
      lateness: 0,
      ...window,
    }
    const rules = compiledRules(defineRules([rule]))
    const before = heap()
    const driver = new InMemoryRules(rules, viewOf)
    for (let number = 0; number < 3 * KEYS; number++)
      driver.arrive(eventOf(number, `monitor_${number % KEYS}`))
    const bytes = (heap() - before) / KEYS
    expectCount(driver.states.size, KEYS)
    return result(`rules-memory-${kind}`, bytes, { atMost: 4_096 }, { unit: 'bytes/key' })
  })
}

/** One event in each 100 ms, with a pause of so many ms after each burst. */
function detections(count: number, pause = 0): readonly ResearchEvent[] {
  return Array.from({ length: count }, (_, number) =>
    eventOf(number + 1, `monitor_${number % 100}`, Math.floor(number / BURST) * pause),
  )
}

function eventOf(number: number, monitor: string, delay = 0): ResearchEvent {
  return { ...detection(number, monitor), received: new Date(number * 100 + delay).toISOString() }
}

function heap(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
