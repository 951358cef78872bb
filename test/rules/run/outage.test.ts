import { array, assert, asyncProperty, boolean, constantFrom, integer, record } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EventLog } from 'rivulet/log'
import { defineRules } from '../../../src/rules/rule-file/load.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import type { Rule } from '../../../src/rules/rule.ts'
import { monitored } from '../../log/record/monitored.ts'
import { allEntriesOf, settled, until } from '../../log/record/recording-log.ts'

const on: Rule['on'] = ['monitor.completion']
const key = { monitor: 'source' }

/** Decided by the order and the time of events, and by time alone. */
const RULES: readonly Rule[] = [
  { alert: 'Burst', on, count: { over: '1m', gte: 3 }, key, lateness: 0 },
  { alert: 'Long', on, count: { over: '40s', gte: 1 }, key, for: '1m', lateness: 0 },
  { alert: 'Any', on, count: { over: '30s', gte: 4 }, lateness: 0 },
]

/** Ten seconds of a run. */
interface Slot {
  /** Which monitors complete. */
  readonly a: boolean
  readonly b: boolean
  /** What happens to the recorder, and for how many slots. */
  readonly trouble: 'none' | 'outage' | 'stopped'
  readonly length: number
}

const slots = array(
  record<Slot>({
    a: boolean(),
    b: boolean(),
    trouble: constantFrom('none', 'none', 'none', 'outage', 'stopped'),
    length: integer({ min: 1, max: 12 }),
  }),
  { minLength: 10, maxLength: 24 },
)

/** The alerts of the rules over the events of these slots: when each fired and ended. */
async function alertsOf(given: readonly Slot[], hasTrouble: boolean): Promise<readonly string[]> {
  const at = await monitored()
  const { log, client, service, time } = at
  const monitors = [
    { id: 'a', pollInterval: 5_000 },
    { id: 'b', pollInterval: 8_000 },
  ]
  const rules = runRules(log, defineRules(RULES), { startAt: 'start' })
  let recording: ReturnType<EventLog['record']> | undefined = log.record({ client, monitors })
  await at.pass(20)
  let troubleUntil = -1
  let isAway = false
  const end = async () => {
    if (isAway) await service.start()
    isAway = false
    recording ??= log.record({ client, monitors })
  }
  for (const [n, { a, b, trouble, length }] of given.entries()) {
    if (n >= troubleUntil) {
      await end()
      if (hasTrouble && trouble !== 'none') troubleUntil = n + length
      if (hasTrouble && trouble === 'outage') {
        await service.stop()
        isAway = true
      } else if (hasTrouble && trouble === 'stopped') {
        await recording?.stop()
        recording = undefined
      }
    }
    time.advance(137)
    at.happens(...(a ? ['a'] : []), ...(b ? ['b'] : []))
    time.advance(9_863)
    await settled()
  }
  await end()
  await at.pass(300)
  await recording?.stop()
  const last = (await allEntriesOf(log)).filter(({ type }) => type === 'log.tick').length
  await until(async () => (await log.stats()).readers.every(({ lag }) => lag.entries === 0))
  await rules.stop()
  expect(last).toBeGreaterThan(10)
  const texts = (await allEntriesOf(log)).flatMap(({ type, data, time: decided }) =>
    type === 'alert.firing' || type === 'alert.resolved'
      ? [`${type} ${data.alert} ${JSON.stringify(data.key)} ${data.since} ${data.value} ${decided}`]
      : type === 'alert.late'
        ? ['late']
        : [],
  )
  return texts.toSorted()
}

it('rules fire exactly where they fire without it: events of an outage, and of a recorder that was stopped', async () => {
  let fired = 0
  await assert(
    asyncProperty(slots, async (given) => {
      const expected = await alertsOf(given, false)
      expect(await alertsOf(given, true)).toEqual(expected)
      fired += expected.length
    }),
    { numRuns: 6 },
  )
  expect(fired).toBeGreaterThan(10)
}, 120_000)

describe('absence', () => {
  /**
   * The alerts of a monitor that must report every 20 s, and whose recorder is stopped for a minute. It has reported every 10 s before.
   *
   * @param isSilent Whether it reports no longer from then on.
   */
  async function alertsAfterStop(isSilent: boolean): Promise<readonly string[]> {
    const at = await monitored()
    const { log, client } = at
    const monitors = [{ id: 'a', pollInterval: 5_000 }]
    const absent = defineRules([{ alert: 'Silent', absence: { within: '20s' }, lateness: 0 }])
    const rules = runRules(log, absent, { startAt: 'start' })
    const reportsFor = async (tens: number, isOver: boolean) => {
      for (let ten = 0; ten < tens; ten++) {
        if (!isOver) at.happens('a')
        await at.pass(10)
      }
    }
    const before = log.record({ client, monitors })
    await reportsFor(3, false)
    await before.stop()
    await reportsFor(6, isSilent)
    const after = log.record({ client, monitors })
    await reportsFor(6, isSilent)
    await after.stop()
    await until(async () => (await log.stats()).readers.every(({ lag }) => lag.entries === 0))
    await rules.stop()
    return (await allEntriesOf(log)).flatMap(({ type, data }) =>
      type === 'alert.firing' || type === 'alert.resolved' ? [`${type} ${data.value}`] : [],
    )
  }

  it('does not fire for a source whose reports were caught up after a restart of the recorder', async () => {
    expect(await alertsAfterStop(false)).toEqual([])
  })

  it('fires once for a source that was silent while its recorder was stopped', async () => {
    expect(await alertsAfterStop(true)).toEqual(['alert.firing 20'])
  })
})
