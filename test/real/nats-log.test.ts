import { inspect } from 'node:util'
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
import { append, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
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
  async function openedWith(config: Partial<StreamConfig>): Promise<unknown> {
    const name = `log-${++logs}`
    const nats = await connect({ servers: server.url })
    const jsm = await jetstreamManager(nats)
    await jsm.streams.add({
      name: `rivulet_${name}_events`,
      subjects: [`rv.${name}.ev.>`],
      allow_rollup_hdrs: true,
      discard: 'new',
      ...config,
    })
    await nats.close()
    const log = natsLog({ servers: server.url, name })
    onTestFinished(() => log.close())
    return log.positionAt('end').catch((error: unknown) => error)
  }

  it('takes a stream with other settings that lose nothing', async () => {
    const config = { max_bytes: 1024 ** 3, duplicate_window: 1e9, description: 'ours' }
    expect(await openedWith(config)).toEqual(expect.any(String))
  })

  it.each<[string, Partial<StreamConfig>]>([
    ['is kept in memory', { storage: 'memory' }],
    ['deletes messages by their age', { max_age: 3_600e9 }],
    ['deletes old messages where it is full', { max_bytes: 1024 ** 3, discard: 'old' }],
    ['has a maximum of messages for each subject', { max_msgs_per_subject: 5 }],
    ['has the retention "workqueue"', { retention: 'workqueue' }],
    ['cannot be made shorter', { deny_purge: true, allow_rollup_hdrs: false }],
  ])('refuses a stream that %s', async (problem, config) => {
    const error = await openedWith(config)
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

describe('the times of a log on a NATS server', () => {
  it('never decrease and are the same wherever reading begins, with writers whose clocks differ', async () => {
    const name = `log-${++logs}`
    let now = 100_000
    // The other one is late, and sometimes ahead.
    const skews = [-5_000, 3_000, -20, 0]
    const writers = [() => (now += 10), () => now + (skews[now % skews.length] ?? 0)].map((clock, i) => {
      const log = natsLog({ servers: server.url, name, owner: `writer ${i}`, clock })
      onTestFinished(() => log.close())
      return log
    })
    await Promise.all(
      writers.map(async (log, i) => {
        const fence = await log.claim(`stream ${i}`)
        for (let n = 0; n < 60; n++) {
          now += 7
          const events = [change(`${n}a`, `m${i}`), change(`${n}b`, `m${i}`), change(`${n}`, `other${i}`)]
          await append(log, fence, ...events)
        }
      }),
    )
    const reader = natsLog({ servers: server.url, name })
    onTestFinished(() => reader.close())
    const entries = await readAll(reader)
    expect(entries).toHaveLength(360)
    const times = entries.map(({ recorded }) => recorded)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    for (let i = 0; i < entries.length; i += 7) {
      const page = await reader.read(entries[i]?.position ?? '', { limit: 3 })
      expect(page.entries).toEqual(entries.slice(i + 1, i + 4))
      const { recorded, position } = entries[i] ?? { recorded: 0, position: '' }
      const first = await reader.read(await reader.positionAt({ time: recorded }), { limit: 1 })
      expect(first.entries).toEqual([entries.find((entry) => entry.recorded === recorded)])
      expect(await reader.positionAt({ time: recorded })).not.toBe(position)
    }
  })
})

describe('the sign-in of a log at a NATS server', () => {
  const password = 'a password of the test'
  const CONFIG = (name: string) => `
    authorization {
      users = [{
        user: "rivulet", password: "${password}",
        permissions: {
          publish: ["rv.${name}.>", "$KV.rivulet_${name}_leases.>", "$JS.API.>"]
          subscribe: ["rv.${name}.>", "_INBOX.>"]
        }
      }]
    }`

  it('needs the permissions of docs/scale.md alone, and refuses another password without naming it', async () => {
    const guarded = await NatsServer.start(CONFIG('watch'))
    onTestFinished(() => guarded.remove())
    const open = (options: Partial<NatsLogOptions>) => {
      const log = natsLog({ servers: guarded.url, name: 'watch', ...options })
      onTestFinished(() => log.close())
      return log
    }
    const log = open({ credentials: { user: 'rivulet', password } })
    const other = open({ credentials: { user: 'rivulet', password } })
    const end = await other.positionAt('end')
    const waiting = other.wait(end, new AbortController().signal)
    const fence = await log.claim('stream')
    await append(log, fence, change('1'), change('2'))
    await waiting
    await log.commit(fence, { expect: null, cursor: end, acknowledged: [] })
    await log.inbox.put({ id: 'w', timestamp: 1, payload: {} }, '{}')
    await log.retention.trim({ limit: 1 })
    expect(await other.retention.stats()).toMatchObject({ entries: 2, inbox: { pending: 1 } })
    expect(await readAll(other)).toHaveLength(2)

    const wrong = 'the wrong password'
    for (const credentials of [{ user: 'rivulet', password: wrong }, { token: wrong }]) {
      const error = await open({ credentials })
        .positionAt('end')
        .catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(LogServerError)
      expect(error).toMatchObject({ retryable: false })
      expect(JSON.stringify([inspect(error), error])).not.toContain(wrong)
    }
  })
})
