import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import { count, lastValueFrom, merge } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const BYTES = 400
const STREAMS = 500
const EVENTS_EACH = 2_000
const ALONE = 200_000

/**
 * Events a second of 500 groups' runs at once, 2,000 events of 400 B in each, which makes a million in all, as typed
 * events, merged and without duplicates, against a single such stream of 200,000 events: both ours, in one process. The
 * time of the many has their 500 connections in it, and the question after each stream whether its group is done.
 */
export const measure: Measure = async () => {
  await using server = await startServer('groups')
  const side = (groups: readonly string[], events: number) => () => {
    // A client has its own connections: those of the many are not left to the one.
    const client = createClient({ baseUrl: server.url, apiKey: 'none' })
    return perSecond(events, () => readAll(client, groups, events))
  }
  const names = Array.from({ length: STREAMS }, (_, at) => `${EVENTS_EACH}x${BYTES}x${at}`)
  const { ratio, ...details } = await alternately(
    side(names, STREAMS * EVENTS_EACH),
    side([`${ALONE}x${BYTES}`], ALONE),
    { rounds: 7, warmUp: 1 },
  )
  return [result('many-streams', ratio, { atLeast: 0.85 }, { ...details, unit: 'events/s' })]
}

/** Fails unless every event came. */
async function readAll(client: ResearchClient, groups: readonly string[], events: number): Promise<void> {
  const runs = groups.map((group) => client.taskGroups.runs(group))
  expectCount(await lastValueFrom(merge(...runs).pipe(dedupe(), count())), events)
}
