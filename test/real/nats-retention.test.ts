import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { natsStore } from '../../src/log/nats/index.ts'
import { NatsLogStore } from '../../src/log/nats/store.ts'
import type { LogStore } from '../../src/log/store/contract.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'
import { Retention } from '../../src/log/event-log/retention.ts'
import { machine } from '../log/conformance/clock.ts'
import { append, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { LossyProxy } from './nats/lossy-proxy.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

describe('a writer to a source whose entries another one appends and trims', () => {
  async function writers(name: string) {
    const [one, other] = ['one', 'other'].map((owner) => natsStore({ servers: server.url, name, owner }))
    if (one === undefined || other === undefined) throw new Error('two logs')
    onTestFinished(async () => {
      await one.close()
      await other.close()
    })
    return { one, other, fence: await one.claim('one'), otherFence: await other.claim('other') }
  }

  it('does not append again what is deleted before an entry that is left', async () => {
    const { one, other, fence, otherFence } = await writers('some')
    await append(one, fence, change('1'))
    await append(other, otherFence, change('2'), change('3'))
    await other.retention.trim({ limit: 2 })
    expect(await append(one, fence, change('2'))).toMatchObject({ entries: 0, duplicates: 1 })
    expect((await readAll(one)).map(({ id }) => id)).toEqual(['3'])
  })

  it('does not append again what is deleted with all entries of the source', async () => {
    const { one, other, fence, otherFence } = await writers('all')
    await append(one, fence, change('1'))
    await append(other, otherFence, change('2'))
    await other.retention.trim({ limit: 2 })
    expect(await append(one, fence, change('2'))).toMatchObject({ entries: 0, duplicates: 1 })
    // Now it knows that the source has no entries, and the other one appends and deletes the next one too.
    await append(other, otherFence, change('3'))
    await other.retention.trim({ limit: 1 })
    expect(await append(one, fence, change('3'))).toMatchObject({ entries: 0, duplicates: 1 })
    expect(await readAll(one)).toEqual([])
  })
})

describe('retention of a log whose writers begin after a long pause', () => {
  it('does not take what they record at first for old when the pause is confirmed', async () => {
    const [MINUTE, DAY] = [60_000, 24 * 3_600_000]
    const { pass, jump } = machine()
    const named = { servers: server.url, name: 'paused' }
    const before = natsStore({ ...named, clock: () => Date.now() - 3 * DAY })
    await append(before, await before.claim('stream:s'), change('before'))
    await before.close()
    // Later the server's clock says the same.
    jump(-11 * MINUTE)
    const log = natsStore(named)
    onTestFinished(() => log.close())
    const fence = await log.claim('stream:s')
    await append(log, fence, change('early 0'))
    pass(6 * MINUTE)
    await append(log, fence, change('early 1'))
    expect(await log.retention.usage()).toMatchObject({ isTimeCertain: false })
    pass(5 * MINUTE)
    expect(await append(log, fence, change('accepted'))).toMatchObject({ clock: { state: 'accepted' } })
    expect(await log.retention.usage()).toMatchObject({ isTimeCertain: true })
    const kept = async (maxAge: number) => {
      const other = natsStore(named)
      const retention = new Retention(other.retention, { maxAge })
      await retention.appended()
      await retention.stop()
      const entries = await readAll(other)
      await other.close()
      return entries.flatMap(({ id, type }) => (type === 'log.clock' ? [] : [id]))
    }
    expect(await kept(DAY)).toEqual(['early 0', 'early 1', 'accepted'])
    expect(await kept(8 * MINUTE)).toEqual(['early 1', 'accepted'])
    expect(await kept(MINUTE)).toEqual(['accepted'])
  })
})

describe('retention of a log with many upstream streams', () => {
  it('reads no journal of a stream: a damaged one does not stop it', async () => {
    const log = natsStore({ servers: server.url, name: 'streams' })
    onTestFinished(() => log.close())
    const fence = await log.claim('stream:s')
    await append(log, fence, change('1'), change('2'))
    const reader = await log.claim('consumer:c')
    const end = await log.positionAt('end')
    await log.commit(reader, { expect: null, cursor: end, acknowledged: [] })
    const nats = await connect({ servers: server.url })
    await jetstream(nats).publish('rv.streams.st.damaged', 'no journal')
    await nats.close()
    await expect(log.retention.stats()).rejects.toMatchObject({
      message: expect.stringContaining('damaged journal'),
    })
    expect(await log.retention.room()).toMatchObject({ neededBy: null })
    expect(await log.deadLetters.counts()).toEqual(new Map())
    expect(await log.retention.trim({ limit: 100 })).toMatchObject({ deleted: 2 })
  })

  it('refuses a reader with the name of a stream, which it would not see', async () => {
    const log = natsStore({ servers: server.url, name: 'misnamed' })
    onTestFinished(() => log.close())
    const fence = await log.claim('stream:s')
    const cursor = await log.positionAt('start')
    const refused = log.commit(fence, { expect: null, cursor, acknowledged: [] })
    await expect(refused).rejects.toMatchObject({ name: 'ArgumentError', argument: 'fence' })
  })
})

describe('retention of a log whose server says too early that there are no more messages', () => {
  const requests = (stream: string) => `$JS.API.CONSUMER.MSG.NEXT.${stream}.`

  async function opened(name: string) {
    const proxy = await LossyProxy.start(server.port)
    onTestFinished(() => proxy.close())
    const log = natsStore({ servers: proxy.url, name })
    onTestFinished(() => log.close())
    const fence = await log.claim('stream:s')
    const entries = [newEntry(change('1')), newEntry(change('2'))]
    await log.append([{ fence, expect: null, position: 'p2', entries }])
    return { proxy, log }
  }

  it('deletes nothing that a reader needs', async () => {
    const { proxy, log } = await opened('unlisted')
    const reader = await log.claim('consumer:c')
    const start = await log.positionAt('start')
    await log.commit(reader, { expect: null, cursor: start, acknowledged: [] })
    proxy.answerEmpty(requests('rivulet_unlisted_state'))
    expect(await log.retention.room()).toMatchObject({ neededBy: 'consumer:c' })
    expect(await log.retention.trim({ limit: 2 })).toMatchObject({ deleted: 0, blockedBy: 'consumer:c' })
    const { streams, readers } = await log.retention.stats()
    expect(streams).toMatchObject([{ name: 'stream:s' }])
    expect(readers).toMatchObject([{ name: 'consumer:c' }])
    expect(proxy.hasAnsweredEmpty).toBe(true)
  })

  it('reads on to the end by which it deletes', async () => {
    const { proxy, log } = await opened('cut')
    proxy.answerEmpty(requests('rivulet_cut_events'))
    expect(await log.retention.trim({ limit: 3 })).toMatchObject({ deleted: 2, isDone: true })
    expect(proxy.hasAnsweredEmpty).toBe(true)
  })
})

describe('retention while the journals of readers are rolled up all the time', () => {
  const SLOW = 'consumer:slow'
  const NAMES = [...Array.from({ length: 40 }, (_, n) => `consumer:reader ${n + 10}`), SLOW]
  const ROUNDS = 60
  let logs = 0

  /** A log whose journals are rolled up with each commit. */
  function opened(owner: string, log = `rolled-up-${logs}`): LogStore {
    const store = new NatsLogStore({
      client: { servers: server.url },
      log,
      partitions: 1,
      replicas: undefined,
      lease: 60_000,
      owner,
      clock: () => 1_000,
      inbox: { maxDeliveries: 100, maxBytes: 10_000 },
      journalLimits: { messages: 0, bytes: 0, idle: 60_000 },
    })
    onTestFinished(() => store.close())
    return store
  }

  /** What is found over and over while all readers commit. The slow one acknowledges entries, and needs the first one. */
  async function whileCommitting<Found>(look: (other: LogStore) => Promise<Found>) {
    logs += 1
    const [one, other] = [opened('one'), opened('other')]
    const stream = await one.claim('stream:s')
    await append(one, stream, ...Array.from({ length: ROUNDS }, (_, n) => change(String(n))))
    const entries = await readAll(one)
    const [start, end] = [await one.positionAt('start'), await one.positionAt('end')]
    const fences = await Promise.all(NAMES.map((name) => one.claim(name)))
    const ended = new AbortController()
    const committing = Promise.all(
      fences.map(async (fence) => {
        const cursor = fence.name === SLOW ? start : end
        let expected: string | null = null
        for (const { position } of entries) {
          await one.commit(fence, {
            expect: expected,
            cursor,
            acknowledged: cursor === start ? [position] : [],
          })
          expected = cursor
        }
      }),
    ).finally(() => ended.abort())
    await other.positionAt('start')
    const found: Found[] = []
    while (!ended.signal.aborted) found.push(await look(other))
    await committing
    return { found, one, start }
  }

  it('has every reader in each list', async () => {
    const { found } = await whileCommitting(async (other) => {
      const { readers } = await other.retention.stats()
      return readers.map(({ name }) => name)
    })
    const whole = found.slice(found.findIndex(({ length }) => length === NAMES.length))
    expect(whole).toEqual(whole.map(() => NAMES))
  })

  it('deletes nothing that a reader needs', async () => {
    const { found, one, start } = await whileCommitting(async (other) => {
      const { readers } = await other.retention.stats()
      const isThere = readers.some(({ name }) => name === SLOW)
      return isThere ? other.retention.trim({ limit: ROUNDS }) : { blockedBy: SLOW }
    })
    expect(found).toEqual(found.map(() => expect.objectContaining({ blockedBy: SLOW })))
    expect(await one.read(start, { limit: 1 })).toMatchObject({ entries: [{ id: '0' }] })
  })
})
