import { defineRules } from '../../../src/rules/rule-file/load.ts'
import type { Rule } from '../../../src/rules/rule.ts'
import type { RuleSet } from '../../../src/rules/rule-set.ts'

const key = { monitor: 'source' }
const on: Rule['on'] = ['monitor.event_stream']
const ALL: Rule['on'] = ['monitor.event_stream', 'monitor.error']

/** A rule of each kind, with a number that makes it another one. */
const kinds: readonly ((n: number) => Omit<Rule, 'alert'>)[] = [
  (n) => ({ on, when: `int(data.event_id) % ${50 + n} == 0`, key, resolve: { after: '2m' } }),
  (n) => ({ on, when: `int(data.event_id) % ${200 + n} == 0`, per: 'event', resolve: { after: '5m' } }),
  (n) => ({
    on: ['monitor.error'],
    count: { over: '10m', gte: 2 + (n % 3) },
    key,
    for: '1m',
    keep_firing_for: '2m',
  }),
  (n) => ({
    on: ['monitor.error'],
    rate: { over: '10m', per: '5m', gte: 1 + (n % 2) },
    key,
    lateness: '30s',
  }),
  (n) => ({ on: ['monitor.error'], distinct: { value: 'source', over: '2m', gte: 2 + (n % 3) } }),
  (n) => ({ on: ['monitor.error'], spike: { over: `${5 + n}m`, factor: 2 }, key }),
  (n) => ({ on, avg: { value: `int(data.event_id) % ${20 + n}`, over: `${5 + n}m`, gte: 14 }, key }),
  (n) => ({
    on,
    new: { value: `int(data.event_id) % ${20 + n}`, within: '10m' },
    key,
    resolve: { after: '1m' },
  }),
  (n) => ({ on: ALL, changed: { value: 'type' }, key, resolve: { after: `${1 + n}m` } }),
  () => ({
    sequence: { steps: ["type == 'monitor.error'", "type == 'monitor.completion'"], within: '5m' },
    key,
    resolve: { after: '3m' },
  }),
  (n) => ({
    sequence: {
      steps: ["type == 'monitor.error'"],
      not_then: "type == 'monitor.completion'",
      within: `${1 + n}m`,
    },
    key,
    for: '30s',
    resolve: { after: '10m' },
  }),
  (n) => ({ absence: { on: ALL, within: `${3 + n}m` }, lateness: '10s' }),
]

/** So many rules of all kinds. */
export function rulesToKill(count: number): RuleSet {
  return defineRules(
    Array.from({ length: count }, (_, n) => ({
      alert: `Rule${n}`,
      ...kinds[n % kinds.length]?.(Math.floor(n / kinds.length)),
    })),
  )
}
