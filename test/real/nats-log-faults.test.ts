import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { Msg } from '@nats-io/transport-node'
import { LogInUseError, LogServerError } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { audit } from './nats/audit.ts'
import { LossyProxy } from './nats/lossy-proxy.ts'
import { NatsServer } from './nats/server.ts'
import { expectedIds, write } from './nats/writer.ts'
import type { Upstream } from './nats/writer.ts'
import type { WriterMessage, WriterSettings } from './nats/writer-process.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

let server: NatsServer
let logs = 0

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

const newName = () => `faults-${++logs}`

function open(
  name: string,
  options: { readonly servers?: string; readonly lease?: number } = {},
  finished = onTestFinished,
): LogStore {
  const log = natsStore({ servers: server.url, name, ...options })
  finished(() => log.close())
  return log
}

async function isInOrder(log: LogStore): Promise<boolean> {
  const recorded = (await readAll(log)).map((entry) => entry.recorded)
  return recorded.every((time, i) => time >= (recorded[i - 1] ?? 0))
}

describe('a log on a NATS server, with faults', () => {
  it('loses, doubles and reorders nothing when the server is killed while two writers append, also to the same source', async () => {
    const name = newName()
    const first: Upstream = { stream: 'first', sources: ['a', 'both', 'b'], count: 900, batch: 7 }
    const second: Upstream = { stream: 'second', sources: ['c', 'both', 'd'], count: 900, batch: 11 }
    const kills = [150, 400, 650]
    const logsOfWriters = [open(name), open(name)]
    let restarting = Promise.resolve()
    const reached = (position: number) => {
      const [next] = kills
      if (next === undefined || position < next) return
      kills.shift()
      restarting = restarting.then(() => server.kill()).then(() => server.resume())
    }
    const [one, other] = logsOfWriters
    if (one === undefined || other === undefined) throw new Error('there are two')
    await Promise.all([write(one, first, reached), write(other, second)])
    await restarting
    expect(kills).toEqual([])
    expect(await audit(server.url, name)).toEqual(expectedIds(first, second))
    expect(await isInOrder(one)).toBe(true)
    expect(await one.streamPositions(['first', 'second'])).toEqual(['900', '900'])
  })

  it.each(['gets no answer', 'is refused as too early'])(
    'opens although the first request to a cluster that has just started %s',
    async (how) => {
      const proxy = await LossyProxy.start(server.port)
      onTestFinished(() => proxy.close())
      if (how === 'is refused as too early') {
        const nats = await connect({ servers: server.url })
        onTestFinished(() => nats.close())
        const error = { code: 503, err_code: 10_008, description: 'JetStream system temporarily unavailable' }
        const callback = (_: unknown, { subject }: Msg) =>
          nats.publish(subject.replace('x', '_'), JSON.stringify({ error }))
        nats.subscribe('xINBOX.>', { callback })
        await nats.flush()
      }
      proxy.leaveUnanswered('$JS.API.INFO')
      const log = open(newName(), { servers: proxy.url })
      expect(await readAll(log)).toEqual([])
      expect(proxy.hasLostAnswer).toBe(true)
    },
  )

  it('refuses at once to open on a server without JetStream', { timeout: 15_000 }, async () => {
    const plain = await NatsServer.start(
      'no_auth_user: user\naccounts { PLAIN { users: [{ user: user, password: none }] } }',
    )
    onTestFinished(() => plain.remove())
    const log = open(newName(), { servers: plain.url })
    await expect(readAll(log)).rejects.toThrow('is at a server without JetStream')
  })

  it('keeps the order of each of four writers that append different events to the same source at once', async () => {
    const name = newName()
    const writers = ['a', 'b', 'c', 'd']
    const counts = await Promise.all(
      writers.map(async (writer) => {
        const log = open(name)
        const fence = await log.claim(writer)
        const added: number[] = []
        for (let n = 0; n < 120; n += 6) {
          const entries = Array.from({ length: 6 }, (_, i) => newEntry(change(`${writer}${n + i}`, 'm')))
          // One more of each of the others, which only one of them can add.
          const shared = newEntry(change(`all${n}`, 'm'))
          const { entries: count } = await log.append([
            { fence, expect: null, entries: [...entries, shared] },
          ])
          added.push(count)
        }
        return added
      }),
    )
    const ids = (await audit(server.url, name))['/v1/monitors/m'] ?? []
    expect(ids).toHaveLength(4 * 120 + 20)
    for (const writer of [...writers, 'all']) {
      const own = ids.filter((id) => id.startsWith(writer) && (writer === 'all' || !id.startsWith('all')))
      const step = writer === 'all' ? 6 : 1
      expect(own).toEqual(Array.from({ length: 120 / step }, (_, n) => `${writer}${n * step}`))
    }
    // Each of the shared ones was counted by one writer.
    expect(counts.flat().reduce((sum, count) => sum + count, 0)).toBe(ids.length)
  })

  it.concurrent.for([60, 150, 271])(
    'fences a writer that was suspended for longer than its lease, at position %d or soon after',
    async (suspendedAt, context) => {
      const name = newName()
      const lease = 1_000
      const upstream: Upstream = { stream: 'shared', sources: ['a', 'b', 'c'], count: 600, batch: 5 }
      const settings: WriterSettings = { ...upstream, servers: server.url, name, lease, suspendedAt }
      const child = fork(join(import.meta.dirname, 'nats/writer-process.ts'), [JSON.stringify(settings)], {
        execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
      })
      context.onTestFinished(() => void child.kill('SIGKILL'))
      let last: WriterMessage | undefined
      const isSuspended = new Promise<void>((resolve) => {
        child.on('message', (message: WriterMessage) => {
          last = message
          if ('reached' in message && message.reached >= suspendedAt) resolve()
        })
      })
      await isSuspended
      const log = open(name, { lease }, context.onTestFinished)
      const exited = once(child, 'exit')
      let isResumed = false
      await write(log, upstream, (position) => {
        if (position < 400 || isResumed) return
        isResumed = true
        child.kill('SIGCONT')
      })
      await exited
      expect(last).toMatchObject({ written: { fenced: 1 } })
      expect(await audit(server.url, name)).toEqual(expectedIds(upstream))
      expect(await isInOrder(log)).toBe(true)
    },
  )

  describe.each([0.1, 120])('with a window for duplicates of %d s', (seconds) => {
    // Each waits for an answer that does not come.
    it.concurrent.for([
      ['write', 'ev'],
      ['answer', 'ev'],
      ['write', 'jr'],
      ['answer', 'jr'],
    ] as const)(
      'stores each entry once when the %s to a subject of %s is lost',
      async ([loss, kind], context) => {
        const name = newName()
        const proxy = await LossyProxy.start(server.port)
        context.onTestFinished(() => proxy.close())
        const log = open(name, { servers: proxy.url }, context.onTestFinished)
        await log.positionAt('start')
        const nats = await connect({ servers: server.url })
        const jsm = await jetstreamManager(nats)
        for (const stream of ['events', 'state']) {
          await jsm.streams.update(`rivulet_${name}_${stream}`, { duplicate_window: seconds * 1e9 })
        }
        await nats.close()
        const upstream: Upstream = { stream: 's', sources: ['a', 'b'], count: 120, batch: 20 }
        await write(log, upstream, (position) => {
          if (position === 40) proxy.arm(loss, `rv.${name}.${kind}.`)
        })
        expect(proxy.broken).toBe(1)
        expect(await audit(server.url, name)).toEqual(expectedIds(upstream))
        expect(await log.streamPositions(['s'])).toEqual(['120'])
      },
    )
  })

  it.each([-3_600_000, 3_600_000])(
    'connects again while the wall clock is wrong by %d ms',
    async (offset) => {
      const own = await NatsServer.start()
      onTestFinished(() => own.remove())
      const log = open(newName(), { servers: own.url })
      await log.positionAt('start')
      await own.kill()
      const now = Date.now.bind(Date)
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + offset)
      onTestFinished(() => clock.mockRestore())
      await own.resume()
      expect(await log.positionAt('end')).toBe(await log.positionAt('start'))
    },
    20_000,
  )

  it('frees a name whose claim was stored although the call that claimed it failed', async () => {
    const name = newName()
    const proxy = await LossyProxy.start(server.port)
    onTestFinished(() => proxy.close())
    const [one, other] = [open(name, { servers: proxy.url }), open(name)]
    // What it had claimed before is over with the next claim.
    await one.claim('stream')
    proxy.arm('answer', `rv.${name}.jr.`, true)
    const now = performance.now.bind(performance)
    // From then on, it has been tried for long enough.
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 31_000 * proxy.broken)
    onTestFinished(() => clock.mockRestore())
    await expect(one.claim('stream')).rejects.toBeInstanceOf(LogServerError)
    clock.mockRestore()
    proxy.open()
    await expect(other.claim('stream')).rejects.toBeInstanceOf(LogInUseError)
    expect(await other.claim('stream', { wait: new AbortController().signal })).toMatchObject({
      name: 'stream',
    })
    expect(proxy.broken).toBe(1)
  })
})
