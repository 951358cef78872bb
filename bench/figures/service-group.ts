import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { count, lastValueFrom } from 'rxjs'
import { request } from 'undici'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { floorStream } from '../floor.ts'
import { compare, inTurns, median, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const RUNS = 10_000
const READERS = 20
const HEADERS = { 'x-api-key': 'none' }

/**
 * `service-group`: events per second of 20 concurrent readers of a group of 10,000 ended runs (§4.5), against one reader that reads
 * the same bytes 20 times in a row from a `node:http` server with the bytes in memory. All readers are the floor's, in this
 * process; each server has its own. `bareAtOnce`: the `node:http` server with 20 readers, the ratio of a service without cost.
 */
export const measure: Measure = async (folder) => {
  const docs = join(folder, 'docs')
  mkdirSync(docs)
  await using service = await startServer('research', [docs])
  const path = await groupOf(service.url)
  const file = join(folder, 'stream')
  writeFileSync(file, await streamOf(service.url, path))
  await using bare = await startServer('replay', [file])

  const read = async (url: string) => expectCount(await floorStream(url, path, undefined, HEADERS), RUNS)
  const atOnce = (url: string) =>
    perSecond(RUNS * READERS, () => Promise.all(Array.from({ length: READERS }, () => read(url))))
  const oneByOne = async (url: string) => {
    for (let reader = 0; reader < READERS; reader++) await read(url)
  }
  const [ours, floor, bareAtOnce] = await inTurns([
    () => atOnce(service.url),
    () => perSecond(RUNS * READERS, () => oneByOne(bare.url)),
    () => atOnce(bare.url),
  ])
  const { ratio, ...details } = compare(ours, floor)
  return [
    result(
      'service-group',
      ratio,
      { atLeast: 0.5 },
      { ...details, bareAtOnce: rounded(median(bareAtOnce)), unit: 'events/s' },
    ),
  ]
}

/** Runs a group on the service. Resolves with the path of its stream after all runs have ended. */
async function groupOf(baseUrl: string): Promise<string> {
  const client = createClient({ baseUrl, apiKey: 'none' })
  const { taskgroup_id: id } = await lastValueFrom(client.taskGroups.create())
  const inputs = Array.from({ length: RUNS }, (_, number) => ({ input: `Run ${number}`, processor: 'base' }))
  await lastValueFrom(client.taskGroups.addRuns(id, { inputs }))
  expectCount(await lastValueFrom(client.taskGroups.runs(id).pipe(count())), RUNS, 'runs')
  return `/v1beta/tasks/groups/${id}/runs`
}

/** The bytes that the service sends to a reader. */
async function streamOf(origin: string, path: string): Promise<Uint8Array> {
  const { body } = await request(origin + path, { headers: HEADERS })
  return body.bytes()
}
