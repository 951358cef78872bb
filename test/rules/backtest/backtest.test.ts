import { setImmediate as turn } from 'node:timers/promises'
import { monitorEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { backtest, defineRules, runRules } from 'rivulet/rules'
import type { AlertEvent, RuleInput } from 'rivulet/rules'
import { from } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { append } from '../../log/append.ts'
import { readAll } from '../../log/conformance/fixture.ts'
import { tickAt } from '../../support/ticks.ts'

const BEGIN = Date.UTC(2026, 0, 1)
const MINUTE = 60_000

function found(id: string, at: number, monitor = 'm'): ResearchEvent {
  const wire = { event_type: 'event_stream', event_id: id, event_group_id: id, event_date: null, output: {} }
  return monitorEvent(monitor, wire, 'poll', at)
}

function completion(at: number, monitor = 'm'): ResearchEvent {
  const wire = { event_type: 'completion', timestamp: new Date(at).toISOString() }
  return monitorEvent(monitor, wire, 'poll', at)
}

/** The monitor cannot be reached, or can again. */
function reached(at: number, isLost: boolean): ResearchEvent {
  const time = new Date(at).toISOString()
  const rest = { id: `reached:${at}`, source: '/v1/monitors/m', time, received: time, via: 'log' } as const
  return isLost
    ? { ...rest, type: 'source.lost', data: { message: 'refused' } }
    : { ...rest, type: 'source.live', data: { lost: null } }
}

const RULES = defineRules([
  { alert: 'Each', on: ['monitor.event_stream'], key: { monitor: 'source' }, resolve: { after: '20m' } },
  { alert: 'Three', count: { when: "type == 'monitor.event_stream'", over: '30m', gte: 3 }, for: '5m' },
  { alert: 'Silent', absence: { within: '1h' } },
  { alert: 'Long', on: ['monitor.event_stream'], count: { over: '20m', gte: 2 }, for: '3h' },
  { alert: 'Spike', on: ['monitor.event_stream'], spike: { over: '20m', factor: 2 }, lateness: '5m' },
])

const shown = ({ type, source, time, data }: ResearchEvent) => ({ type, source, time, data })

describe('a backtest over a log', () => {
  it('is what the live run did, transition by transition, with its alerts in the log', async () => {
    const clock = { now: BEGIN }
    const store = memoryStore({ clock: () => clock.now })
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const running = runRules(log, RULES, { startAt: 'start' })
    const caughtUp = async () => {
      while ((await store.reader('process:rules'))?.cursor !== (await store.positionAt('end'))) await turn()
    }
    for (let step = 0; step < 400; step++) {
      // The recorder was down twice. Some events come late.
      clock.now += step === 120 || step === 300 ? 200 * MINUTE : 2 * MINUTE
      const at = clock.now - (step % 7 === 0 ? 12 * MINUTE : 0)
      const isBusy = step % 90 < 40
      const event =
        isBusy && step % 3 === 0
          ? found(`e${step}`, at, step % 2 === 0 ? 'm' : 'n')
          : step % 11 === 0
            ? completion(at)
            : tickAt(clock.now)
      await append(store, [event])
      if (step === 200 || step === 240) await append(store, [reached(clock.now, step === 200)])
      if (step % 10 === 0) await caughtUp()
    }
    await caughtUp()
    await running.stop()
    const entries = await readAll(store)
    const live = entries.filter(({ via }) => via === 'process').map(shown)
    const again: ReturnType<typeof shown>[] = []
    const report = await backtest(RULES, entries, { onAlert: (event) => again.push(shown(event)) })

    expect(again).toEqual(live)
    expect(new Set(live.map(({ type }) => type))).toEqual(
      new Set(
        ['pending', 'inactive', 'firing', 'resolved', 'unknown', 'known', 'late'].map(
          (type) => `alert.${type}`,
        ),
      ),
    )
    const count = (type: string) => live.filter((event) => event.type === type).length
    const sum = (field: 'fired' | 'resolved' | 'late' | 'unknown') =>
      report.rules.reduce((total, rule) => total + rule[field], 0)
    expect([sum('fired'), sum('resolved'), sum('unknown'), sum('late')]).toEqual(
      ['alert.firing', 'alert.resolved', 'alert.unknown', 'alert.late'].map(count),
    )
    // Neither ticks nor alerts are events of the past.
    expect(report.events).toBe(
      entries.filter(({ via, type }) => via !== 'process' && type !== 'log.tick').length,
    )
  })

  it('lets no time pass that the log has not', async () => {
    const entry = { ...completion(BEGIN), recorded: BEGIN }
    const late = { ...completion(BEGIN + 10 * 60 * MINUTE), recorded: BEGIN + 10 * 60 * MINUTE }
    const { rules } = await backtest(RULES, [entry, late])
    expect(rules.find(({ rule }) => rule === 'Silent')).toMatchObject({ fired: 0, unknown: 0 })
  })
})

describe('a backtest over other events', () => {
  const events = [found('a', BEGIN), completion(BEGIN + 5 * MINUTE), found('b', BEGIN + 300 * MINUTE)]

  it('lets time pass evenly between them, and up to the end that is given', async () => {
    const report = await backtest(RULES, events, { until: BEGIN + 310 * MINUTE })
    const [each, , silent] = report.rules
    expect(each).toEqual({
      rule: 'Each',
      group: null,
      fired: 2,
      resolved: 1,
      firing: 1,
      late: 0,
      unknown: 0,
      duration: 30 * MINUTE,
    })
    expect(silent).toMatchObject({ fired: 1, resolved: 1, unknown: 0, firing: 0 })
    expect(report).toMatchObject({ from: BEGIN, to: BEGIN + 310 * MINUTE, events: 3, omitted: 0 })
    expect(
      report.episodes.map(({ rule, fired, resolved, reason }) => [
        rule,
        (fired - BEGIN) / MINUTE,
        resolved && (resolved - BEGIN) / MINUTE,
        reason,
      ]),
    ).toEqual([
      ['Each', 0, 20, 'expired'],
      ['Silent', 66, 300, 'condition'],
      ['Each', 300, null, null],
    ])
  })

  it('takes them from an iterable, an async iterable or an Observable', async () => {
    async function* later() {
      yield* events
    }
    const expected = await backtest(RULES, events)
    expect(await backtest(RULES, later())).toEqual(expected)
    expect(await backtest(RULES, from(events))).toEqual(expected)
  })

  it('rejects with what they fail with', async () => {
    function* failing(): Generator<RuleInput> {
      yield found('a', BEGIN)
      throw new Error('the disk is gone')
    }
    await expect(backtest(RULES, failing())).rejects.toThrow('the disk is gone')
    await expect(backtest(RULES, from(failing()))).rejects.toThrow('the disk is gone')
  })

  it('is empty without events', async () => {
    expect(await backtest(RULES, [])).toMatchObject({ from: null, to: null, events: 0, episodes: [] })
  })

  it('keeps a report of bounded size, whose numbers are exact', async () => {
    const rules = defineRules([
      { alert: 'Each', on: ['monitor.event_stream'], per: 'event', resolve: { after: '1m' } },
    ])
    function* many() {
      for (let index = 0; index < 12_000; index++) yield found(`e${index}`, BEGIN + index * 10 * MINUTE)
    }
    const alerts: AlertEvent[] = []
    const {
      episodes,
      omitted,
      rules: numbers,
      counts,
    } = await backtest(rules, many(), {
      onAlert: (event) => alerts.push(event),
      until: BEGIN + 12_000 * 10 * MINUTE,
    })
    expect(episodes).toHaveLength(10_000)
    expect(omitted).toBe(2_000)
    expect(numbers).toMatchObject([{ fired: 12_000, resolved: 12_000, firing: 0, duration: 12_000 * MINUTE }])
    expect(alerts).toHaveLength(24_000)
    expect(counts.counts.length).toBeLessThanOrEqual(2_048)
    expect(counts.counts.reduce((sum, count) => sum + count)).toBe(12_000)
  })
})
