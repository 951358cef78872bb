import { createClient } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import { count, lastValueFrom, merge } from 'rxjs'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { floorStream } from '../floor.ts'
import { alternately, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const SIZES = [
  { name: 'stream-400b', events: 200_000, bytes: 400, atLeast: 0.9 },
  { name: 'stream-10kb', events: 20_000, bytes: 10_000, atLeast: 0.97 },
]

/** Events a second of two groups' runs, as typed events, merged and without duplicates, against the floor. */
export const measure: Measure = async () => {
  await using server = await startServer('groups')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const results = []
  for (const { name, events, bytes, atLeast } of SIZES) {
    const groups = ['a', 'b'].map((letter) => `${events / 2}x${bytes}x${letter}`)
    const expect = (got: number) => {
      if (got !== events) throw new Error(`${got} events came, ${events} were to come`)
    }
    const ours = async () => {
      const runs = groups.map((group) => client.taskGroups.runs(group))
      expect(await lastValueFrom(merge(...runs).pipe(dedupe(), count())))
    }
    const floor = async () => {
      const counts = groups.map((group) => floorStream(server.url, `/v1beta/tasks/groups/${group}/runs`))
      expect((await Promise.all(counts)).reduce((sum, each) => sum + each, 0))
    }
    const { ratio, ...details } = await alternately(
      () => perSecond(events, ours),
      () => perSecond(events, floor),
    )
    results.push(result(name, ratio, { atLeast }, { ...details, unit: 'events/s' }))
  }
  return results
}
