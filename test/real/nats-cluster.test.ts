import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Kvm } from '@nats-io/kv'
import { FencedError } from '../../src/log/errors.ts'
import { Connection } from '../../src/log/nats/server/connection.ts'
import { LogMetadata } from '../../src/log/nats/server/log-metadata.ts'
import { publishConditionally } from '../../src/log/nats/server/conditional-publish.ts'
import { lastMessage } from '../../src/log/nats/server/write-order.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import type { NatsStoreOptions } from '../../src/log/nats/index.ts'
import type { LogStore } from '../../src/log/store/contract.ts'
import { append, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { audit } from './nats/audit.ts'
import { NatsCluster } from './nats/cluster.ts'

let cluster: NatsCluster
let logs = 0

beforeAll(async () => {
  cluster = await NatsCluster.start()
})

afterAll(() => cluster.remove())

const newName = () => `cluster-${++logs}`

function open(name: string, options: Partial<NatsStoreOptions> = {}): LogStore {
  const log = natsStore({ servers: cluster.urls, name, ...options })
  onTestFinished(() => log.close())
  return log
}

async function connected(name: string, server: number): Promise<Connection> {
  const connection = await Connection.open({
    client: { servers: cluster.url(server) },
    log: name,
    partitions: 1,
    replicas: undefined,
    lease: 10_000,
  })
  onTestFinished(() => connection.close())
  return connection
}

/** Calls that begin at the same moment, by logs that are connected to different servers. */
const at = <Result>(call: (server: number) => Promise<Result>) => Promise.all([0, 1, 2].map(call))

describe('writers that write to a cluster at the same moment', () => {
  it('are not all acknowledged where one message was expected', async () => {
    const name = newName()
    const connections = await at((server) => connected(name, server))
    const [first] = connections
    if (first === undefined) throw new Error('there are three')
    const { names } = first
    const subject = names.journal('of the test')
    let expected = 0
    for (let round = 0; round < 40; round++) {
      const sequences = await Promise.all(
        connections.map((connection, i) =>
          publishConditionally(connection, {
            stream: names.state,
            subject,
            id: `${round}.${i}`,
            expect: expected,
            payload: String(i),
          }),
        ),
      )
      const stored = sequences.filter((sequence) => sequence !== undefined)
      expect(stored).toHaveLength(1)
      const last = await lastMessage(first, names.state, subject)
      expect(last?.message).toMatchObject({ seq: stored[0] })
      expect(last?.message.string()).toBe(String(sequences.indexOf(stored[0])))
      expected = last?.end ?? 0
    }
  })

  it('lose no change of what the log knows of itself', async () => {
    const name = newName()
    const connections = await at((server) => connected(name, server))
    const records = await Promise.all(connections.map((connection) => LogMetadata.open(connection, 1)))
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        records.map((record) => record.change((about) => ({ ...about, uptime: about.uptime + 1 }))),
      )
    }
    expect(await records[0]?.read()).toMatchObject({ uptime: 60 })
  })

  it('have each commit of an owner or none of it, while another one takes the name over', async () => {
    const name = newName()
    // Otherwise the owner may renew its lease after it was taken, and the other one would wait for ever.
    const LEASE = 3_600_000
    const stores = [0, 1].map((server) =>
      open(name, { servers: cluster.url(server), owner: `${server}`, lease: LEASE }),
    )
    const [store] = stores
    if (store === undefined) throw new Error('there are two')
    const ROUNDS = 30
    const writing = await store.claim('stream')
    await append(store, writing, ...Array.from({ length: ROUNDS }, (_, n) => change(String(n))))
    const positions = (await readAll(store)).map(({ position }) => position)
    const { nats } = await cluster.manager()
    const leases = await new Kvm(nats).open(`rivulet_${name}_leases`)
    const wait = new AbortController().signal
    let owner = 0
    let fence = await store.claim('reader')
    let committed = 0
    for (let round = 0; round < ROUNDS; round++) {
      const [from, to] = [stores[owner % 2], stores[(owner + 1) % 2]]
      if (from === undefined || to === undefined) throw new Error('there are two')
      for await (const key of await leases.keys()) await leases.delete(key)
      const expected = (await from.reader('reader'))?.cursor ?? null
      const checkpoint = String(committed + 1)
      const commit = from.commit(fence, {
        expect: expected,
        cursor: positions[committed] ?? '',
        acknowledged: [],
        process: { checkpoint, state: [], timers: [] },
      })
      const [outcome, next] = await Promise.all([
        commit.then(
          () => 1,
          (error: unknown) => {
            expect(error).toBeInstanceOf(FencedError)
            return 0
          },
        ),
        to.claim('reader', { wait }),
      ])
      committed += outcome
      fence = next
      owner += 1
      for (const each of stores)
        expect((await each.reader('reader'))?.process?.checkpoint).toBe(
          committed === 0 ? undefined : String(committed),
        )
      // By the last message alone.
      expect((await to.reader('reader'))?.cursor).toBe(positions[committed - 1])
    }
    expect(committed).toBeGreaterThan(0)
  })

  it('store each entry once where they append the same ones to the same sources', async () => {
    const name = newName()
    const ids = Array.from({ length: 60 }, (_, n) => String(n))
    const writers = await at(async (server) => {
      const log = open(name, { servers: cluster.url(server), owner: `${server}` })
      return { log, server, fence: await log.claim(`stream ${server}`) }
    })
    for (let n = 0; n < ids.length; n += 4) {
      const some = ids.slice(n, n + 4)
      await Promise.all(
        writers.map(({ log, server, fence }) =>
          append(
            log,
            fence,
            ...some.map((id) => change(id, 'both')),
            ...some.map((id) => change(`${server}.${id}`, 'each')),
          ),
        ),
      )
    }
    const found = await audit(cluster.url(0), name)
    expect(found['/v1/monitors/both']).toEqual(ids)
    for (const server of ['0', '1', '2']) {
      const own = found['/v1/monitors/each']?.filter((id) => id.startsWith(`${server}.`))
      expect(own).toEqual(ids.map((id) => `${server}.${id}`))
    }
    expect((await readAll(open(name))).length).toBe(4 * ids.length)
  })
})
