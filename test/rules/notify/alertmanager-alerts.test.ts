import { expect, it } from 'vitest'
import { Alerts } from '../../../src/rules/notify/alertmanager-alerts.ts'
import type { FiringEntry, ResolvedEntry } from '../../../src/rules/notify/alert-entry.ts'
import { episodeOf } from './alerts.ts'

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
