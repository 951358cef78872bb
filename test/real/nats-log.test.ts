import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { StreamConfig } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { Kvm } from '@nats-io/kv'
import { openLog } from 'rivulet/log'
import { deliver } from 'rivulet/operators'
import { lastValueFrom, take } from 'rxjs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { OpenNatsLogSettings } from '../../src/log/nats/open-log.ts'
import { NatsLogStore } from '../../src/log/nats/store.ts'
import type { LogStore } from '../../src/log/store/contract.ts'
import { LogServerError } from '../../src/log/errors.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import type { NatsStoreOptions } from '../../src/log/nats/index.ts'
import { describeLogStore } from '../log/conformance.ts'
import { research } from '../e2e/research.ts'
import { append, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer
let logs = 0

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

describeLogStore(
  'a log on a NATS server',
  async ({ clock, inbox = {} }) => {
    const name = `log-${++logs}`
    const owners = new Map<LogStore, string>()
    return {
      async connect(owner) {
        // Renewed after 20 s, so that a lease that a test takes away does not come back.
        const log = natsStore({ servers: server.url, name, owner, clock, inbox, lease: 60_000 })
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
  },
  false,
)

describe('a writer of a log on a NATS server', () => {
  it('is not believed however long its clock differs from that of the server', async () => {
    const YEAR = 365 * 24 * 3_600_000
    const [now, ticks] = [Date.now, process.hrtime.bigint]
    let [passed, jumped] = [0, 0]
    vi.spyOn(Date, 'now').mockImplementation(() => now() + passed + jumped)
    vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => ticks() + BigInt(passed) * 1_000_000n)
    onTestFinished(() => void vi.restoreAllMocks())
    const log = natsStore({ servers: server.url, name: `log-${++logs}` })
    onTestFinished(() => log.close())
    const fence = await log.claim('stream:s')
    jumped = YEAR
    // The first entry of all has the server's time.
    await append(log, fence, change('first'))
    for (let minute = 0; minute <= 12; minute++) {
      passed += 60_000
      await append(log, fence, change(String(minute)))
    }
    const { newest } = await log.retention.stats()
    expect(Math.abs((newest ?? 0) - (now() + passed))).toBeLessThan(20_000)
    const types = (await readAll(log)).map(({ type }) => type)
    expect(types.filter((type) => type === 'log.clock')).toHaveLength(1)
    const restarted = natsStore({ servers: server.url, name: `log-${logs}` })
    onTestFinished(() => restarted.close())
    await append(restarted, await restarted.claim('stream:t'), change('again'))
    expect(((await restarted.retention.stats()).newest ?? 0) - (now() + passed)).toBeLessThan(20_000)
  })
})

describe('an operator who looks at a log on a NATS server', () => {
  it('sees what each entry is about, and what each stream is for', async () => {
    const name = `log-${++logs}`
    const log = natsStore({ servers: server.url, name })
    onTestFinished(() => log.close())
    const odd = { ...change('2'), source: `é\r\nRv-Entry: ${'x'.repeat(10_000)}`, type: ' \u202E' }
    await append(log, await log.claim('stream:s'), change('1'), odd as ReturnType<typeof change>)
    const nats = await connect({ servers: server.url })
    onTestFinished(() => nats.close())
    const jsm = await jetstreamManager(nats)
    // As docs/guides/many-machines.md says.
    const hashOf = (source: string) => createHash('sha256').update(source).digest('base64url').slice(0, 22)
    const lastOf = (source: string) =>
      jsm.streams.getMessage(`rivulet_${name}_events`, { last_by_subj: `rv.${name}.ev.*.${hashOf(source)}` })
    const hash = hashOf('/v1/monitors/m')
    const [last, lastOdd] = [await lastOf('/v1/monitors/m'), await lastOf(odd.source)]
    expect(last?.header.values('Rv-Type')).toEqual(['monitor.event_stream'])
    expect(last?.header.values('Rv-Source')).toEqual(['/v1/monitors/m'])
    expect(lastOdd?.header.values('Rv-Type')).toEqual(['%20%E2%80%AE'])
    expect(lastOdd?.header.values('Rv-Source')).toEqual([
      expect.stringMatching(/^%C3%A9%0D%0ARv-Entry:%20x{187}$/),
    ])
    expect(lastOdd?.header.values('Rv-Entry')).toHaveLength(1)
    expect(last?.json()).toMatchObject({ id: change('1').id })
    const streams = [`rivulet_${name}_events`, `rivulet_${name}_state`, `KV_rivulet_${name}_leases`]
    const infos = await Promise.all(streams.map((stream) => jsm.streams.info(stream)))
    const descriptions = infos.map(({ config }) => config.description)
    expect(descriptions).toEqual([
      expect.stringContaining(`Entries of the log "${name}"`),
      expect.stringContaining(`State of the log "${name}"`),
      expect.stringContaining(`Leases of the log "${name}"`),
    ])
    // An entry from before these headers.
    const fields = headers()
    fields.set('Rv-Entry', 'x 1 0 1 2 unknown')
    await jetstream(nats).publish(`rv.${name}.ev.0.${hash}`, JSON.stringify(change('3')), { headers: fields })
    expect((await readAll(log)).map(({ id }) => id)).toEqual(['1', '2', '3'])
  })
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
    const log = natsStore({ servers: server.url, name })
    onTestFinished(() => log.close())
    return log.positionAt('end').catch((error: unknown) => error)
  }

  it('creates one log, however many processes open it at the same moment', async () => {
    for (let round = 0; round < 5; round++) {
      const name = `log-${++logs}`
      const ends = await Promise.all(
        Array.from({ length: 16 }, (_, n) => {
          const log = natsStore({ servers: server.url, name, owner: `owner ${n}` })
          onTestFinished(() => log.close())
          return log.positionAt('end')
        }),
      )
      expect(new Set(ends).size).toBe(1)
    }
  })

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
    ['does not have the subject rv.', { subjects: ['of.another.program'] }],
    ['does not acknowledge', { no_ack: true }],
  ])('refuses a stream that %s', async (problem, config) => {
    const error = await openedWith(config)
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({ message: expect.stringContaining(problem), retryable: false })
  })

  it.each([
    [
      1,
      'is of an older version (format 1), which this one cannot read: open it with that one, or use another name',
    ],
    [99, 'is of a newer version (format 99): update rivulet'],
  ])('refuses a log of format %d, and touches nothing', async (format, problem) => {
    const name = `log-${++logs}`
    const log = natsStore({ servers: server.url, name })
    await log.positionAt('end')
    await log.close()
    const nats = await connect({ servers: server.url })
    onTestFinished(() => nats.close())
    const { streams } = await jetstreamManager(nats)
    const state = `rivulet_${name}_state`
    const about = await streams.getMessage(state, { last_by_subj: `rv.${name}.about` })
    await jetstream(nats).publish(`rv.${name}.about`, JSON.stringify({ ...about?.json<object>(), format }))
    // What another version may not have.
    await streams.delete(`rivulet_${name}_events`)
    await streams.delete(`KV_rivulet_${name}_leases`)
    const before = await streams.info(state)
    for (const create of [true, false]) {
      const other = natsStore({ servers: server.url, name, create })
      onTestFinished(() => other.close())
      const error = await other.positionAt('end').catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(LogServerError)
      expect(error).toMatchObject({ message: expect.stringContaining(problem), retryable: false })
    }
    expect((await streams.info(state)).state).toEqual(before.state)
    await expect(streams.info(`rivulet_${name}_events`)).rejects.toThrow('stream not found')
    await expect(streams.info(`KV_rivulet_${name}_leases`)).rejects.toThrow('stream not found')
  })

  it('refuses another number of partitions, another lease and too few copies, each with what the log has', async () => {
    const name = `log-${++logs}`
    const open = async (options: Partial<NatsStoreOptions>) => {
      const log = natsStore({ servers: server.url, name, ...options })
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
    const brief = natsStore({ servers: server.url, name: `log-${++logs}`, lease: 1_000 })
    onTestFinished(() => brief.close())
    const own = await brief.positionAt('end')
    expect(await open({ name: `log-${logs}` })).toBe(own)
  })
})

describe('the times of a log on a NATS server', () => {
  it('never decrease and are the same wherever reading begins, with writers whose clocks differ', async () => {
    const name = `log-${++logs}`
    let now = 100_000
    // The other one is late, and sometimes ahead.
    const skews = [-5_000, 3_000, -20, 0]
    const writers = [() => (now += 10), () => now + (skews[now % skews.length] ?? 0)].map((clock, i) => {
      const log = natsStore({ servers: server.url, name, owner: `writer ${i}`, clock })
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
    const reader = natsStore({ servers: server.url, name })
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

  it('needs the permissions of docs/guides/many-machines.md alone, and refuses another password without naming it', async () => {
    const guarded = await NatsServer.start(CONFIG('watch'))
    onTestFinished(() => guarded.remove())
    const open = (options: Partial<NatsStoreOptions>) => {
      const log = natsStore({ servers: guarded.url, name: 'watch', ...options })
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
    expect(await other.retention.stats()).toMatchObject({ entries: 3, inbox: { pending: 1 } })
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

describe('a log on a NATS server, in the long run', () => {
  const HOUR = 3_600_000

  function openWith(settings: Partial<OpenNatsLogSettings>): NatsLogStore {
    const log = new NatsLogStore({
      client: { servers: server.url },
      log: `log-${++logs}`,
      partitions: undefined,
      replicas: undefined,
      lease: 60_000,
      owner: 'first',
      clock: () => 1_000,
      inbox: { maxDeliveries: 100, maxBytes: 10_000 },
      ...settings,
    })
    onTestFinished(() => log.close())
    return log
  }

  it('forgets ids of webhooks that are old and followed by enough others', async () => {
    let now = 0
    const log = openWith({ clock: () => now, knownIds: 3 })
    const fence = await log.claim('inbox')
    const put = (id: string) => log.inbox.put({ id, timestamp: 1, payload: {} }, '{}')
    const done = (...ids: string[]) => log.append([{ fence, expect: null, entries: [] }], ids)
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await put(id)
      await done(id)
      now += HOUR
    }
    // Enough others, but not old.
    expect([await put('a'), await put('b')]).toEqual(['duplicate', 'duplicate'])
    now = 48 * HOUR + 1
    await put('f')
    await done('f')
    expect(await put('a')).toBe('stored')
    expect([await put('b'), await put('f')]).toEqual(['duplicate', 'duplicate'])
    await done('a')
  })

  it('forgets identities of deleted entries that are old and followed by enough others', async () => {
    const log = openWith({ identityLimits: { minUptime: 0, minNewer: 3 } })
    const fence = await log.claim('stream')
    const trim = async (...ids: string[]) => {
      await append(log, fence, ...ids.map((id) => change(id)))
      await log.retention.trim({ limit: 100 })
    }
    await trim('1', '2')
    await trim('3', '4', '5')
    expect(await log.retention.clean()).toBe(false)
    // Another open log knows only what is stored.
    const other = openWith({ log: `log-${logs}`, owner: 'second' })
    const appended = await append(
      other,
      await other.claim('other'),
      ...['1', '2', '3', '4', '5'].map((id) => change(id)),
    )
    expect(appended).toMatchObject({ entries: 2, duplicates: 3 })
    expect((await readAll(other)).map(({ id }) => id)).toEqual(['1', '2'])
  })

  it('passes over what another program has published there, and reports an entry that is no JSON', async () => {
    const log = openWith({})
    const name = `log-${logs}`
    const fence = await log.claim('stream')
    const nats = await connect({ servers: server.url })
    const js = jetstream(nats)
    const publish = (payload: string, fields: Readonly<Record<string, string>> = {}) => {
      const own = headers()
      for (const [key, value] of Object.entries(fields)) own.set(key, value)
      return js.publish(`rv.${name}.ev.0.elsewhere`, payload, { headers: own })
    }
    const start = await log.positionAt('start')
    await publish('hello')
    await append(log, fence, change('1'))
    await publish('{}', { 'Rv-Entry': 'x many 0 NaN 0 unknown' })
    await append(log, fence, change('2'))
    await publish('\u0000', { 'Rv-Entry': 'x' })
    const other = openWith({ log: name, owner: 'second', clock: () => 500 })
    await append(other, await other.claim('other'), change('2'), change('3'))
    await publish('bye')
    expect((await readAll(log)).map(({ id, recorded }) => [id, recorded])).toEqual([
      ['1', 1_000],
      ['2', 1_000],
      ['3', 1_000],
    ])
    expect(await log.positionAt({ time: 0 })).toBe(start)
    expect(await log.retention.stats()).toMatchObject({ oldest: 1_000 })
    expect(await log.retention.forget(change('1').source)).toBe(3)
    expect(await readAll(log)).toEqual([])

    const sound = { 'Rv-Entry': 'x 1 0 1 0 unknown' }
    const end = await log.positionAt('end')
    const { seq } = await publish('{', sound)
    const error = await log.read(end, { limit: 1 }).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({
      message: expect.stringContaining(`the message ${seq} of rivulet_${name}_events`),
    })
    await log.retention.trim({ limit: 100 })
    await append(log, fence, change('4'))
    expect((await readAll(log)).map(({ id }) => id)).toEqual(['4'])
    await nats.close()
  })
})

describe('a recorder, a consumer and a process over a log on a NATS server', () => {
  it('go on where they were in other processes, and have every run once', async () => {
    const name = `log-${++logs}`
    const { client, group } = await research()
    const id = await group(...Array.from({ length: 8 }, (_, n) => `question ${n}`))
    const handled: string[] = []
    const handle = (entry: { readonly id: string }) => void handled.push(entry.id)
    const types = ['task_run.state'] as const
    let counted = 0
    for (const runs of [3, 5]) {
      // Two machines: one records, the other one reads.
      await using recorded = await openLog(natsStore({ servers: server.url, name }))
      await using read = await openLog(natsStore({ servers: server.url, name, owner: 'reader' }))
      const recording = recorded.record({ client, taskGroups: [id] })
      const counting = read.process<number>('count', {
        version: 1,
        types,
        key: () => 'runs',
        init: () => 0,
        event: (count, _, context) => context.set(count + 1),
      })
      await lastValueFrom(
        read.consume('runs', { types }).pipe(deliver(handle, { concurrency: 1 }), take(runs)),
      )
      await vi.waitFor(async () => expect(await counting.get('runs')).toBeGreaterThanOrEqual(handled.length))
      await Promise.all([recording.stop(), counting.stop()])
      counted = (await counting.get('runs')) ?? 0
    }
    expect(handled).toHaveLength(8)
    expect(new Set(handled).size).toBe(8)
    expect(counted).toBe(8)
  })
})
