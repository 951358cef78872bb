import { connect } from '@nats-io/transport-node'
import { Kvm } from '@nats-io/kv'
import { afterAll, beforeAll } from 'vitest'
import type { LogStore } from '../../src/log/store/contract.ts'
import { natsLog } from '../../src/log/nats-log.ts'
import { describeLogStore } from '../log/conformance.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer
let logs = 0

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

describeLogStore('a log on a NATS server', async ({ clock, inbox = {} }) => {
  const name = `log-${++logs}`
  const owners = new Map<LogStore, string>()
  return {
    async connect(owner) {
      // Renewed after 20 s, so that a lease that a test takes away does not come back.
      const log = natsLog({ servers: server.url, name, owner, clock, inbox, lease: 60_000 })
      owners.set(log, owner)
      return log
    },
    async loseClaims(log) {
      const nats = await connect({ servers: server.url })
      const leases = await new Kvm(nats).open(`rivulet_${name}_leases`)
      for await (const key of await leases.keys()) {
        const lease = (await leases.get(key))?.json<{ owner: string }>()
        if (lease?.owner === owners.get(log)) await leases.delete(key)
      }
      await nats.close()
    },
    async remove() {
      await Promise.all([...owners.keys()].map((log) => log.close()))
    },
  }
})
