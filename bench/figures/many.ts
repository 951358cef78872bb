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
 * Events per second of 500 concurrent groups, 2,000 events of 400 B each, typed, merged and with `dedupe`, against one such stream of
 * 200,000 events, both Rivulet's, in one process. It includes the 500 connections, and a request for the status after each stream.
 */
export const measure: Measure = async () => {
  await using server = await startServer('groups')
  const side = (groups: readonly string[], events: number) => () => {
    // A new client, so that no connection is reused.
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

/** Fails unless every event was received. */
async function readAll(client: ResearchClient, groups: readonly string[], events: number): Promise<void> {
  const runs = groups.map((group) => client.taskGroups.runs(group))
  expectCount(await lastValueFrom(merge(...runs).pipe(dedupe(), count())), events)
}
