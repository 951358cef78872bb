import { jetstreamManager } from '@nats-io/jetstream'
import type { StreamConfig } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { Kvm } from '@nats-io/kv'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { LogStore } from '../../src/log/store/contract.ts'
import { LogServerError } from '../../src/log/errors.ts'
import { natsLog } from '../../src/log/nats-log.ts'
import type { NatsLogOptions } from '../../src/log/nats-log.ts'
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

describe('the opening of a log on a NATS server', () => {
  /** Opens a log whose stream of entries has something else. */
  async function openedWith(change: Partial<StreamConfig>): Promise<unknown> {
    const name = `log-${++logs}`
    const nats = await connect({ servers: server.url })
    const jsm = await jetstreamManager(nats)
    await jsm.streams.add({
      name: `rivulet_${name}_events`,
      subjects: [`rv.${name}.ev.>`],
      allow_rollup_hdrs: true,
      discard: 'new',
      ...change,
    })
    await nats.close()
    const log = natsLog({ servers: server.url, name })
    onTestFinished(() => log.close())
    return log.positionAt('end').catch((error: unknown) => error)
  }

  it('takes a stream with other settings that lose nothing', async () => {
    const change = { max_bytes: 1024 ** 3, duplicate_window: 1e9, description: 'ours' }
    expect(await openedWith(change)).toEqual(expect.any(String))
  })

  it.each<[string, Partial<StreamConfig>]>([
    ['is kept in memory', { storage: 'memory' }],
    ['deletes messages by their age', { max_age: 3_600e9 }],
    ['deletes old messages where it is full', { max_bytes: 1024 ** 3, discard: 'old' }],
    ['has a maximum of messages for each subject', { max_msgs_per_subject: 5 }],
    ['has the retention "workqueue"', { retention: 'workqueue' }],
    ['cannot be made shorter', { deny_purge: true, allow_rollup_hdrs: false }],
  ])('refuses a stream that %s', async (problem, change) => {
    const error = await openedWith(change)
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({ message: expect.stringContaining(problem), retryable: false })
  })

  it('refuses another number of partitions, another lease and too few copies, each with what the log has', async () => {
    const name = `log-${++logs}`
    const open = async (options: Partial<NatsLogOptions>) => {
      const log = natsLog({ servers: server.url, name, ...options })
      onTestFinished(() => log.close())
      return log.positionAt('end').catch((error: unknown) => error)
    }
    const end = await open({ partitions: 8 })
    expect(await open({ partitions: 9 })).toMatchObject({ argument: 'partitions', value: 9 })
    expect(await open({ lease: 5_000 })).toMatchObject({ argument: 'lease', value: 5_000 })
    expect(await open({ replicas: 3 })).toMatchObject({
      name: 'LogServerError',
      message: expect.stringContaining('has 1 of 3 copies'),
    })
    expect(await open({})).toBe(end)
  })
})
