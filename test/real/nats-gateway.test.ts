import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { openLog } from 'rivulet/log'
import type { Entry, EventLog, Position, ProcessChange } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { rowKey } from 'rivulet/live'
import { natsStore } from 'rivulet/log/nats'
import { lastValueFrom, toArray } from 'rxjs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ClientModel, openStream } from '../gateway/client.ts'
import type { Stream } from '../gateway/client.ts'
import { processed } from '../gateway/fixture.ts'
import { eventsOf, expectedCells } from '../gateway/soak/cells.ts'
import { readAll } from '../log/conformance/fixture.ts'
import { NatsServer } from './nats/server.ts'
import type { GatewayAddress, GatewaySettings } from './nats/gateway-process.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const EVENTS = 1_200
const SEED = 7
const LEASE = 1_000

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

/** A gateway in a process of its own. */
async function gateway(
  name: string,
): Promise<GatewayAddress & { readonly child: ChildProcess; url: string }> {
  const settings: GatewaySettings = { servers: server.url, name, lease: LEASE }
  const child = fork(join(import.meta.dirname, 'nats/gateway-process.ts'), [JSON.stringify(settings)], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [address]: GatewayAddress[] = await once(child, 'message')
  if (address === undefined) throw new Error('the gateway sent no address')
  return { ...address, child, url: `http://127.0.0.1:${address.port}/live` }
}

/** Appends the events of the run, a part with each call. */
async function recorder(log: LogStore) {
  const events = [...eventsOf(EVENTS, SEED)]
  const fence = await log.claim('stream')
  let next = 0
  return async (count: number) => {
    for (const end = Math.min(next + count, EVENTS); next < end; next += 50) {
      const entries = events.slice(next, Math.min(next + 50, end)).map((event) => newEntry(event))
      await log.append([{ fence, expect: null, entries }])
    }
  }
}

/** The rows of the client are those of all events so far: none is missing, repeated or out of order. */
async function untilUpTo(stream: Stream, events: number): Promise<void> {
  const cells = Array.from(expectedCells(events, SEED), ([key, cell]) => [rowKey(key.split('/')), cell])
  const expected = JSON.stringify(sorted(Object.fromEntries(cells)))
  await stream.untilRows((model) => JSON.stringify(sorted(model.rows('all'))) === expected)
}

function sorted(rows: Readonly<Record<string, unknown>>): unknown {
  return Object.entries(rows).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function openLogOf(name: string) {
  const store = natsStore({ servers: server.url, name, lease: LEASE })
  onTestFinished(() => store.close())
  return store
}

/** The changes of the view that there are. */
async function changesOf(
  log: EventLog | undefined,
  after?: Position,
): Promise<readonly ProcessChange<unknown>[]> {
  if (log === undefined) return []
  return lastValueFrom(log.state('view:all').changes(after, { live: false }).pipe(toArray()))
}

describe('gateways over one log on a NATS server', () => {
  it('serve a client that moves between them, also when one is killed and when the server is', async () => {
    const record = await recorder(openLogOf('moving'))
    const [first, second] = await Promise.all([gateway('moving'), gateway('moving')])
    const model = new ClientModel()
    const open = (of: typeof first) => {
      const after = model.positions.get('all')
      return openStream(of.url, of.token, [{ view: 'all', ...(after !== undefined && { after }) }], { model })
    }
    let stream = await open(first)
    for (let moved = 0; moved < 6; moved++) {
      const recording = record(100)
      // In the middle of what is recorded.
      await stream.until('changes')
      await stream.close()
      stream = await open(moved % 2 === 0 ? second : first)
      await recording
    }
    await untilUpTo(stream, 600)
    expect(model.gaps).toEqual([])

    // Whichever of them makes the view: the other one goes on with it.
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')
    await stream.close()
    stream = await open(second)
    await record(200)
    await untilUpTo(stream, 800)

    await server.kill()
    await server.resume()
    await record(200)
    await untilUpTo(stream, 1_000)
    const third = await gateway('moving')
    const moved = await open(third)
    await record(200)
    await Promise.all([untilUpTo(stream, EVENTS), untilUpTo(moved, EVENTS)])
    expect(model.gaps).toEqual([])
    expect([second, third].map(({ child }) => child.exitCode)).toEqual([null, null])
  })

  it('have the same positions, of the log and of a view', async () => {
    const store = openLogOf('positions')
    const record = await recorder(store)
    const [first, second] = await Promise.all([gateway('positions'), gateway('positions')])
    await record(100)
    const ids: unknown[] = []
    let offset = '-1'
    for (const { url, token } of [first, second, first, second]) {
      const response = await fetch(`${url}/log?offset=${encodeURIComponent(offset)}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      expect(response.status).toBe(200)
      const entries: Entry[] = await response.json()
      ids.push(...entries.map(({ id }) => id))
      offset = response.headers.get('stream-next-offset') ?? ''
      await record(25)
    }
    expect(ids).toEqual((await readAll(store)).slice(0, 175).map(({ id }) => id))

    await processed(store, 'all')
    const logs = await Promise.all([store, openLogOf('positions')].map((each) => openLog(each)))
    const [begin] = await changesOf(logs[0])
    const rest = await Promise.all(logs.map((log) => changesOf(log, begin?.position)))
    expect(rest[0]?.length).toBeGreaterThan(50)
    expect(rest[1]).toEqual(rest[0])
  })
})
