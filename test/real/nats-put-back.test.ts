import { DatabaseSync } from 'node:sqlite'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { openLog } from 'rivulet/log'
import { exactlyOnce } from 'rivulet/log/sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import { Continuity, storedToken } from '../../src/log/nats/server/continuity.ts'
import type { LogStore } from '../../src/log/store/contract.ts'
import { append, idsOf, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsCluster } from './nats/cluster.ts'
import { Gate } from './nats/gate.ts'
import { NatsServer } from './nats/server.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const STREAM = 'stream:monitors/m'

let server: NatsServer

beforeEach(async () => {
  server = await NatsServer.start()
  // After the logs are closed, which would wait for it.
  onTestFinished(() => server.remove())
})

function opened(owner: string, servers: string | readonly string[] = server.url): LogStore {
  const log = natsStore({ servers, name: 'watch', owner, lease: 1_000 })
  onTestFinished(() => log.close())
  return log
}

/** Appends what upstream has from the position of the log on, up to this number. */
async function record(log: LogStore, until: number, stream = STREAM): Promise<number> {
  const fence = await log.claim(stream, { wait: new AbortController().signal })
  const [known = null] = await log.streamPositions([stream])
  const from = Number(known ?? 0) + 1
  const entries = Array.from({ length: until - from + 1 }, (_, n) => newEntry(change(String(from + n))))
  const appended = await log.append([{ fence, expect: known, position: String(until), entries }])
  await log.release(fence)
  return appended.entries
}

/** From now on, half a minute goes by at each look at the clock. */
function hurry(): void {
  const now = performance.now.bind(performance)
  let looks = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 31_000 * looks++)
  onTestFinished(() => clock.mockRestore())
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n + 1))

describe('a server that was put back to an earlier state', () => {
  it('ends an open log, and a log that is opened again records what is missing', async () => {
    const log = opened('first')
    await record(log, 5)
    const putBack = await server.backup()
    await record(log, 10)
    await putBack()
    const refused = { message: expect.stringContaining('put back'), retryable: false }
    await expect(record(log, 12)).rejects.toMatchObject(refused)
    await expect(log.positionAt('end')).rejects.toBeInstanceOf(LogServerError)
    await log.close()
    const again = opened('second')
    expect(await record(again, 12)).toBe(7)
    expect(idsOf(await readAll(again))).toEqual(numbers(12))
  })

  it('ends what is under way, and stores nothing of it', async () => {
    const log = opened('first')
    await record(log, 5)
    const putBack = await server.backup()
    await record(log, 10)
    await server.kill()
    const underWay = record(log, 15)
    await Promise.all([expect(underWay).rejects.toBeInstanceOf(LogServerError), putBack()])
    const again = opened('second')
    expect(await record(again, 15)).toBe(10)
    expect(idsOf(await readAll(again))).toEqual(numbers(15))
  })

  it('is noticed as well where another one has written more since', async () => {
    const gate = await Gate.start()
    onTestFinished(() => gate.close())
    gate.target = server.port
    const log = opened('first', `nats://127.0.0.1:${gate.port}`)
    await record(log, 5)
    const putBack = await server.backup()
    await record(log, 10)
    gate.shut()
    await putBack()
    const other = opened('other')
    for (let until = 6; until <= 30; until++) await record(other, until)
    gate.open()
    await expect(record(log, 40)).rejects.toMatchObject({ message: expect.stringContaining('put back') })
    expect(await record(other, 40)).toBe(10)
    expect(idsOf(await readAll(other))).toEqual(numbers(40))
  })

  it('gives a consumer what it has lost once more, from the cursor that the server has', async () => {
    const store = opened('first')
    const log = await openLog(store)
    const handled: string[] = []
    const done = Promise.withResolvers<void>()
    await record(store, 5)
    const job = log.consume('archive', ({ id }) => {
      handled.push(id)
      if (handled.length === 5) done.resolve()
    })
    await done.promise
    await job.stop()
    const putBack = await server.backup()
    await record(store, 10)
    await putBack()
    const failed = log.consume('archive', () => {}).done
    await expect(failed).rejects.toBeInstanceOf(LogServerError)
    const next = await openLog(opened('second'))
    await record(opened('writer'), 12)
    const rest: string[] = []
    await new Promise<void>((resolve) => {
      next.consume('archive', { wait: new AbortController().signal }, ({ id }) => {
        rest.push(id)
        if (id === '12') resolve()
      })
    })
    expect(rest).toEqual(numbers(12).slice(5))
    await next.close()
  })
})

describe('a position that was kept elsewhere, of a log that was put back', () => {
  /** Positions after 5 and 10 entries of a log that has the first 5 of them again, and then others. */
  async function putBack(others: readonly string[]) {
    const log = opened('first')
    await record(log, 5)
    const before = await log.positionAt('end')
    const restore = await server.backup()
    await record(log, 10)
    const [lost, page] = [await log.positionAt('end'), await log.read(before, { limit: 3 })]
    const { position: trimmed } = await log.read(before, { limit: 4 })
    await log.close()
    await restore()
    const again = opened('second')
    const fence = await again.claim('stream:other')
    if (others.length > 0) await append(again, fence, ...others.map((id) => change(id)))
    return { again, before, lost, page, trimmed }
  }

  const OTHERS = ['a', 'b', 'c', 'd', 'e', 'f']
  const diverged = {
    name: 'LogPositionError',
    reason: 'diverged',
    message: expect.stringContaining('putting back'),
  }

  it('is refused where the log has another entry by now, and one of before is not', async () => {
    const { again, before, lost, page } = await putBack(OTHERS)
    for (const position of [lost, page.position, ...page.entries.map((entry) => entry.position)]) {
      await expect(again.read(position, { limit: 10 })).rejects.toMatchObject(diverged)
      await expect(again.read(position, { limit: 10, partition: 0 })).rejects.toMatchObject(diverged)
      await expect(again.read(before, { limit: 10, until: position })).rejects.toMatchObject(diverged)
      await expect(again.wait(position, new AbortController().signal)).rejects.toMatchObject(diverged)
    }
    expect(idsOf(await readAll(again, before))).toEqual(OTHERS)
  })

  it('is beyond the end where the log has nothing there', async () => {
    const { again, lost } = await putBack(['a'])
    await expect(again.read(lost, { limit: 10 })).rejects.toMatchObject({ reason: 'beyond' })
  })

  it('is refused where another entry was there that was trimmed last', async () => {
    const { again, trimmed, before } = await putBack(OTHERS)
    await again.retention.trim({ limit: 9 })
    await expect(again.read(trimmed, { limit: 10 })).rejects.toMatchObject(diverged)
    const start = await again.positionAt('start')
    expect(start).not.toBe(trimmed)
    expect(idsOf((await again.read(start, { limit: 10 })).entries)).toEqual(['e', 'f'])
    // What is before has a gap.
    expect(await again.read(before, { limit: 10 })).toMatchObject({ gap: { to: start } })
  })

  it('is accepted where retention has passed it since, and nothing is left to compare', async () => {
    const { again, lost, trimmed } = await putBack(OTHERS)
    await again.retention.trim({ limit: 10 })
    await expect(again.read(lost, { limit: 10 })).rejects.toMatchObject(diverged)
    const { gap } = await again.read(trimmed, { limit: 10 })
    expect(gap).toEqual({ from: trimmed, to: await again.positionAt('start') })
  })

  it('is accepted where its entry was forgotten since, and nothing is left to compare', async () => {
    const log = opened('first')
    await append(log, await log.claim('stream:a'), change('1', 'm'), change('2', 'other'), change('3', 'm'))
    const entries = await readAll(log)
    const end = await log.positionAt('end')
    await log.retention.forget(change('3', 'm').source)
    const other = opened('second')
    expect(idsOf((await other.read(entries[0]?.position ?? '', { limit: 9 })).entries)).toEqual(['2'])
    expect(await other.read(end, { limit: 9 })).toMatchObject({ entries: [], isEnd: true })
    // So it is for a place that was named only then.
    const later = await other.positionAt('end')
    const third = opened('third')
    expect(await third.read(later, { limit: 9 })).toMatchObject({ entries: [], isEnd: true })
  })

  it('keeps a consumer with effects of its own from beginning', async () => {
    const store = opened('first')
    const database = new DatabaseSync(':memory:')
    onTestFinished(() => database.close())
    database.exec('CREATE TABLE effect (id TEXT NOT NULL)')
    const insert = database.prepare('INSERT INTO effect VALUES (?)')
    const begin = async (log: LogStore) =>
      (await openLog(log)).consume(
        'ledger',
        exactlyOnce(database, { effect: ({ id }) => void insert.run(id) }),
      )
    await record(store, 5)
    const restore = await server.backup()
    await record(store, 10)
    const job = await begin(store)
    const count = database.prepare('SELECT count(*) AS count FROM effect')
    await vi.waitFor(() => expect(count.get()).toEqual({ count: 10 }), { timeout: 60_000 })
    await job.stop()
    await store.close()
    await restore()
    const again = opened('second')
    await append(again, await again.claim('stream:other'), ...OTHERS.map((id) => change(id)))
    await expect((await begin(again)).done).rejects.toMatchObject({ reason: 'diverged' })
    expect(count.get()).toEqual({ count: 10 })
  })
})

describe('a process that only reads, of a log that was put back', () => {
  it('is ended where the log has another entry in the place of one that it has read', async () => {
    const gate = await Gate.start()
    onTestFinished(() => gate.close())
    gate.target = server.port
    const log = opened('first')
    await record(log, 5)
    const restore = await server.backup()
    await record(log, 10)
    const reader = opened('reader', `nats://127.0.0.1:${gate.port}`)
    const { position } = await reader.read(await reader.positionAt('start'), { limit: 20 })
    gate.shut()
    await log.close()
    await restore()
    const again = opened('second')
    await append(again, await again.claim('stream:other'), ...numbers(20).map((id) => change(`other ${id}`)))
    gate.open()
    await expect(reader.read(position, { limit: 1 })).rejects.toMatchObject({
      name: 'LogServerError',
      message: expect.stringContaining('put back'),
      retryable: false,
    })
  })

  it('is ended where all that it knows is the end of the log', async () => {
    const log = opened('first')
    await record(log, 5)
    const restore = await server.backup()
    await record(log, 10)
    const reader = opened('reader')
    const end = await reader.positionAt('end')
    await log.close()
    await restore()
    const putBack = { message: expect.stringContaining('put back') }
    await expect(reader.wait(end, new AbortController().signal)).rejects.toMatchObject(putBack)
  })
})

describe('a leader of a cluster that is behind', () => {
  /** A log's look at a stream of which it has seen a message that the server has lost since. */
  async function lost() {
    const nats = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
    onTestFinished(() => nats.close())
    // A request that is lost with the server is repeated soon.
    const jsm = await jetstreamManager(nats, { timeout: 500 })
    const publish = () => jetstream(nats).publish('s', '')
    await jsm.streams.add({ name: 'S', subjects: ['s'] })
    await publish()
    const restore = await server.backup()
    await vi.waitFor(() => jsm.streams.info('S'), { timeout: 60_000 })
    await publish()
    const { seq: sequence } = await publish()
    const message = await jsm.streams.getMessage('S', { seq: sequence })
    const continuity = new Continuity({ nats, jsm, log: 'the log', isReplicated: true })
    continuity.saw({ stream: 'S', sequence, token: message === null ? '' : storedToken(message) })
    const info = vi.spyOn(jsm.streams, 'info')
    await restore()
    await vi.waitFor(() => expect(info.mock.calls.length).toBeGreaterThan(2), { timeout: 60_000 })
    return { continuity, publish }
  }

  it('counts as put back once it has stayed there for half a minute', async () => {
    const { continuity } = await lost()
    expect(continuity.failure).toBeUndefined()
    hurry()
    await continuity.verifyAfterReconnect()
    expect(continuity.failure).toMatchObject({ message: expect.stringContaining('put back') })
  })

  it('counts as put back once it has another message at the place, and not before', async () => {
    const { continuity, publish } = await lost()
    await publish()
    expect(continuity.failure).toBeUndefined()
    await publish()
    await continuity.verifyAfterReconnect()
    expect(continuity.failure).toMatchObject({ message: expect.stringContaining('put back') })
  })
})

describe('a cluster that was put back as a whole', () => {
  const STREAMS = ['rivulet_watch_events', 'rivulet_watch_state', 'KV_rivulet_watch_leases']
  let cluster: NatsCluster

  beforeAll(async () => {
    cluster = await NatsCluster.start()
  })

  afterAll(() => cluster.remove())

  it('ends a process that only reads and one that writes, and refuses positions of what was lost', async () => {
    const log = opened('first', cluster.urls)
    await record(log, 5)
    const before = await log.positionAt('end')
    await cluster.whole(...STREAMS)
    const restore = await cluster.backup()
    await cluster.whole(...STREAMS)
    await record(log, 10)
    const reader = opened('reader', cluster.urls)
    const { position } = await reader.read(await reader.positionAt('start'), { limit: 20 })
    // The same on each server: the position of a reader at another one is accepted.
    for (const url of cluster.urls) {
      expect(await opened(url, url).read(position, { limit: 1 })).toMatchObject({ position })
    }
    await restore()
    await cluster.whole(...STREAMS)
    const again = opened('second', cluster.urls)
    const fence = await again.claim('stream:other')
    await append(again, fence, ...numbers(20).map((id) => change(`other ${id}`)))
    const putBack = { name: 'LogServerError', message: expect.stringContaining('put back') }
    hurry()
    // In a hurry, a call may also give up a server that is slow.
    const isEnded = (call: () => Promise<unknown>) =>
      vi.waitFor(() => expect(call()).rejects.toMatchObject(putBack), { timeout: 60_000 })
    await isEnded(() => reader.read(position, { limit: 1 }))
    await isEnded(() => record(log, 12))
    await expect(again.read(position, { limit: 1 })).rejects.toMatchObject({ reason: 'diverged' })
    expect(await readAll(again, before)).toHaveLength(20)
  })

  it('keeps an open log, a leader of it being moved or killed', async () => {
    const reader = opened('reader', cluster.urls)
    const { position } = await reader.read(await reader.positionAt('start'), { limit: 50 })
    await cluster.moveLeader('rivulet_watch_events')
    expect(await reader.read(position, { limit: 1 })).toMatchObject({ isEnd: true })
    const leader = await cluster.leader('rivulet_watch_events')
    await cluster.kill(leader)
    expect(await reader.read(position, { limit: 1 })).toMatchObject({ isEnd: true })
    await cluster.resume(leader)
    expect(await reader.read(position, { limit: 1 })).toMatchObject({ isEnd: true })
  })
})
