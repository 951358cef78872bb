import type { ResearchEvent } from 'rivulet'
import { defineRules } from 'rivulet/rules'
import type { Rule } from 'rivulet/rules'
import { viewOf } from '../../src/rules/cel/index.ts'
import { InMemoryRules } from '../../src/rules/evaluate/in-memory.ts'
import { compiledRules } from '../../src/rules/rule-set.ts'
import { detection } from '../filled-log.ts'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure, Result } from '../figure.ts'
import { alternately } from '../rounds.ts'

const EVENTS = 50_000
/** The number of rules that read the type of the events. */
const MATCHING = 10
const KEYS = 10_000

/**
 * - `rules-100`, `rules-1000`: events per second through so many rules in memory, of which 10 read the events' type, against a bare loop that
 *   evaluates the same 10 conditions. One event in 100 matches. It is processor time.
 * - `rules-matching`: the same with 100 rules, where one event in 10 matches; `rules-all`: where each does.
 * - `rules-memory-{window}`: bytes of the heap for each key of a rule with this window, three events a key.
 */
export const measure: Measure = async () => [
  await speed('rules-100', 100, 0.01),
  await speed('rules-1000', 1_000, 0.01),
  await speed('rules-matching', 100, 0.1),
  await speed('rules-all', 100, 1),
  ...memory(),
]

/** @param share Of the events that match one of the rules. */
async function speed(name: string, count: number, share: number): Promise<Result> {
  const rules = compiledRules(
    defineRules(Array.from({ length: count }, (_, number) => ruleOf(number, share))),
  )
  const matching = rules.filter(({ types }) => types?.has('monitor.event_stream'))
  expectCount(matching.length, MATCHING)
  const events = detections(EVENTS)
  const ours = () => {
    const driver = new InMemoryRules(rules, viewOf)
    return rate(() => {
      for (const event of events) driver.next(event)
    })
  }
  const theirs = () =>
    rate(() => {
      let matches = 0
      for (const event of events) {
        const view = viewOf(event)
        for (const { when } of matching) if (when?.evaluate(view) === true) matches++
      }
      expectCount(matches, EVENTS * share)
    })
  const { ratio, ...details } = await alternately(ours, theirs, { rounds: 5, warmUp: 1 })
  return result(name, ratio, { atLeast: 0.5 }, { ...details, unit: 'events/s' })
}

/** The first ten rules read the events, and the first one of them matches some. */
function ruleOf(number: number, share: number): Rule {
  const ending = '0'.repeat(Math.round(-Math.log10(share)))
  const isRead = number < MATCHING
  return {
    alert: `Rule${number}`,
    on: [isRead ? 'monitor.event_stream' : 'monitor.error'],
    when: `id.endsWith('${number === 0 ? ending : `#${number}`}')`,
    count: { over: '1m', gte: 1_000 },
    lateness: 0,
  }
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
    for (let number = 0; number < 3 * KEYS; number++) driver.next(eventOf(number, `monitor_${number % KEYS}`))
    const bytes = (heap() - before) / KEYS
    expectCount(driver.states.size, KEYS)
    return result(`rules-memory-${kind}`, bytes, { atMost: 4_096 }, { unit: 'bytes/key' })
  })
}

function detections(count: number): readonly ResearchEvent[] {
  return Array.from({ length: count }, (_, number) => eventOf(number + 1, `monitor_${number % 100}`))
}

/** One event in each 100 ms. */
function eventOf(number: number, monitor: string): ResearchEvent {
  return { ...detection(number, monitor), received: new Date(number * 100).toISOString() }
}

/** Events per second of processor time. */
function rate(work: () => void): number {
  const began = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(began)
  return EVENTS / ((user + system) / 1e6)
}

function heap(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
