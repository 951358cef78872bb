import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { readAll } from '../log/conformance/fixture.ts'
import { auditedEvents } from './nats/audit.ts'
import { NatsCluster } from './nats/cluster.ts'
import type { TotalsSettings } from './nats/totals-process.ts'
import { expectedIds } from './nats/writer.ts'
import type { WriterCommand, WriterMessage, WriterSettings } from './nats/writer-process.ts'

let cluster: NatsCluster

beforeAll(async () => {
  cluster = await NatsCluster.start()
})

afterAll(() => cluster.remove())

const LEASE = 2_000
const READER = 'process:totals'
const PATIENCE = { timeout: 120_000 }

function start(program: string, settings: unknown): ChildProcess {
  const child = fork(join(import.meta.dirname, 'nats', program), [JSON.stringify(settings)], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** A writer in a process of its own. */
class Writer {
  readonly #child: ChildProcess
  reached = 0
  isDone = false
  /** When it reached its last position, and the longest time between two of them, in ms. */
  #last = performance.now()
  longest = 0

  constructor(settings: WriterSettings) {
    this.#child = start('writer-process.ts', settings)
    this.#child.on('message', (message: WriterMessage) => {
      if ('reached' in message) {
        this.reached = message.reached
        const now = performance.now()
        this.longest = Math.max(this.longest, now - this.#last)
        this.#last = now
      } else {
        this.isDone = true
      }
    })
  }

  /** Resolves once it has written so many more events. */
  async goes(more: number): Promise<void> {
    const to = this.reached + more
    await vi.waitUntil(() => this.reached >= to, PATIENCE)
  }

  endAt(count: number): void {
    const command: WriterCommand = { count }
    this.#child.send(command)
  }
}

it('loses, doubles and reorders nothing while servers are killed and cut off and leaders are moved', async ({
  annotate,
}) => {
  const name = 'faults'
  const streams = [`rivulet_${name}_events`, `rivulet_${name}_state`] as const
  const store = natsStore({ servers: cluster.urls, name, lease: LEASE })
  onTestFinished(() => store.close())
  await store.positionAt('end')
  const ways = await cluster.ways()
  const endless = { batch: 6, count: Number.MAX_SAFE_INTEGER, name, lease: LEASE }
  const first = { ...endless, stream: 'first', sources: ['a', 'both', 'b'], servers: ways.urls }
  const second = { ...endless, stream: 'second', sources: ['c', 'both', 'd'], servers: cluster.urls }
  const writers = [new Writer(first), new Writer(second)]
  for (const owner of ['one', 'two']) {
    const settings: TotalsSettings = { servers: cluster.urls, name, lease: LEASE, owner }
    start('totals-process.ts', settings)
  }
  const go = () => Promise.all(writers.map((writer) => writer.goes(60)))
  const counted = async (sources: readonly string[]) => {
    return (await store.processes.states(READER, sources)).map(Number)
  }
  /** Breaks something while writers write, and waits until they go on. */
  const during = async (what: string, breaks: () => Promise<unknown>) => {
    for (const writer of writers) writer.longest = 0
    await breaks()
    await go()
    const pauses = writers.map(({ longest }) => (longest / 1_000).toFixed(1))
    await annotate(`${what}: the writers paused for up to ${pauses.join(' and ')} s`)
  }

  await go()
  await during('no fault', go)

  const leader = await cluster.leader(streams[0])
  await during('the leader of the entries is killed', () => cluster.kill(leader))
  await during('it starts again', () => cluster.resume(leader))
  await cluster.whole(...streams)

  const { nats } = await cluster.manager()
  // The copies of older ones differ afterwards: docs/internals/nats.md.
  if (!nats.info?.version.startsWith('2.9.')) {
    const isolated = await cluster.leader(streams[0])
    await cluster.lead(streams[1], isolated)
    await ways.lead(isolated)
    await go()
    await during('the leader of both streams is cut off, with the first writer', async () => {
      cluster.cut(isolated)
    })
    await during('it is back', async () => {
      cluster.heal(isolated)
      await cluster.whole(...streams)
    })
  }

  await during('leaders are moved', async () => {
    for (let round = 0; round < 4; round++) {
      for (const stream of streams) await cluster.moveLeader(stream)
      await go()
    }
  })

  const count = Math.max(...writers.map(({ reached }) => reached)) + 300
  for (const writer of writers) writer.endAt(count)
  await expect.poll(() => writers.every(({ isDone }) => isDone), PATIENCE).toBe(true)
  const expected = expectedIds({ ...first, count }, { ...second, count })
  const sources = Object.keys(expected)
  let events = await auditedEvents(cluster.url(0), name)
  let found = Map.groupBy(events, ({ source }) => source)
  for (const source of sources) {
    expect(found.get(source)?.map(({ id }) => id)).toEqual(expected[source])
  }
  const totals = sources.map((source) => expected[source]?.length ?? 0)
  await expect.poll(() => counted(sources), PATIENCE).toEqual(totals)
  const outputs = sources.flatMap((source, i) =>
    Array.from({ length: Math.floor((totals[i] ?? 0) / 3) }, (_, n) =>
      JSON.stringify({ of: source, count: 3 * (n + 1) }),
    ),
  )
  const all = totals.reduce((sum, total) => sum + total, outputs.length)
  // The outputs of a commit come after its states.
  await expect.poll(async () => (await readAll(store)).length, PATIENCE).toBe(all)

  events = await auditedEvents(cluster.url(0), name)
  found = Map.groupBy(events, ({ source }) => source)
  const made = found.get('/processes/totals')?.map(({ data }) => JSON.stringify(data)) ?? []
  expect(made.toSorted()).toEqual(outputs.toSorted())
  expect(await store.streamPositions(['first', 'second'])).toEqual([String(count), String(count)])
  const recorded = (await readAll(store)).map((entry) => entry.recorded)
  expect(recorded).toHaveLength(all)
  expect(recorded.every((time, i) => time >= (recorded[i - 1] ?? 0))).toBe(true)
})
