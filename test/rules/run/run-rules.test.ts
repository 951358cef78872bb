import { describe, expect, it } from 'vitest'
import { ProcessVersionError } from 'rivulet/log'
import { defineRules } from '../../../src/rules/rule-file/load.ts'
import { compiledRules, createRuleSet } from '../../../src/rules/rule-set.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import type { AlertEvent } from '../../../src/rules/evaluate/in-memory.ts'
import type { Rule } from '../../../src/rules/rule.ts'
import { readAll } from '../../log/conformance/fixture.ts'
import { change } from '../../operators/events.ts'
import { ruleStatus } from '../../../src/rules/run/rule-status.ts'
import { copying, eventAt } from '../../log/process/windows.ts'
import { ruleLog } from './rule-log.ts'

const burst: Rule = {
  alert: 'Burst',
  on: ['monitor.event_stream'],
  count: { over: '10m', gte: 2 },
  key: { monitor: 'source' },
  lateness: 0,
}

const pending: Rule = { ...burst, alert: 'Pending', for: '30m', count: { over: '2h', gte: 1 } }

const set = (...rules: readonly Rule[]) => defineRules(rules)

describe('rules over a log', () => {
  it('fire and are resolved, in the log', async () => {
    const at = await ruleLog()
    runRules(at.log, set(burst))
    await at.caughtUp()
    await at.detect(0, 'a')
    await at.detect(1, 'b')
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m'])
    await at.tick(30)
    expect(await at.alerts()).toEqual([
      'firing Burst /v1/monitors/m',
      'resolved Burst /v1/monitors/m: condition',
    ])
  })

  it('refuse the states of an earlier version of this package, and leave them as they are', async () => {
    const at = await ruleLog()
    const earlier = at.log.process<object>('rules', {
      version: 1,
      key: () => 'Burst',
      init: () => ({}),
      event: (_, __, context) => context.set({ r: { missing: 1 } }),
    })
    await at.detect(0, 'a')
    await earlier.stop()
    await expect(runRules(at.log, set(burst)).done).rejects.toThrow(ProcessVersionError)
    expect(await at.log.state('rules').get('Burst')).toEqual({ r: { missing: 1 } })
  })

  it('begin at the end of the log, or where `startAt` says', async () => {
    const at = await ruleLog()
    runRules(at.log, set(burst), { name: 'first' })
    await at.caughtUp('first')
    await at.detectFor('first', 0, 'a', 'b')
    expect(await at.alerts()).toHaveLength(1)
    runRules(at.log, set(burst))
    await at.caughtUp()
    expect(await at.alerts()).toHaveLength(1)
    runRules(at.log, set(burst), { name: 'all', startAt: 'start' })
    await at.caughtUp('all')
    expect(await at.alerts()).toHaveLength(2)
  })

  it('wait for the processes that they come after, so that the output of one that lags counts', async () => {
    const at = await ruleLog()
    const copied: Rule = {
      ...burst,
      alert: 'Copied',
      on: ['unknown'],
      count: { over: '10m', gte: 3, when: "source == '/processes/copies'" },
      key: { process: 'source' },
    }
    runRules(at.log, set(copied), { after: ['copies'] })
    runRules(at.log, set({ ...copied, alert: 'Alone' }), { name: 'alone' })
    await at.caughtUp()
    for (const minute of [1, 2, 3]) await at.append(minute, eventAt(minute))
    await at.tick(30)
    await at.caughtUp('alone')
    expect(await at.alerts()).toEqual([])

    at.log.process('copies', copying('/s'))
    for (const minute of [31, 32, 33]) {
      await at.append(minute)
      await at.caughtUp('copies')
    }
    await at.caughtUp()
    await at.caughtUp('alone')

    // For the rules alone, the windows of these events were over.
    expect(await at.alerts()).toEqual([
      'firing Copied /processes/copies',
      'resolved Copied /processes/copies: condition',
    ])
  })

  it('count events that have waited while nothing ran', async () => {
    const at = await ruleLog()
    const late = set({ ...burst, lateness: '5m' })
    const first = runRules(at.log, late)
    await at.caughtUp()
    await at.detect(0, 'a')
    await at.detect(1, 'b')
    await first.stop()
    expect(await at.alerts()).toEqual([])
    runRules(at.log, late)
    await at.tick(7)
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m'])
  })

  it('keep nothing of an event that still waits when its rule is removed', async () => {
    const at = await ruleLog()
    const first = runRules(at.log, set({ ...burst, lateness: '5m' }, pending))
    await at.caughtUp()
    await at.detect(0, 'a')
    await at.detect(1, 'b')
    await first.stop()
    const second = runRules(at.log, set(pending))
    await at.tick(2)
    await at.tick(7)
    await second.stop()
    expect(await at.alerts()).toEqual([])
    const { state } = await at.log.state('rules').snapshot()
    expect([...state.keys()].filter((key) => key.startsWith('Burst'))).toEqual([])
    expect(
      await at.store.processes.timers('process:rules', { clock: 'event', until: Infinity, limit: 10 }),
    ).toMatchObject([{ key: expect.stringMatching(/^Pending/) }])
  })

  it('go on where they were stopped: nothing fires twice, and nothing goes back to pending', async () => {
    const at = await ruleLog()
    const rules = set(burst, pending)
    let running = runRules(at.log, rules)
    await at.caughtUp()
    const restart = async () => {
      await running.stop()
      running = runRules(at.log, set(burst, pending))
    }
    await at.detect(0, 'a')
    await restart()
    await at.detect(1, 'b')
    await restart()
    await at.tick(29)
    await restart()
    await at.tick(31)
    await restart()
    await at.tick(32)
    expect(await at.alerts()).toEqual([
      'firing Burst /v1/monitors/m',
      'resolved Burst /v1/monitors/m: condition',
      'firing Pending /v1/monitors/m',
    ])
  })

  it('run once: a second one is refused, or waits', async () => {
    const at = await ruleLog()
    const first = runRules(at.log, set(burst))
    await at.caughtUp()
    const log = await at.again()
    await expect(runRules(log, set(burst)).done).rejects.toMatchObject({ name: 'LogInUseError' })
    const second = runRules(log, set(burst), { wait: new AbortController().signal })
    await at.detect(0, 'a')
    await first.stop()
    await at.detect(1, 'b')
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m'])
    await second.stop()
  })

  it('refuses settings and rules that are none', async () => {
    const { log } = await ruleLog()
    for (const options of [{ name: '' }, { startAt: 'middle' }, { wait: 1 }, { version: 2 }]) {
      expect(() => runRules(log, set(burst), options as object)).toThrow(/name|startAt|wait|version/)
    }
    expect(() => runRules(log, [burst] as never)).toThrow(/RuleSet/)
  })

  it('end when the log is closed', async () => {
    const { log } = await ruleLog()
    const { done } = runRules(log, set(burst))
    await log.close()
    expect(await done).toBeUndefined()
  })
})

describe('absence over a log whose retention overtook the rules', () => {
  it('is unknown, across restarts, until a source could have reported again', async () => {
    const at = await ruleLog()
    const rules = set({
      alert: 'Quiet',
      absence: { on: ['monitor.event_stream'], within: '1h' },
      lateness: 0,
    })
    let running = runRules(at.log, rules)
    const restart = async () => {
      await running.stop()
      running = runRules(at.log, rules)
    }
    await at.caughtUp()
    await at.detect(0, 'a')
    await running.stop()
    await at.deleteUnread(() => at.append(50, change('b')))
    running = runRules(at.log, rules)
    await at.tick(51)
    expect(await at.alerts()).toEqual(['unknown Quiet'])
    await restart()
    await at.tick(61)
    expect(await at.alerts()).toEqual(['unknown Quiet', 'unknown Quiet /v1/monitors/m'])
    await restart()
    await at.tick(109)
    await at.tick(110)
    expect((await at.alerts()).slice(2)).toEqual(['firing Quiet /v1/monitors/m'])
  })

  it('is unknown where the time of a source was over before the gap was known', async () => {
    const at = await ruleLog()
    const rules = set({
      alert: 'Quiet',
      absence: { on: ['monitor.event_stream'], within: '1h' },
      lateness: 0,
    })
    const running = runRules(at.log, rules)
    await at.caughtUp()
    await at.detect(0, 'a')
    await running.stop()
    await at.deleteUnread(() => at.append(62, change('b')))
    runRules(at.log, rules)
    await at.tick(63)
    expect(await at.alerts()).toEqual(['unknown Quiet', 'unknown Quiet /v1/monitors/m'])
  })
})

describe('a rule that fails at an entry', () => {
  it('leaves the entry as a dead letter that names it, and does not stop the others', async () => {
    const at = await ruleLog()
    const [rule] = compiledRules(set({ ...burst, alert: 'Broken' }))
    const evaluate = () => {
      throw new TypeError('a bug')
    }
    if (rule === undefined) throw new Error('no rule')
    const broken = { ...rule, when: { text: 'true', watched: [], evaluate } }
    const running = runRules(at.log, createRuleSet([broken, ...compiledRules(set(burst))], []))
    await at.caughtUp()
    await at.detect(0, 'a', 'b')
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m'])
    const errors: unknown[] = []
    for await (const { error } of at.log.deadLetters({ process: 'rules' }).list()) errors.push(error)
    expect(errors).toEqual([
      { name: 'TypeError', message: expect.stringContaining('Broken') },
      { name: 'TypeError', message: expect.stringContaining('a bug') },
    ])
    await running.stop()
  })
})

describe('rules that are reloaded', () => {
  async function firing(...rules: readonly Rule[]) {
    const at = await ruleLog()
    const running = runRules(at.log, set(...rules))
    await at.caughtUp()
    await at.detect(0, 'a', 'b')
    return { at, running }
  }

  it('keep the alerts of rules that did not change, and resolve those of rules that are gone', async () => {
    const { at, running } = await firing(burst, { ...burst, alert: 'Other' }, pending)
    const before = await at.alerts()
    await running.reload(set(burst, pending))
    await at.tick(1)
    expect((await at.alerts()).slice(before.length)).toEqual(['resolved Other /v1/monitors/m: rule'])
    await running.reload(set(burst, pending))
    await at.tick(31)
    expect((await at.alerts()).slice(before.length + 1)).toEqual([
      'resolved Burst /v1/monitors/m: condition',
      'firing Pending /v1/monitors/m',
    ])
  })

  it.each([
    { edit: 'a condition', rule: { ...burst, count: { over: '10m', gte: 1 } } },
    { edit: 'labels', rule: { ...burst, labels: { team: 'a' } } },
    { edit: '`enabled`', rule: { ...burst, enabled: false } },
  ])('end the alert of a rule with another edit of $edit', async ({ rule }) => {
    const { at, running } = await firing(burst)
    await running.reload(set(rule))
    await at.tick(1)
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m', 'resolved Burst /v1/monitors/m: rule'])
    await at.tick(2)
    expect(await at.alerts()).toHaveLength(2)
    const { state } = await at.log.state('rules').snapshot()
    expect([...state.keys()]).toEqual(['!rules'])
  })

  it('do not fire again after an edit of annotations, which count from the next event', async () => {
    const { at, running } = await firing(burst)
    await running.reload(set({ ...burst, annotations: { summary: 'new' } }))
    await at.detect(1, 'c')
    await at.tick(30)
    const entries = await readAll(at.store)
    expect(entries.filter(({ type }) => type === 'alert.firing')).toHaveLength(1)
    const resolved = entries.find((entry) => entry.type === 'alert.resolved')
    expect(resolved?.data).toMatchObject({ annotations: { summary: 'new' }, reason: 'condition' })
  })

  it('end alerts also when the program was stopped meanwhile, and any number of them', async () => {
    const at = await ruleLog()
    const each: Rule = { alert: 'Each', on: ['monitor.event_stream'], per: 'event', resolve: { after: '1w' } }
    const running = runRules(at.log, set(each))
    await at.caughtUp()
    const ids = Array.from({ length: 2_500 }, (_, n) => `e${n}`)
    for (let from = 0; from < ids.length; from += 250) await at.detect(0, ...ids.slice(from, from + 250))
    await running.stop()
    runRules(at.log, set(burst))
    for (let minute = 1; minute < 8; minute++) await at.tick(minute)
    const resolved = (await at.alerts()).filter((alert) => alert.endsWith(': rule'))
    expect(resolved).toHaveLength(2_500)
    expect(new Set(resolved).size).toBe(2_500)
    expect(await at.log.state('rules').get('!rules')).toMatchObject({ rules: [expect.any(String)] })
    expect((await at.log.state('rules').snapshot()).state.size).toBe(1)
  })

  it('end alerts that another process left while these rules waited for it', async () => {
    const at = await ruleLog()
    const first = runRules(at.log, set(burst))
    await at.caughtUp()
    const waiting = runRules(await at.again(), set(pending), { wait: new AbortController().signal })
    await at.detect(0, 'a', 'b')
    await first.stop()
    for (let minute = 1; minute < 5; minute++) await at.tick(minute)
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m', 'resolved Burst /v1/monitors/m: rule'])
    await waiting.stop()
  })

  it('count as the last ones where several are loaded at once, and end with the job', async () => {
    const { at, running } = await firing(burst)
    await Promise.all([running.reload(set(pending)), running.reload(set(burst)), running.reload(set(burst))])
    await at.tick(1)
    expect(await at.alerts()).toEqual(['firing Burst /v1/monitors/m'])
    const stopped = running.stop()
    await stopped
    await expect(running.reload(set(burst))).rejects.toMatchObject({ name: 'LogError' })
  })
})

describe('an alert that is pending', () => {
  const labelled: Rule = { ...pending, labels: { severity: 'page' } }

  it('is inactive when its condition ends, in the log once each, and with the same episode', async () => {
    const at = await ruleLog()
    runRules(at.log, set({ ...labelled, count: { over: '10m', gte: 1 } }))
    await at.caughtUp()
    await at.detect(0, 'a')
    await at.detect(1, 'b')
    await at.tick(30)
    await at.detect(40, 'c')
    const events = await emitted(at)
    expect(events.map(({ type }) => type)).toEqual(['alert.pending', 'alert.inactive', 'alert.pending'])
    const [first, end, next] = events.map(({ data }) => data.episode)
    expect([end, next === first]).toEqual([first, false])
  })

  it('is inactive, with its labels, when its rule is removed', async () => {
    const at = await ruleLog()
    const running = runRules(at.log, set(labelled))
    await at.caughtUp()
    await at.detect(0, 'a')
    await running.reload(set(burst))
    await at.tick(1)
    const [begin, end] = await emitted(at)
    expect(end).toMatchObject({ type: 'alert.inactive', data: begin?.data })
    expect(end?.data.labels).toMatchObject({ severity: 'page' })
  })

  async function emitted(at: Awaited<ReturnType<typeof ruleLog>>) {
    const entries = await readAll(at.store)
    return entries.filter((entry) => entry.type === 'alert.pending' || entry.type === 'alert.inactive')
  }
})

describe('the status of rules', () => {
  it('has the alerts that are pending and firing, and what each rule has counted, in any open log', async () => {
    const at = await ruleLog()
    const missing: Rule = {
      alert: 'Missing',
      on: ['monitor.event_stream'],
      when: "data.output.content.x == 'a'",
    }
    // Its conditions are evaluated for a change and for no change: a problem of both is one.
    const once: Rule = {
      alert: 'Once',
      on: ['monitor.event_stream'],
      when: 'changed(source)',
      resolve: { when: "data.output.content.x == 'a'" },
    }
    runRules(at.log, set(burst, pending, missing, once))
    await at.caughtUp()
    expect(await ruleStatus(at.log)).toEqual({ alerts: [], isCut: false, rules: [] })
    await at.detect(0, 'a')
    await at.detect(1, 'b')
    const status = await ruleStatus(await at.again())
    const key = { monitor: '/v1/monitors/m' }
    const entries = await readAll(at.store)
    const data = (type: AlertEvent['type']) => Object(entries.find((entry) => entry.type === type)?.data)
    const open = { resolved: null, unknown: null }
    const causes = ['a', 'b'].map((id): unknown => expect.objectContaining({ id }))
    expect(status.alerts).toEqual([
      { ...data('alert.firing'), ...open, state: 'firing' },
      { ...data('alert.pending'), ...open, state: 'pending', events: causes },
    ])
    expect(status.alerts).toMatchObject([
      { alert: 'Burst', labels: { alertname: 'Burst', ...key }, value: 2, since: '2026-01-01T00:01:00.000Z' },
      {
        alert: 'Pending',
        labels: { alertname: 'Pending', ...key },
        value: 1,
        since: '2026-01-01T00:00:00.000Z',
      },
    ])
    expect(status.rules).toMatchObject([
      { alert: 'Burst', firing: 1, pending: 0, keys: 1, missing: 0 },
      { alert: 'Missing', firing: 0, keys: 0, missing: 2 },
      { alert: 'Once', missing: 2 },
      { alert: 'Pending', firing: 0, pending: 1, keys: 1 },
    ])
    expect(await ruleStatus(at.log, { limit: 1 })).toMatchObject({ alerts: [{}], isCut: true })
    expect(await ruleStatus(at.log, { name: 'other' })).toEqual({ alerts: [], isCut: false, rules: [] })
  })
})
