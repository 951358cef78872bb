import { setImmediate as turn } from 'node:timers/promises'
import {
  asyncProperty,
  assert,
  array,
  boolean,
  constantFrom,
  integer,
  oneof,
  record,
  tuple,
} from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gapEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import { liveEvent, lostEvent } from '../../../src/protocol/log-event.ts'
import { viewOf } from '../../../src/rules/cel/index.ts'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import { defineRules } from '../../../src/rules/rule-file/load.ts'
import { compiledRules } from '../../../src/rules/rule-set.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import type { RunningRules } from '../../../src/rules/run/run-rules.ts'
import type { Rule } from '../../../src/rules/rule.ts'
import { append } from '../../log/append.ts'
import { readAll } from '../../log/conformance/fixture.ts'
import { change, fullRun, bareRun } from '../../operators/events.ts'
import { tickAt } from '../../support/ticks.ts'
import { BEGIN, MINUTE } from './rule-log.ts'
import { simulatedStore } from '../../../src/log/memory/store.ts'

const M = '/v1/monitors/m'
const key = { monitor: 'source' }
const detections: Rule['on'] = ['monitor.event_stream']

const EVENT_NUMBER = 'int(data.event_id.substring(1))'

/** A rule of each kind. */
const RULES: readonly Rule[] = [
  { alert: 'Plain', on: detections, when: "data.event_id > 'e5'", key, for: '5m', resolve: { after: '20m' } },
  { alert: 'Each', on: detections, per: 'event', resolve: { after: '10m' } },
  { alert: 'Count', on: detections, count: { over: '10m', gte: 2 }, key, keep_firing_for: '5m' },
  { alert: 'Rate', on: detections, rate: { over: '20m', per: '10m', gte: 1 }, key, lateness: 0 },
  {
    alert: 'Distinct',
    on: detections,
    distinct: { value: 'data.event_id', over: '15m', gte: 2 },
    lateness: '3m',
  },
  { alert: 'Spike', on: detections, spike: { over: '10m', factor: 2 }, key },
  { alert: 'Sum', on: detections, sum: { value: EVENT_NUMBER, over: '15m', gte: 12 }, key },
  {
    alert: 'Median',
    on: detections,
    percentile: { value: EVENT_NUMBER, p: 50, over: '20m', gte: 3, lte: 6 },
    lateness: '3m',
  },
  { alert: 'New', on: detections, new: { value: 'data.event_id', within: '30m' }, resolve: { after: '10m' } },
  { alert: 'Changed', on: detections, changed: { value: 'data.event_id' }, key, resolve: { after: '7m' } },
  { alert: 'Quiet', absence: { on: detections, within: '15m' } },
  {
    alert: 'Sequence',
    sequence: {
      steps: ["type == 'monitor.event_stream'", "type == 'task_run.state'"],
      not_then: "type == 'monitor.event_stream'",
      within: '10m',
    },
    resolve: { after: '5m' },
  },
  {
    alert: 'Alone',
    sequence: { steps: ["data.event_id > 'e3'"], not_then: "data.event_id < 'e3'", within: '10m' },
    key,
    for: '2m',
    resolve: { after: '30m' },
  },
  { alert: 'Run', on: ['task_run.state'], when: 'has(data.output)', resolve: { after: '10m' } },
]

/** Minutes that pass, then what is recorded, and how many minutes ago it was. */
interface Step {
  readonly pass: number
  readonly ago: number
  readonly event: ResearchEvent
  /** Whether a tick follows. */
  readonly isTick: boolean
  readonly next: 'nothing' | 'restart' | 'reload' | 'crash'
}

const evidence = (type: 'source.lost' | 'source.live', id: number): ResearchEvent =>
  type === 'source.live'
    ? liveEvent(M, `${id}`, undefined, BEGIN)
    : lostEvent(M, `${id}`, 'unreachable', BEGIN)

const gap = (monitor: string, id: number): ResearchEvent =>
  gapEvent(`/v1/monitors/${monitor}`, { from: null, to: null, reason: 'expired' }, 'poll', `${id}`, BEGIN)

const event = oneof(
  {
    weight: 6,
    arbitrary: tuple(integer({ min: 1, max: 9 }), constantFrom('m', 'n')).map(([n, m]) => change(`e${n}`, m)),
  },
  { weight: 2, arbitrary: integer({ min: 1, max: 4 }).map((n) => fullRun(`r${n}`)) },
  { weight: 2, arbitrary: integer({ min: 1, max: 4 }).map((n) => bareRun(`r${n}`)) },
  {
    weight: 1,
    arbitrary: tuple(constantFrom('source.lost', 'source.live'), integer()).map(([type, n]) =>
      evidence(type, n),
    ),
  },
  {
    weight: 1,
    arbitrary: tuple(constantFrom('m', 'n'), integer()).map(([monitor, n]) => gap(monitor, n)),
  },
)

const steps = array(
  record<Step>({
    pass: oneof(integer({ min: 0, max: 3 }), integer({ min: 0, max: 40 })),
    ago: oneof({ weight: 3, arbitrary: constantFrom(0) }, integer({ min: 0, max: 5 })),
    event,
    isTick: boolean(),
    next: constantFrom('nothing', 'nothing', 'nothing', 'restart', 'reload', 'crash'),
  }),
  { minLength: 1, maxLength: 40 },
)

const shown = ({ type, source, time, data }: ResearchEvent) => ({ type, source, time, data })

/** The alerts of the rules over these entries, without a log. */
function expected(entries: readonly Entry[]) {
  const rules = new InMemoryRules(compiledRules(defineRules(RULES)), viewOf)
  return entries.filter(({ via }) => via !== 'process').flatMap((entry) => rules.next(entry).map(shown))
}

describe('rules over a log', () => {
  it('append what they would emit in memory, however often they are stopped, reloaded or crash', async () => {
    let transitions = 0
    await assert(
      asyncProperty(steps, integer({ min: 1, max: 6 }), async (given, crash) => {
        const clock = { now: BEGIN }
        const store = simulatedStore({ clock: () => clock.now })
        const logs: EventLog[] = []
        const start = async (faults?: () => void) => {
          const connection = store.connect(faults === undefined ? {} : { faults })
          const log = await openLog(connection)
          logs.push(log)
          const running = runRules(log, defineRules(RULES), { startAt: 'start' })
          running.done.catch(() => {})
          return { running, connection }
        }
        const caughtUp = async (running: RunningRules) => {
          const over = new AbortController()
          const end = () => over.abort()
          running.done.then(end, end)
          while (!over.signal.aborted) {
            const reader = await store.reader('process:rules')
            if (reader?.cursor === (await store.positionAt('end'))) return
            await turn()
          }
        }
        let { running } = await start()
        for (const { pass, ago, event: happened, isTick, next } of given) {
          clock.now += pass * MINUTE
          const time = new Date(clock.now - ago * MINUTE).toISOString()
          const received = new Date(clock.now).toISOString()
          await append(store, [{ ...happened, time, received } satisfies ResearchEvent])
          if (isTick) await append(store, [tickAt(clock.now)])
          if (next === 'restart') {
            await running.stop()
            ;({ running } = await start())
          } else if (next === 'reload') await running.reload(defineRules(RULES))
          else if (next === 'crash') {
            await running.stop()
            let writes = 0
            const crashing = await start(() => {
              if ((writes += 1) >= crash) throw new Error('crashed')
            })
            await caughtUp(crashing.running)
            crashing.connection.loseClaims()
            await crashing.running.stop().catch(() => {})
            ;({ running } = await start())
          }
        }
        await caughtUp(running)
        await running.stop()
        const entries = await readAll(store)
        const alerts = entries.filter(({ via }) => via === 'process').map(shown)
        expect(alerts).toEqual(expected(entries))
        expect(await logs[0]?.deadLetters({ process: 'rules' }).count()).toBe(0)
        transitions += alerts.length
        await Promise.all(logs.map((log) => log.close().catch(() => {})))
      }),
      { numRuns: 40 },
    )
    expect(transitions).toBeGreaterThan(100)
  })
})
