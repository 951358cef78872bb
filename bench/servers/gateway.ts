/**
 * A gateway at `/live`, and a bare server of events at `/bare`: a list of responses, and a loop that writes to each of them. For the message
 * `append`, an event is appended to the log; for `write`, the same row is written to the bare responses; `many` of either kind
 * are done one after the other. Each row has the time at which that began, in ns of `process.hrtime`. Its argument is the file of the
 * log, or `memory`. Sends its port, and then a token.
 */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { memoryStore, openLog } from 'rivulet/log'
import { createGateway, nodeListener, view } from 'rivulet/gateway'
import { sqliteStore } from 'rivulet/log/sqlite'
import { change } from '../../test/operators/events.ts'
import { listen } from '../server.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const [file = ''] = process.argv.slice(2)
const store = file === 'memory' ? memoryStore() : sqliteStore(file)
const log = await openLog(store)
const events = view({
  version: 1,
  types: ['monitor.event_stream'],
  // The rows stay few, as those of a view do.
  key: ({ data }) => [`${data.event_date}`],
  reduce: (_, { data }) => ({ at: data.event_id, output: data.output }),
  source: () => '/v1/monitors/m',
})
const gateway = createGateway({
  log,
  views: { events },
  tokens: { secret: 's'.repeat(32) },
  maxConnections: 1_000,
})
const fence = await store.claim('stream:bench')
let count = 0

function nextEvent() {
  const event = change(`${process.hrtime.bigint()}`)
  if (event.type !== 'monitor.event_stream') throw new Error('a change is no event of a stream')
  count += 1
  return { ...event, data: { ...event.data, event_date: `${count % 1_000}` } }
}

async function append(): Promise<void> {
  await store.append([{ fence, expect: null, entries: [newEntry(nextEvent())] }])
}

const bare = new Set<ServerResponse>()
async function write(): Promise<void> {
  const { data } = nextEvent()
  const row = JSON.stringify([data.event_date, { at: data.event_id, output: data.output }])
  const frame = `event: changes\ndata: {"view":"events","rows":[${row}],"position":"${count}"}\n\n`
  for (const response of bare) response.write(frame)
}

const listener = nodeListener(gateway)
const server = createServer((request, response) => {
  if (request.url !== '/bare') return listener(request, response)
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  bare.add(response)
  response.on('close', () => bare.delete(response))
})
process.on(
  'message',
  async ({ side, many }: { readonly side: 'gateway' | 'bare'; readonly many: number }) => {
    for (let each = 0; each < many; each++) await (side === 'gateway' ? append() : write())
  },
)
const token = await gateway.grant({ sub: 'reader', views: ['events'], sources: ['*'], timeToLive: 3_600_000 })
server.once('listening', () => setImmediate(() => process.send?.({ token })))
listen(server)
