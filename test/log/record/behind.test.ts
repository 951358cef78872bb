import { eventTime } from 'rivulet/log'
import type { Entry, EventLog, LogJob, RecordOptions } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { defineRules } from '../../../src/rules/rule-file/load.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import type { Rule } from '../../../src/rules/rule.ts'
import { counting, HUNDRED, lateOf, readAll, windowsOf } from './held-windows.ts'
import { isObject } from '../../../src/protocol/json.ts'
import { monitored } from './monitored.ts'
import { allEntriesOf } from './recording-log.ts'

const SOURCE = '/v1/monitors/m0'

const RULE: Rule = {
  alert: 'Busy',
  on: ['monitor.completion'],
  count: { over: '40s', gte: 1 },
  key: { monitor: 'source' },
  for: '1m',
  lateness: 0,
}

const byText = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

function alertsOf(entries: readonly Entry[]): readonly string[] {
  return entries
    .flatMap(({ type, data, time }) =>
      type === 'alert.firing' || type === 'alert.resolved'
        ? [`${type} ${JSON.stringify(data.key)} ${data.since} ${time}`]
        : [],
    )
    .toSorted()
}

/** The events of {@link SOURCE} that are before a tick that came earlier. */
function passedByTicks(entries: readonly Entry[]): readonly Entry[] {
  let reached = -Infinity
  return entries.filter((entry) => {
    if (entry.type === 'log.tick') reached = Math.max(reached, Date.parse(entry.data.through ?? ''))
    return entry.source === SOURCE && entry.type === 'monitor.completion' && eventTime(entry) < reached
  })
}

/** What the log says of sources that are behind. */
async function changesOf(log: EventLog) {
  return (await allEntriesOf(log)).filter(
    ({ type }) => type === 'source.behind' || type === 'source.caught_up',
  )
}

/** The `through` of the last tick, in Unix ms. */
async function through(log: EventLog): Promise<number> {
  const tick = (await allEntriesOf(log)).findLast(({ type }) => type === 'log.tick')
  return tick?.type === 'log.tick' ? Date.parse(tick.data.through ?? '') : -Infinity
}

/** A recording of 100 monitors, of which two report every ten seconds. */
async function busy(options: Partial<RecordOptions> = {}) {
  const at = await monitored()
  const { log, client } = at
  const record = (to = log, ids: readonly string[] = HUNDRED) =>
    to.record({ client, monitors: at.watched(...ids), ...options })
  const recording = record()
  await at.pass(25)
  const happens = async (tens: number) => {
    for (let ten = 0; ten < tens; ten++) {
      at.happens('m0', 'm1')
      await at.pass(10)
    }
  }
  await happens(3)
  return { ...at, record, recording, happens }
}

/** What a process and a rule make of the events of a monitor that cannot be reached for two minutes. */
async function withOutage(isAway: boolean, isShared = false) {
  const at = await busy()
  const { log, happens } = at
  const process = log.process('windows', { ...counting, share: isShared })
  const rules = runRules(log, defineRules([RULE]), { startAt: 'start' })
  if (isAway) at.away.add('m0')
  await happens(12)
  at.away.clear()
  await happens(2)
  await at.pass(200)
  await at.recording.stop()
  await readAll(log)
  await process.stop()
  await rules.stop()
  const entries = await allEntriesOf(log)
  const windows = windowsOf(entries).toSorted(byText)
  return { entries, late: await lateOf(log), alerts: alertsOf(entries), windows }
}

describe('a stream that is away alone', () => {
  it('is behind from the tick that passes it until it has caught up, which the log says once', async () => {
    const { entries } = await withOutage(true)
    const at = (type: Entry['type']) =>
      entries.flatMap((entry, index) => (entry.source === SOURCE && entry.type === type ? [index] : []))
    const [[behind = NaN, ...others], [caughtUp = NaN]] = [at('source.behind'), at('source.caught_up')]
    expect(others).toEqual([])
    const change = entries[behind]
    const reached = change?.type === 'source.behind' ? Date.parse(change.data.through ?? '') : NaN
    const ticks = entries.flatMap((entry, index) =>
      entry.type === 'log.tick' ? [{ index, through: Date.parse(entry.data.through ?? '') }] : [],
    )
    expect(ticks.findLast(({ index }) => index < behind)?.through).toBeLessThanOrEqual(reached)
    expect(ticks.find(({ index }) => index > behind)?.through).toBeGreaterThan(reached)
    expect(ticks.findLast(({ index }) => index < caughtUp)?.through).toBeGreaterThan(reached + 60_000)
    const during = at('monitor.completion').filter((index) => index > behind && index < caughtUp)
    expect(during.length).toBeGreaterThanOrEqual(11)
  })

  it('is not late for a process, and a rule fires exactly as without the outage', async () => {
    const whole = await withOutage(false)
    const held = await withOutage(true)
    // Event time did not wait for it.
    expect(passedByTicks(whole.entries)).toEqual([])
    expect(passedByTicks(held.entries).length).toBeGreaterThanOrEqual(10)
    expect(held.late).toBe(0)
    expect(whole.alerts).toHaveLength(4)
    expect(held.alerts).toEqual(whole.alerts)
    expect(held.windows).toEqual(whole.windows)
  })

  it('is not late for a process that is shared', async () => {
    const { windows } = await withOutage(false)
    const shared = await withOutage(true, true)
    expect(shared.windows).toEqual(windows)
    expect(shared.late).toBe(0)
  })

  it('is not late for a process that was stopped while it held the stream', async () => {
    const { log, away, happens, pass, recording } = await busy()
    let process: LogJob = log.process('windows', counting)
    away.add('m0')
    for (let restart = 0; restart < 4; restart++) {
      await happens(3)
      await readAll(log)
      await process.stop()
      process = log.process('windows', counting)
    }
    away.clear()
    await pass(60)
    await recording.stop()
    await readAll(log)
    await process.stop()
    const entries = await allEntriesOf(log)
    expect(passedByTicks(entries).length).toBeGreaterThanOrEqual(10)
    expect(await lateOf(log)).toBe(0)
    const own = windowsOf(entries).filter(({ key }) => key.startsWith(`${SOURCE} `))
    expect(own.reduce((sum, { count }) => sum + count, 0)).toBe(15)
  })

  it('is not waited for by processes after `maxHold`, and its windows are not complete then', async () => {
    const { log, away, happens, pass, recording } = await busy({ maxHold: 60_000 })
    const process = log.process('later', {
      ...counting,
      key: ({ source }) => source,
      event(state, entry, context) {
        if (eventTime(entry) < context.now('event')) context.set({ ...state, late: state.late + 1 })
        context.timer(entry.id, eventTime(entry) + 30_000, { clock: 'event' })
      },
      timer: (_state, due, context) =>
        context.append({ type: 'unknown', data: { key: context.key, due, complete: context.complete } }),
    })
    const ended = async () =>
      (await allEntriesOf(log)).flatMap(({ type, data }) =>
        type === 'unknown' && isObject(data) ? [data] : [],
      )
    away.add('m0')
    await happens(6)
    await readAll(log)
    expect((await ended()).every(({ complete }) => complete)).toBe(true)
    await happens(6)
    await readAll(log)
    const incomplete = (await ended()).filter(({ complete }) => complete === false)
    expect(new Set(incomplete.map(({ key }) => key))).toEqual(new Set([SOURCE]))
    away.clear()
    await pass(60)
    await recording.stop()
    await readAll(log)
    await process.stop()
    expect((await log.state<{ readonly late: number }>('later').get(SOURCE))?.late).toBeGreaterThan(0)
    expect(await log.state('later').get('/v1/monitors/m1')).toBe(undefined)
  })
})

describe('the recorder of a stream that is away alone', () => {
  it('says nothing again after a restart, until the stream has caught up', async () => {
    const { log, away, happens, pass, recording, record } = await busy()
    away.add('m0')
    await happens(6)
    await recording.stop()
    await pass(30)
    const again = record()
    await happens(6)
    expect(await changesOf(log)).toMatchObject([{ type: 'source.behind', source: SOURCE }])
    expect((await log.stats()).time.recordings).toMatchObject([{ name: 'main', behind: 1 }])
    away.clear()
    await pass(30)
    expect(await changesOf(log)).toMatchObject([
      { type: 'source.behind', source: SOURCE },
      { type: 'source.caught_up', source: SOURCE, data: { through: expect.any(String) } },
    ])
    await again.stop()
  })

  it('says after a restart that the stream has caught up', async () => {
    const { log, away, happens, pass, recording, record } = await busy()
    away.add('m0')
    await happens(6)
    await recording.stop()
    away.clear()
    const again = record()
    await pass(30)
    expect((await changesOf(log)).map(({ type }) => type)).toEqual(['source.behind', 'source.caught_up'])
    await again.stop()
  })

  it.each<[string, boolean]>([
    ['removed', false],
    ['removed while nothing recorded it', true],
  ])('lets go of a source that was %s', async (_, isStopped) => {
    const { log, away, happens, pass, recording, record, watched } = await busy()
    away.add('m0')
    await happens(6)
    const others = HUNDRED.slice(1)
    let current = recording
    if (isStopped) {
      await recording.stop()
      current = record(log, others)
    } else recording.set({ monitors: watched(...others) })
    await pass(30)
    expect(await changesOf(log)).toMatchObject([
      { type: 'source.behind', source: SOURCE },
      { type: 'source.caught_up', source: SOURCE, data: { through: null } },
    ])
    await current.stop()
  })

  it('lets go of the source of a recording that was removed', async () => {
    const { log, away, happens, recording } = await busy()
    away.add('m0')
    await happens(6)
    await recording.stop()
    await log.remove({ recording: 'main' })
    expect(await changesOf(log)).toMatchObject([
      { type: 'source.behind' },
      { type: 'source.caught_up', source: SOURCE, data: { through: null } },
    ])
  })

  it('waits for all of its streams if they are fewer than a hundred', async () => {
    const at = await monitored()
    const { log, client, away, pass, watched } = at
    const recording = log.record({ client, monitors: watched(...HUNDRED.slice(1)) })
    await pass(30)
    away.add('m1')
    await pass(15)
    const before = await through(log)
    await pass(60)
    expect(await through(log)).toBe(before)
    expect(await changesOf(log)).toEqual([])
    await recording.stop()
  })
})
