import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { count, lastValueFrom } from 'rxjs'
import { request } from 'undici'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { floorStream } from '../floor.ts'
import { inTurns, median, perSecond, quantile } from '../rounds.ts'
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
export const measure: Measure = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-group-'))
  try {
    const docs = join(folder, 'docs')
    mkdirSync(docs)
    await using service = await startServer('research', [docs])
    const path = await groupOf(service.url)
    const file = join(folder, 'stream')
    writeFileSync(file, await streamOf(service.url, path))
    await using bare = await startServer('replay', [file])

    const read = async (url: string) => {
      const events = await floorStream(url, path, undefined, HEADERS)
      if (events !== RUNS) throw new Error(`${events} events came, ${RUNS} were to come`)
    }
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
    const ratios = ours.map((value, round) => value / (floor[round] ?? NaN))
    return [
      result(
        'service-group',
        median(ratios),
        { atLeast: 0.5 },
        {
          quartiles: [rounded(quantile(ratios, 0.25)), rounded(quantile(ratios, 0.75))],
          ours: rounded(median(ours)),
          theirs: rounded(median(floor)),
          bareAtOnce: rounded(median(bareAtOnce)),
          rounds: ratios.length,
          unit: 'events/s',
        },
      ),
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Has the service carry out a group of runs; the path of their stream, once all have ended. */
async function groupOf(baseUrl: string): Promise<string> {
  const client = createClient({ baseUrl, apiKey: 'none' })
  const { taskgroup_id: id } = await lastValueFrom(client.taskGroups.create())
  const inputs = Array.from({ length: RUNS }, (_, number) => ({ input: `Run ${number}`, processor: 'base' }))
  await lastValueFrom(client.taskGroups.addRuns(id, { inputs }))
  const ended = await lastValueFrom(client.taskGroups.runs(id).pipe(count()))
  if (ended !== RUNS) throw new Error(`${ended} runs have ended, ${RUNS} were to end`)
  return `/v1beta/tasks/groups/${id}/runs`
}

/** The bytes that a reader of the service gets. */
async function streamOf(origin: string, path: string): Promise<Uint8Array> {
  const { body } = await request(origin + path, { headers: HEADERS })
  return body.bytes()
}
