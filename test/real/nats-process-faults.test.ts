import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { readAll } from '../log/conformance/fixture.ts'
import { NatsServer } from './nats/server.ts'
import type { TotalsSettings } from './nats/totals-process.ts'
import { write } from './nats/writer.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

const READER = 'process:totals'
const SOURCES = ['a', 'b', 'c', 'd', 'e']
const COUNT = 1_500
const LEASE = 1_000

it('a process counts each event once and appends each output once, whichever of its workers are killed or suspended, and over kills of the server', async () => {
  const name = 'totals'
  const store = natsStore({ servers: server.url, name, lease: LEASE })
  onTestFinished(() => store.close())
  const workers = new Map<string, ChildProcess>()
  const ended: string[] = []
  const start = (owner: string) => {
    const settings: TotalsSettings = { servers: server.url, name, lease: LEASE, owner }
    const child = fork(join(import.meta.dirname, 'nats/totals-process.ts'), [JSON.stringify(settings)], {
      execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
    })
    child.on('message', (message: { readonly ended: string }) => ended.push(message.ended))
    workers.set(owner, child)
    onTestFinished(() => void child.kill('SIGKILL'))
  }
  for (const owner of ['one', 'two', 'three']) start(owner)
  const running = async () => {
    const { readers } = await store.retention.stats()
    const child = workers.get(readers.find(({ name: each }) => each === READER)?.owner ?? '')
    if (child === undefined) throw new Error('no worker runs the process')
    return child
  }
  const counted = async () => {
    const keys = SOURCES.map((source) => `/v1/monitors/${source}`)
    const states = await store.processes.states(READER, keys)
    return states.reduce((sum, state) => sum + Number(state), 0)
  }
  /** Writes so many more events, of which at least one is counted. */
  let written = 0
  const go = async (more: number) => {
    const before = await counted()
    written += more
    await write(store, { stream: 's', sources: SOURCES, count: written, batch: 10 })
    await expect.poll(counted, { timeout: 60_000 }).toBeGreaterThan(before)
  }

  await go(300)
  const killed = await running()
  const exited = once(killed, 'exit')
  killed.kill('SIGKILL')
  await exited
  start('four')
  await go(300)
  const suspended = await running()
  suspended.kill('SIGSTOP')
  await go(300)
  const isTakenOver = async () => (await running().catch(() => suspended)) !== suspended
  await expect.poll(isTakenOver, { timeout: 60_000 }).toBe(true)
  suspended.kill('SIGCONT')
  await go(300)
  await server.kill()
  await server.resume()
  await go(COUNT - written)
  await expect.poll(counted, { timeout: 60_000 }).toBe(COUNT)

  // The suspended one wrote nothing when it was resumed.
  await expect.poll(() => ended, { timeout: 60_000 }).toContain('FencedError')
  const outputs = async () => {
    const entries = await readAll(store)
    return entries.filter(({ source }) => source === '/processes/totals')
  }
  const expected = SOURCES.flatMap((source) =>
    Array.from({ length: COUNT / SOURCES.length / 3 }, (_, n) =>
      JSON.stringify({ of: `/v1/monitors/${source}`, count: 3 * (n + 1) }),
    ),
  )
  // The outputs of a commit come after its states.
  await expect.poll(async () => (await outputs()).length, { timeout: 60_000 }).toBe(expected.length)
  const found = (await outputs()).map(({ data }) => JSON.stringify(data))
  expect(found.toSorted()).toEqual(expected.toSorted())
  expect(await readAll(store)).toHaveLength(COUNT + expected.length)
})
