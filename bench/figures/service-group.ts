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
 * `service-group`: a group of 10,000 ended runs (§4.5), streamed by the service to 20 readers at once, events a second of all
 * of them together, against one reader that reads the same bytes 20 times, one time after the other, from a bare `node:http`
 * server that has them in memory. All readers are the floor's, in this process; each server has a process of its own.
 * `bareAtOnce` in the details is the bare server with 20 readers at once: what is left of the ratio if the service cost nothing.
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

/** Has the service carry out a group of runs; the path of their stream, once all have ended. */
async function groupOf(baseUrl: string): Promise<string> {
  const client = createClient({ baseUrl, apiKey: 'none' })
  const { taskgroup_id: id } = await lastValueFrom(client.taskGroups.create())
  const inputs = Array.from({ length: RUNS }, (_, number) => ({ input: `Run ${number}`, processor: 'base' }))
  await lastValueFrom(client.taskGroups.addRuns(id, { inputs }))
  expectCount(await lastValueFrom(client.taskGroups.runs(id).pipe(count())), RUNS, 'runs')
  return `/v1beta/tasks/groups/${id}/runs`
}

/** The bytes that a reader of the service gets. */
async function streamOf(origin: string, path: string): Promise<Uint8Array> {
  const { body } = await request(origin + path, { headers: HEADERS })
  return body.bytes()
}
