import { Kvm } from '@nats-io/kv'
import { connect as connectTo } from '@nats-io/transport-node'
import { openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import type { ProcessContext } from 'rivulet/streams'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { rivulet } from '../cli/command.ts'
import { append } from '../log/append.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

const PATIENCE = { timeout: 60_000, interval: 20 }

let server: NatsServer
let logs = 0

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

function storesOf(name: string) {
  return (owner: string) => natsStore({ servers: server.url, name, owner, lease: 10_000 })
}

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

const changes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`, `s${(from + n) % 40}`))

const idsOf = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`)

const sorted = (ids: readonly string[]) => ids.toSorted((a, b) => Number(a) - Number(b))

/** Deletes the lease of an open log, as when it was suspended for longer than that. */
async function endLease(log: string, owner: string): Promise<void> {
  const nats = await connectTo({ servers: server.url })
  const leases = await new Kvm(nats).open(`rivulet_${log}_leases`)
  for await (const key of await leases.keys()) {
    const lease = (await leases.get(key))?.json<{ owner: string }>()
    if (lease?.owner === owner) await leases.delete(key)
  }
  await nats.close()
}

describe('a shared consumer of a log on a NATS server', () => {
  it(
    'handles each entry once and each source in order, while members come and go',
    { timeout: 120_000 },
    async () => {
      const connect = storesOf(`shared-${++logs}`)
      const store = connect('writer')
      await opened(store)
      const ids: string[] = []
      const last = new Map<string, number>()
      let isOrdered = true
      const handler = ({ id, source }: { readonly id: string; readonly source: string }) => {
        ids.push(id)
        isOrdered &&= Number(id) > (last.get(source) ?? 0)
        last.set(source, Number(id))
      }
      const counted = (count: number) => vi.waitUntil(() => ids.length >= count, PATIENCE)
      await append(store, changes(1, 200))
      const alone = await opened(connect('alone'))
      const first = alone.consume('archive', handler)
      await counted(200)
      await first.stop()
      const members = [await opened(connect('one')), await opened(connect('two'))]
      const [one] = members.map((log) => log.consume('archive', { share: true, concurrency: 4 }, handler))
      await append(store, changes(201, 400))
      await counted(400)
      await one?.stop()
      await append(store, changes(401, 600))
      await counted(600)
      const third = await opened(connect('three'))
      third.consume('archive', { share: true, concurrency: 4 }, handler)
      await append(store, changes(601, 800))
      await counted(800)
      expect(sorted(ids)).toEqual(idsOf(1, 800))
      expect(isOrdered).toBe(true)
      const { readers } = await third.stats()
      expect(readers.map(({ name }) => name)).toEqual(['archive'])
    },
  )

  it(
    'and a shared process has the state of one run over the log, while members come and go',
    { timeout: 120_000 },
    async () => {
      const connect = storesOf(`shared-${++logs}`)
      const store = connect('writer')
      const writer = await opened(store)
      const counting = {
        version: 1,
        types: ['monitor.event_stream'],
        key: ({ source }: { readonly source: string }) => source,
        init: () => ({ ids: '' }),
        event: (
          { ids }: { readonly ids: string },
          entry: { readonly id: string },
          context: ProcessContext<{ readonly ids: string }>,
        ) => context.set({ ids: `${ids} ${entry.id}` }),
      } as const
      const counted = (count: number) =>
        vi.waitUntil(async () => {
          const { state } = await writer.state<{ readonly ids: string }>('ids').snapshot()
          return Array.from(state.values()).flatMap(({ ids }) => ids.trim().split(' ')).length === count
        }, PATIENCE)
      await append(store, changes(1, 100))
      const alone = await opened(connect('alone'))
      const first = alone.process('ids', counting)
      await counted(100)
      await first.stop()
      const [one, two] = [await opened(connect('one')), await opened(connect('two'))]
      const job = one.process('ids', { ...counting, share: true })
      two.process('ids', { ...counting, share: true })
      await append(store, changes(101, 200))
      await counted(200)
      await job.stop()
      await append(store, changes(201, 300))
      await counted(300)
      const { state } = await writer.state<{ readonly ids: string }>('ids').snapshot()
      const expected = Map.groupBy(changes(1, 300), ({ source }) => source)
      expect(state).toEqual(
        new Map(
          Array.from(expected, ([source, own]) => [source, { ids: own.map(({ id }) => ` ${id}`).join('') }]),
        ),
      )
    },
  )

  it(
    'takes a share anew where its lease was lost, as a shared process does',
    { timeout: 120_000 },
    async () => {
      const name = `shared-${++logs}`
      const connect = storesOf(name)
      const store = connect('writer')
      const writer = await opened(store)
      const [one, two] = [await opened(connect('one')), await opened(connect('two'))]
      const counts = new Map<string, number>()
      const handled = ({ id }: { readonly id: string }) => void counts.set(id, (counts.get(id) ?? 0) + 1)
      const counting = {
        version: 1,
        types: ['monitor.event_stream'],
        key: ({ source }: { readonly source: string }) => source,
        init: () => ({ n: 0 }),
        event: ({ n }: { readonly n: number }, _: unknown, context: ProcessContext<{ readonly n: number }>) =>
          context.set({ n: n + 1 }),
      } as const
      const jobs = [one, two].flatMap((log) => [
        log.consume('archive', { share: true, concurrency: 4 }, handled),
        log.process('counts', { ...counting, share: true }),
      ])
      const failures: unknown[] = []
      for (const { done } of jobs) done.catch((error: unknown) => failures.push(error))
      const processed = async (count: number) => {
        const { state } = await writer.state<{ readonly n: number }>('counts').snapshot()
        return Array.from(state.values()).reduce((sum, { n }) => sum + n, 0) === count
      }
      const reached = (count: number) =>
        vi.waitUntil(async () => counts.size === count && (await processed(count)), PATIENCE)
      const bothWork = () =>
        vi.waitUntil(async () => {
          const { readers } = await writer.stats()
          return readers.length === 2 && readers.every(({ owner }) => owner?.includes(', '))
        }, PATIENCE)
      await append(store, changes(1, 200))
      await reached(200)
      await bothWork()
      await endLease(name, 'one')
      await append(store, changes(201, 400))
      await reached(400)
      await bothWork()
      await append(store, changes(401, 600))
      await reached(600)
      expect(failures).toEqual([])
      // Only what was out when the lease was lost may come again.
      expect(
        idsOf(1, 200)
          .concat(idsOf(401, 600))
          .filter((id) => counts.get(id) !== 1),
      ).toEqual([])
    },
  )

  it('reads partitions as the whole log has them: times, gaps, and nothing of what was forgotten', async () => {
    const store = storesOf(`shared-${++logs}`)('reader')
    const log = await opened(store)
    const start = await store.positionAt('start')
    await append(store, changes(1, 120))
    const { count, of } = await store.sharing.partitions()
    const whole = (await store.read(start, { limit: 1_000 })).entries
    const inParts = (after: string) =>
      Promise.all(
        Array.from({ length: count }, (_, partition) => store.read(after, { limit: 1_000, partition })),
      )
    const bySource = (partition: number) => whole.filter(({ source }) => of(source) === partition)
    for (const [partition, { entries, position, isEnd }] of (await inParts(start)).entries()) {
      expect(isEnd).toBe(true)
      expect(entries).toEqual(bySource(partition))
      // Also where it has none.
      expect(position).toBe(await store.positionAt('end'))
    }
    const gone = whole[0]?.source ?? ''
    await log.forget({ source: gone })
    for (const [partition, { entries, gap }] of (await inParts(start)).entries()) {
      expect(gap).toBeUndefined()
      expect(entries).toEqual(bySource(partition).filter(({ source }) => source !== gone))
    }
    await store.retention.trim({ limit: 50 })
    for (const { entries, gap } of await inParts(start)) {
      expect(gap?.from).toBe(start)
      expect(entries.map(({ type }) => type)).toEqual(['log.gap'])
    }
  })

  it('reads up to a position, whatever was the end when others read the same', async () => {
    const store = storesOf(`shared-${++logs}`)('reader')
    await opened(store)
    const start = await store.positionAt('start')
    await append(store, changes(1, 10))
    const early = await store.read(start, { limit: 100, isCommon: true })
    expect(early).toMatchObject({ isEnd: true })
    await append(store, changes(11, 20))
    const until = await store.positionAt('end')
    const ids: string[] = []
    let position = start
    for (let isEnd = false; !isEnd;) {
      const page = await store.read(position, { limit: 100, isCommon: true, until })
      ids.push(...page.entries.map(({ id }) => id))
      ;({ position, isEnd } = page)
    }
    expect(ids).toEqual(idsOf(1, 20))
  })

  it('reads up to a position beyond entries that were trimmed since others read the same', async () => {
    const store = storesOf(`shared-${++logs}`)('reader')
    const log = await opened(store)
    const start = await store.positionAt('start')
    await append(store, changes(1, 60))
    await log.forget({ source: '/v1/monitors/s5' })
    await store.read(start, { limit: 1, isCommon: true })
    await append(store, changes(61, 120))
    await store.retention.trim({ limit: 80 })
    const until = await store.positionAt('end')
    const left = await store.read(await store.positionAt('start'), { limit: 1_000 })
    const first = await store.read(start, { limit: 1_000, isCommon: true, until })
    expect(first).toMatchObject({ gap: { from: start }, isEnd: false })
    const rest = await store.read(first.position, { limit: 1_000, isCommon: true, until })
    expect(rest.entries).toEqual(left.entries)
    expect(rest.isEnd).toBe(true)
  })

  it('wakes a reader for the entries of its partition, and not for others', async () => {
    const store = storesOf(`shared-${++logs}`)('reader')
    await opened(store)
    await append(store, [change('1', 'a')])
    const { count, of } = await store.sharing.partitions()
    const own = of('/v1/monitors/a')
    const other = Array.from({ length: count }, (_, n) => `m${n}`).find(
      (name) => of(`/v1/monitors/${name}`) !== own,
    )
    const end = await store.positionAt('end')
    const { signal } = new AbortController()
    let isWoken = false
    const woken = store
      .wait(end, signal, { reader: 'consumer.0:c', after: 0 }, own)
      .then(() => (isWoken = true))
    await append(store, [change('2', other ?? '')])
    await store.wait(end, signal)
    const isEarly = isWoken
    await append(store, [change('3', 'a')])
    await woken
    expect(isEarly).toBe(false)
    expect((await store.read(end, { limit: 10, partition: own })).entries.map(({ id }) => id)).toEqual(['3'])
  })
})

it(
  'has dead letters that the command lists under the name of the consumer',
  { timeout: 60_000 },
  async () => {
    const name = `letters-${++logs}`
    const store = storesOf(name)('writer')
    const log = await opened(store)
    await append(store, changes(1, 8))
    const failing = log.consume('archive', { share: true, deadLetters: 'log', retries: 0 }, () => {
      throw new Error('no account')
    })
    const deadLetters = log.deadLetters('archive')
    await vi.waitUntil(async () => (await deadLetters.count()) === 8, PATIENCE)
    await failing.stop()

    for (const args of [[], ['--consumer', 'archive']]) {
      const { stdout } = await rivulet([
        'log',
        'dead-letters',
        '--log',
        `${server.url}/${name}`,
        '--json',
        ...args,
      ]).ended
      const listed = stdout
        .trimEnd()
        .split('\n')
        .map((line): { reader: string; entry: { id: string } } => JSON.parse(line))
      expect(sorted(listed.map(({ entry }) => entry.id))).toEqual(idsOf(1, 8))
      expect(new Set(listed.map(({ reader }) => reader))).toEqual(new Set(['consumer:archive']))
    }
  },
)
