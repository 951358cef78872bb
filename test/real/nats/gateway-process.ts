/** A gateway over a log on a NATS server, until it is killed. Sends its port, and a token. */
import { createServer } from 'node:http'
import { openLog } from 'rivulet/log'
import { createGateway, nodeListener } from 'rivulet/gateway'
import { natsStore } from '../../../src/log/nats/index.ts'
import { views } from '../../gateway/soak/cells.ts'

/** What it is started with. */
export interface GatewaySettings {
  readonly servers: string
  readonly name: string
  readonly lease: number
}

/** What it sends. */
export interface GatewayAddress {
  readonly port: number
  readonly token: string
}

const settings: GatewaySettings = JSON.parse(process.argv[2] ?? '')
const log = await openLog(natsStore(settings))
const gateway = createGateway({ log, views, tokens: { secret: 's'.repeat(32) } })
// A gateway that fails ends the process, which the test notices.
gateway.done.catch((error: unknown) => {
  process.stderr.write(`${error}\n`)
  process.exit(1)
})
process.on('disconnect', () => process.exit())
const token = await gateway.grant({
  sub: 'browser',
  views: ['all', 'list'],
  sources: ['/v1/monitors/*'],
  types: ['monitor.event_stream'],
})
const server = createServer(nodeListener(gateway)).listen(0, '127.0.0.1', () => {
  process.send?.({ port: Object(server.address()).port, token })
})
