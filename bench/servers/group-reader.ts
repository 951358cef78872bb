/**
 * Reads task groups, `ours` or `by-hand`: `group-reader.ts {side} {url}`. `GET /?group={id}&group={id}` reads them once, and returns how
 * many events there were for each second of processor time; with `&full`, the events too.
 */
import { createServer } from 'node:http'
import { createClient } from 'rivulet'
import type { GroupRunEvent } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import { lastValueFrom, merge, tap } from 'rxjs'
import { readGroupsByHand } from '../by-hand/group-streams.ts'
import type { RunEvent } from '../by-hand/group-streams.ts'
import { perProcessorSecond } from '../rounds.ts'
import { listen } from '../server.ts'

const [side, url = ''] = process.argv.slice(2)
const options = { apiKey: 'none', initialDelay: 10, maxDelay: 1_000 }
const client = createClient({ baseUrl: url, ...options })

type Read = (
  groups: readonly string[],
  onEvent: (event: GroupRunEvent | RunEvent) => void,
) => Promise<unknown>

const byRivulet: Read = (groups, onEvent) =>
  lastValueFrom(merge(...groups.map((group) => client.taskGroups.runs(group))).pipe(dedupe(), tap(onEvent)))
const byHand: Read = (groups, onEvent) => readGroupsByHand(url, groups, options, onEvent)
const read = side === 'ours' ? byRivulet : byHand

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const isFull = searchParams.has('full')
  const events: unknown[] = []
  let count = 0
  const reading = perProcessorSecond(1, () =>
    read(searchParams.getAll('group'), (event) => {
      count += 1
      if (isFull) events.push(event)
    }),
  )
  reading.then(
    (perSecond) => response.end(JSON.stringify({ count, rate: count * perSecond, events })),
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
listen(server)
