/**
 * A gateway for many clients, in a process of its own: `crowd-gateway.ts BULK`, the size of a row of its larger view in bytes. Sends its port and tokens; appends an event for
 * each message `append`, and answers `state` with what it uses, what it has counted and how many connections are open.
 */
import { createServer } from 'node:http'
import { memoryStore, openLog } from 'rivulet/log'
import { createGateway, nodeListener, view } from 'rivulet/gateway'
import { change } from '../../operators/events.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

const [, , bytes = ''] = process.argv
const store = memoryStore()
const log = await openLog(store)
const rows = (size: number) => {
  const text = 'x'.repeat(size)
  return view({
    version: 1,
    types: ['monitor.event_stream'],
    key: ({ id }) => [id],
    // When it was appended, by the clock that all processes of the machine share.
    reduce: (_, { data }) => ({ at: data.event_group_id, text, hidden: 1 }),
    source: () => '/v1/monitors/m',
  })
}
const views = { events: rows(1_000), bulk: rows(Number(bytes)) }
const gateway = createGateway({ log, views, tokens: { secret: 's'.repeat(32) }, maxConnections: 1_000 })
let encoded = 0
let sent = 0
let open = 0
gateway.observe({
  connected: () => {
    open += 1
    return () => void (open -= 1)
  },
  encoded: () => void (encoded += 1),
  sent: (size) => void (sent += size),
})
const sources = ['/v1/monitors/m']
const grant = { views: ['events', 'bulk'], sources, timeToLive: 3_600_000 } as const
const tokens = await Promise.all([
  gateway.grant({ sub: 'one', ...grant }),
  gateway.grant({ sub: 'other', ...grant, omit: ['hidden'] }),
])
const fence = await store.claim('stream:events')
let appended = 0
async function appendOne(): Promise<void> {
  const event = change(`${(appended += 1)}`)
  if (event.type !== 'monitor.event_stream') return
  const at = `${process.hrtime.bigint()}`
  const entry = newEntry({ ...event, data: { ...event.data, event_group_id: at } })
  await store.append([{ fence, expect: null, entries: [entry] }])
}
process.on('message', (message) => {
  if (message === 'append') void appendOne()
  else {
    globalThis.gc?.()
    const { heapUsed, heapTotal, external, rss } = process.memoryUsage()
    process.send?.({ used: heapUsed + external, heap: heapTotal + external, rss, encoded, sent, open })
  }
})
process.on('disconnect', () => process.exit())
const server = createServer(nodeListener(gateway)).listen(0, '127.0.0.1', () => {
  process.send?.({ port: Object(server.address()).port, tokens })
})
