import { eventTime } from 'rivulet/log'
import type { Entry, EventLog, LogJob, ProcessOptions } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { defineRules } from '../../../src/rules/rule-file/load.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import type { Rule } from '../../../src/rules/rule.ts'
import { monitored } from './monitored.ts'
import { allEntriesOf, until } from './recording-log.ts'

const HUNDRED = Array.from({ length: 100 }, (_, n) => `m${n}`)

const SOURCE = '/v1/monitors/m0'

const WINDOW = 10_000

interface Window {
  readonly count: number
  readonly late: number
}

/** Counts the completions of each monitor by windows of event time, and those that are late. */
const counting: ProcessOptions<Window> = {
  version: 1,
  where: ({ type }) => type === 'monitor.completion',
  key: (entry) => `${entry.source} ${Math.floor(eventTime(entry) / WINDOW)}`,
  init: () => ({ count: 0, late: 0 }),
  event({ count, late }, entry, context) {
    if (eventTime(entry) < context.now('event')) return context.set({ count, late: late + 1 })
    context.set({ count: count + 1, late })
    context.timer('end', (Math.floor(eventTime(entry) / WINDOW) + 1) * WINDOW, { clock: 'event' })
  },
  timer: ({ count }, _due, context) =>
    context.append({ type: 'unknown', data: { key: context.key, count, complete: context.complete } }),
}

const RULE: Rule = {
  alert: 'Busy',
  on: ['monitor.completion'],
  count: { over: '40s', gte: 1 },
  key: { monitor: 'source' },
  for: '1m',
  lateness: 0,
}

/** Waits until every process has read everything. */
const read = (log: EventLog) =>
  until(async () => (await log.stats()).readers.every(({ lag }) => lag.entries === 0))

/** What the process of {@link counting} has appended. */
function windowsOf(entries: readonly Entry[]): readonly unknown[] {
  return entries.flatMap(({ type, data }) => (type === 'unknown' ? [data] : []))
}

function alertsOf(entries: readonly Entry[]): readonly string[] {
  return entries
    .flatMap(({ type, data, time }) =>
      type === 'alert.firing' || type === 'alert.resolved'
        ? [`${type} ${JSON.stringify(data.key)} ${data.since} ${time}`]
        : [],
    )
    .toSorted()
}

async function lateOf(log: EventLog): Promise<number> {
  const { state } = await log.state<Window>('windows').snapshot()
  return Array.from(state.values()).reduce((sum, { late }) => sum + late, 0)
}

/** How many events of a source are before a tick that came earlier. */
function behindTicks(entries: readonly Entry[], source: string): number {
  let reached = -Infinity
  return entries.filter((entry) => {
    if (entry.type === 'log.tick') reached = Math.max(reached, Date.parse(entry.data.through ?? ''))
    return entry.source === source && entry.type === 'monitor.completion' && eventTime(entry) < reached
  }).length
}

/** A recording of 100 monitors, of which one cannot be reached for a while. */
async function withOutage(isAway: boolean, restart?: (log: EventLog, process: LogJob) => Promise<LogJob>) {
  const at = await monitored()
  const { log, client, away } = at
  const recording = log.record({ client, monitors: at.watched(...HUNDRED) })
  let process: LogJob = log.process('windows', counting)
  const rules = runRules(log, defineRules([RULE]), { startAt: 'start' })
  const happens = async (tens: number) => {
    for (let ten = 0; ten < tens; ten++) {
      at.happens('m0', 'm1')
      await at.pass(10)
    }
  }
  await at.pass(25)
  await happens(3)
  if (isAway) away.add('m0')
  await happens(12)
  if (restart !== undefined) process = await restart(log, process)
  away.delete('m0')
  await happens(2)
  await at.pass(200)
  await recording.stop()
  await read(log)
  await process.stop()
  await rules.stop()
  const entries = await allEntriesOf(log)
  return { entries, late: await lateOf(log), alerts: alertsOf(entries), windows: windowsOf(entries) }
}

describe('a stream that is away alone', () => {
  it('is behind from the tick that passes it until it has caught up, which the log says once', async () => {
    const { entries } = await withOutage(true)
    const own = entries.filter(({ source }) => source === SOURCE)
    const changes = own.filter(({ type }) => type === 'source.behind' || type === 'source.caught_up')
    expect(changes.map(({ type }) => type)).toEqual(['source.behind', 'source.caught_up'])
    const [behind, caughtUp] = changes.map((entry) => entries.indexOf(entry))
    const ticks = entries.flatMap((entry, at) =>
      entry.type === 'log.tick' ? [{ at, through: Date.parse(entry.data.through ?? '') }] : [],
    )
    const [change] = changes
    const through = Date.parse(change?.type === 'source.behind' ? (change.data.through ?? '') : '')
    expect(ticks.filter(({ at }) => at < (behind ?? 0)).every((tick) => tick.through <= through)).toBe(true)
    expect(ticks.find(({ at }) => at > (behind ?? 0))?.through).toBeGreaterThan(through)
    expect(ticks.findLast(({ at }) => at < (caughtUp ?? 0))?.through).toBeGreaterThan(through + 60_000)
    // All that was caught up is before it.
    const events = entries.flatMap((entry, at) =>
      entry.source === SOURCE && entry.type === 'monitor.completion' ? [{ at, entry }] : [],
    )
    const during = events.filter(({ at }) => at > (behind ?? 0) && at < (caughtUp ?? 0))
    expect(during.length).toBeGreaterThanOrEqual(11)
  })

  it('is not late for a process, and a rule fires exactly as without the outage', async () => {
    const whole = await withOutage(false)
    const held = await withOutage(true)
    // Event time did not wait for it.
    expect(behindTicks(held.entries, SOURCE)).toBeGreaterThanOrEqual(10)
    expect(held.late).toBe(0)
    expect(whole.alerts.length).toBe(4)
    expect(held.alerts).toEqual(whole.alerts)
    expect(held.windows.toSorted(byText)).toEqual(whole.windows.toSorted(byText))
  })
})

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
}
