import { Subscription } from 'rxjs'
import { Gate } from '../../src/protocol/gate.ts'
import { Pauses } from '../../src/log/record/pauses.ts'
import { RecordingProgress } from '../../src/log/record/recording-progress.ts'
import type { StreamItem } from '../../src/sources/shapes/stream-item.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { median } from '../rounds.ts'

const MONITORS = 100_000
const LOOKS = 50
const INTERVAL = 60_000

/**
 * `progress-look-ms`: how long one look at the progress of 100,000 monitors takes, in ms. A recording looks once a second while events come.
 * `progress-poll-us`: what the progress of a stream costs one poll, in µs.
 */
export const measure: Measure = async () => {
  let now = 0
  const progress = new RecordingProgress(
    new Pauses(new Gate(), { now: () => now, schedule: () => Subscription.EMPTY }),
    () => true,
    900_000,
  )
  const names = Array.from({ length: MONITORS }, (_, n) => `monitors/monitor_${n}`)
  for (const name of names) progress.join({ name, source: name, isPolled: true })
  const polls = names.map((name) =>
    (['polling', 'caughtUp'] as const).map((kind) => ({ kind, stream: { name } }) as StreamItem),
  )
  const looks: number[] = []
  const took: number[] = []
  for (let look = 0; look < LOOKS; look++) {
    const began = performance.now()
    for (const [n, items] of polls.entries()) {
      now = look * INTERVAL + (n * INTERVAL) / MONITORS
      for (const item of items) progress.took(item, now)
    }
    took.push(((performance.now() - began) / MONITORS) * 1_000)
    const lookBegan = performance.now()
    progress.look(now)
    looks.push(performance.now() - lookBegan)
  }
  return [
    result('progress-look-ms', median(looks), { atMost: 50 }, { monitors: MONITORS, unit: 'ms' }),
    result('progress-poll-us', median(took), undefined, { unit: 'µs' }),
  ]
}
