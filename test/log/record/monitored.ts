import { simulatedStore } from '../../../src/log/memory/store.ts'
import { answer } from '../../support/serve.ts'
import { recordingLog, settled } from './recording-log.ts'

/** Monitors whose completions happen at times of the test's clock. */
export async function monitored() {
  const clock = { now: () => 0 }
  const at = await recordingLog({}, simulatedStore({ clock: () => clock.now() }))
  const { service, time } = at
  clock.now = () => time.now()
  const times = new Map<string, number[]>()
  const away = new Set<string>()
  service.intercept = (path, response) => {
    const [, , , id = '', kind] = new URL(path, 'http://localhost').pathname.split('/')
    if (kind !== 'events') return false
    if (away.has(id)) {
      answer(response, { message: 'away' }, 503)
      return true
    }
    const events = (times.get(id) ?? []).toReversed().map((ms) => ({
      event_type: 'completion',
      timestamp: new Date(ms).toISOString(),
    }))
    answer(response, { events })
    return true
  }
  return {
    ...at,
    /** The monitors whose requests the service refuses. */
    away,
    /** Something happens to these monitors now. */
    happens: (...ids: readonly string[]) => {
      for (const id of ids) times.set(id, [...(times.get(id) ?? []), time.now()])
    },
    /** Lets the time pass, in steps of a second, or of several. */
    pass: async (steps: number, seconds = 1) => {
      for (let step = 0; step < steps; step++) {
        time.advance(seconds * 1_000)
        await settled()
      }
    },
    watched: (...ids: readonly string[]) => ids.map((id) => ({ id, pollInterval: 10_000 })),
  }
}
