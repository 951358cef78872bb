import { createClient } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import { count, lastValueFrom, merge } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { floorStream } from '../floor.ts'
import { compare, inTurns, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const SIZES = [
  { name: 'stream-400b', events: 200_000, bytes: 400 },
  { name: 'stream-10kb', events: 20_000, bytes: 10_000 },
]

/**
 * Events per second of two groups' runs, typed, merged and with `dedupe`, against the floor, which does a
 * part of this work. The details have the ratio without `dedupe`.
 */
export const measure: Measure = async () => {
  await using server = await startServer('groups')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const results = []
  for (const { name, events, bytes } of SIZES) {
    const groups = ['a', 'b'].map((letter) => `${events / 2}x${bytes}x${letter}`)
    const rate = (read: () => Promise<number>) => () =>
      perSecond(events, async () => {
        expectCount(await read(), events)
      })
    const merged = () => merge(...groups.map((group) => client.taskGroups.runs(group)))
    const [ours, bare, plain] = await inTurns([
      rate(() => lastValueFrom(merged().pipe(dedupe(), count()))),
      rate(async () => {
        const counts = groups.map((group) => floorStream(server.url, `/v1beta/tasks/groups/${group}/runs`))
        return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0)
      }),
      rate(() => lastValueFrom(merged().pipe(count()))),
    ])
    const { ratio, ...details } = compare(ours, bare)
    const withoutDedupe = rounded(compare(plain, bare).ratio)
    results.push(result(name, ratio, undefined, { ...details, withoutDedupe, unit: 'events/s' }))
  }
  return results
}
