import { from, lastValueFrom } from 'rxjs'
import { inMemory } from 'rivulet/streams'
import type { ProcessFunctions } from 'rivulet/streams'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Alerts } from '../../../src/rules/notify/alertmanager-alerts.ts'
import type { FiringEntry, ResolvedEntry } from '../../../src/rules/notify/alert-entry.ts'
import type { AlertState } from '../../../src/rules/notify/alertmanager-process.ts'
import { alertProcess } from '../../../src/rules/notify/alertmanager-process.ts'
import { episodeOf, unknownOf } from './alerts.ts'

it('acknowledges episodes that are over but still open when there are many, so that reading goes on', () => {
  const alerts = new Alerts(60_000)
  let done = 0
  const pending = (entry: FiringEntry | ResolvedEntry) => ({
    entry,
    done: () => void done++,
    refuse: () => undefined,
  })
  for (let n = 0; n < 2_500; n++) {
    const { firing, resolved } = episodeOf({ alert: `A${n}` })
    for (const event of [firing, resolved]) {
      const entry = { ...event, recorded: 1_000 + n } as FiringEntry | ResolvedEntry
      alerts.wait(pending(entry), alerts.take(entry))
    }
  }
  alerts.advance()
  expect(done).toBe(0)

  for (const key of alerts.keys()) {
    const alert = alerts.get(key)
    if (alert !== undefined) alerts.accepted(alert, true)
  }
  alerts.advance()

  expect(done).toBe(1_000)
})

it('ends alerts that an earlier run opened in the order of their times, whatever the clock of the computer says', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_000_000 })
  onTestFinished(() => void vi.useRealTimers())
  const alerts = new Alerts(60_000)
  const since = new Date(900_000).toISOString()
  const restore = (key: string, opened: number | undefined) =>
    alerts.restore(key, {
      labels: { alertname: key },
      annotations: {},
      since,
      episode: key,
      recorded: 900_000,
      resolved: null,
      opened,
    })
  restore('of an earlier clock', 5_000_000)
  restore('recent', 980_000)
  restore('old', 100_000)
  restore('not known', undefined)
  for (const key of alerts.keys()) {
    const alert = alerts.get(key)
    if (alert === undefined) continue
    alerts.accepted(alert, true)
    alert.resolvedAt = 950_000
  }
  const ended = () => alerts.advance().map(({ key }) => key)

  expect(ended()).toEqual(['old'])
  expect(alerts.due).toBe(40_000)
  vi.advanceTimersByTime(40_000)
  expect(ended()).toEqual(['recent'])
  vi.advanceTimersByTime(19_999)
  expect(ended()).toEqual([])
  vi.advanceTimersByTime(1)
  expect(ended()).toEqual(['of an earlier clock', 'not known'])
  expect(alerts.openedAt('not known', 'not known')).toBe(1_000_000)
  expect(alerts.openedAt('old', 'another')).toBeUndefined()
})

it('asks once for each alert whether it was accepted while it catches up', async () => {
  let asked = 0
  const begin = Date.UTC(2001, 0, 1)
  const {
    version: _,
    where: _where,
    key,
    event: called,
    ...others
  } = alertProcess(360_000, { openedAt: () => void asked++, newestAtStart: begin + 86_400_000 })
  const placed = <Of extends object>(entry: Of) => ({ ...entry, position: '' })
  const functions: ProcessFunctions<AlertState | null, 'alert.firing' | 'alert.resolved' | 'log.gap'> = {
    ...others,
    key: (entry) => key(placed(entry)),
    event: (state, entry, context) => called(state, placed(entry), context),
  }
  const events = Array.from({ length: 1_000 }, (_event, n) => {
    const { firing, resolved } = episodeOf({ alert: `A${n}` })
    const event = { ...(n % 2 === 0 ? firing : resolved), recorded: begin + n * 10_000 }
    return n < 20 ? event : { ...unknownOf({ alert: 'B' }), recorded: event.recorded }
  })
  const settings = { onDeadLetter: () => undefined }

  await lastValueFrom(from(events).pipe(inMemory('alerts', Object(functions), settings)), {
    defaultValue: undefined,
  })

  expect(asked).toBe(20)
})
