/** A gateway over a log, which is killed: `gateway-process.ts FILE HOLDS-RETENTION`. Sends its port, and a token for each message. */
import { createServer } from 'node:http'
import { openLog } from 'rivulet/log'
import { createGateway, nodeListener } from 'rivulet/gateway'
import { sqliteStore } from 'rivulet/log/sqlite'
import { views } from './cells.ts'

const [, , file = '', holdsRetention = ''] = process.argv
const log = await openLog(sqliteStore(file))
const gateway = createGateway({
  log,
  views,
  tokens: { secret: 's'.repeat(32) },
  heartbeat: 300,
  holdsRetention: holdsRetention === 'true',
})
// Only the process waits for it, and ends with it.
gateway.done.catch((error: unknown) => {
  process.stderr.write(`${error}\n`)
  process.exit(1)
})
process.on('message', (request) => {
  void gateway
    .grant({ sub: 'browser', views: ['all', 'list'], sources: ['/v1/monitors/*'], timeToLive: 3_000 })
    .then((token) => process.send?.({ request, token }))
})
process.on('disconnect', () => process.exit())
const server = createServer(nodeListener(gateway)).listen(0, '127.0.0.1', () => {
  process.send?.({ port: Object(server.address()).port })
})
