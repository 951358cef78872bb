import { memoryStore, openLog } from 'rivulet/log'
import { describe, expect, it, onTestFinished } from 'vitest'
import { labelsHash } from '../../../src/rules/notify/alert-identity.ts'
import { alertProcess } from '../../../src/rules/notify/alertmanager-process.ts'
import { append } from '../../log/append.ts'
import { caughtUp } from '../../log/process/windows.ts'
import { tickAt } from '../../support/ticks.ts'
import { episodeOf } from './alerts.ts'

const HOUR = 3_600_000

/** A process over a log whose clock is that of the test, and the times at which it asked for an acceptance. */
async function running(answer: (now: number) => number | null | undefined) {
  // Far from the clock of the computer.
  const start = Date.UTC(2001, 0, 1)
  let now = start
  const store = memoryStore({ clock: () => now })
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const asked: number[] = []
  const states = log.process(
    'alertmanager',
    alertProcess(0, {
      openedAt() {
        asked.push(now - start)
        return answer(now - start)
      },
      newestAtStart: start,
    }),
  )
  const { firing, resolved } = episodeOf({ alert: 'A', since: new Date(start).toISOString() })
  await append(store, [firing])
  return {
    asked,
    end: () => append(store, [resolved]),
    /** Moves the time of the log on, with a tick each second, as a recorder does. */
    async pass(time: number) {
      for (const until = now + time; now < until;) {
        now += 1_000
        await append(store, [tickAt(now)])
        await caughtUp(log, 'alertmanager')
      }
    },
    opened: async () => (await states.get(labelsHash({ alertname: 'A' })))?.opened,
  }
}

describe('the process of alertmanager', () => {
  it('stores when an alert was accepted, whatever the clock of the computer says', async () => {
    const { pass, opened } = await running((now) => (now > 5_000 ? 5_000 : undefined))
    await pass(20_000)
    expect(await opened()).toBe(5_000)
  })

  it('asks less and less often for an alert that is not accepted', async () => {
    const { asked, pass } = await running(() => undefined)
    await pass(HOUR)
    expect(asked.slice(0, 5)).toEqual([1_000, 6_000, 12_000, 24_000, 48_000])
    expect(asked.length).toBeLessThan(25)
    // Not less often than each five minutes.
    expect(asked.at(-1)).toBeGreaterThan(HOUR - 310_000)
  })

  it('asks no more for an alert that is refused, until it ends', async () => {
    const { asked, end, pass } = await running(() => null)
    await pass(60_000)
    expect(asked).toEqual([1_000])
    await end()
    await pass(60_000)
    expect(asked).toEqual([1_000, 61_000])
  })
})
