import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join as pathOf } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { natsStore } from 'rivulet/log/nats'
import { firstValueFrom } from 'rxjs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { research } from '../e2e/research.ts'
import { audit } from './nats/audit.ts'
import { groupReader, moved } from './nats/group-message.ts'
import { LossyProxy } from './nats/lossy-proxy.ts'
import { NatsServer } from './nats/server.ts'
import type { SharingMessage, SharingSettings } from './nats/sharing-process.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

const PARTS = 64
const MONITORS = 32
const PATIENCE = { timeout: 120_000, interval: 20 }

async function groupOf(name: string) {
  const group = await groupReader(server.url, name)
  onTestFinished(() => group.close())
  /** The state once these many are members. */
  const withMembers = async (count: number, without?: string) => {
    return await vi.waitFor(async () => {
      const state = await group.read()
      expect(state.members).toHaveLength(count)
      expect(state.members).not.toContain(without)
      return state
    }, PATIENCE)
  }
  return { read: () => group.read(), replace: (text: string) => group.replace(text), withMembers }
}

describe('recordings of several processes that share their sources', () => {
  /** Long enough that no machine is too slow to renew it. */
  const LEASE = 4_000

  it('record each event once and in order, and move no more than a share, while processes join, stop, are killed and suspended', async ({
    annotate,
  }) => {
    const name = 'shared'
    const { client, service, clock } = await research()
    const create = () =>
      client.monitors.create({ type: 'event_stream', frequency: '30d', settings: { query: 'tides' } })
    const ids = await Promise.all(
      Array.from({ length: MONITORS }, async () => (await firstValueFrom(create())).monitor_id),
    )
    const sourceOf = (id: string) => `/v1/monitors/${id}`
    const store = natsStore({ servers: server.url, name, lease: LEASE })
    onTestFinished(() => store.close())
    const partitions = await store.sharing.partitions()
    const group = await groupOf(name)

    /** The appends of each source: by which process, and when. */
    const appends = new Map(ids.map((id): [string, { owner: string; at: number }[]] => [sourceOf(id), []]))
    const failed: string[] = []
    const start = (owner: string) => {
      const settings: SharingSettings = {
        servers: server.url,
        name,
        lease: LEASE,
        owner,
        baseUrl: service.url ?? '',
        apiKey: service.apiKey ?? '',
        monitors: ids,
      }
      const child = fork(pathOf(import.meta.dirname, 'nats/sharing-process.ts'), [JSON.stringify(settings)], {
        execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      child.on('message', (message: SharingMessage) => {
        if ('failed' in message) return void failed.push(message.failed)
        for (const source of message.appended) appends.get(source)?.push({ owner, at: performance.now() })
      })
      return child
    }
    const ending = async (child: ChildProcess, end: () => void) => {
      const exited = once(child, 'exit')
      end()
      await exited
    }

    const loading = new AbortController()
    const eventsOf = () => service.records().monitor_events
    const load = async () => {
      while (!loading.signal.aborted) {
        // A completion is told from others by its time.
        clock.advance(1_000)
        const before = eventsOf().length
        await Promise.all(ids.map((id) => firstValueFrom(client.monitors.trigger(id))))
        await vi.waitFor(() => expect(eventsOf().length).toBeGreaterThanOrEqual(before + MONITORS), PATIENCE)
        await after(100)
      }
    }

    const figures: string[] = []
    /** What moves while something happens that leaves so many members, and how long its sources are not recorded. */
    const change = async (what: string, members: number, happen: () => Promise<unknown>) => {
      const before = await group.read()
      const from = performance.now()
      await happen()
      const state = await group.withMembers(members)
      const parts = moved(before.owners, state.owners)
      const count = Math.max(members, before.members.length)
      expect(parts.length).toBeLessThanOrEqual(Math.ceil(PARTS / count))
      const gone = before.members.filter((member) => !state.members.includes(member))
      // Of those that stay, one that leaves moves nothing.
      const left = before.owners.flatMap((owner, part) => (gone.includes(owner ?? '') ? [part] : []))
      expect(gone.length > 0 ? parts : []).toEqual(left)
      const sources = ids.map(sourceOf).filter((source) => parts.includes(partitions.of(source)))
      const pauses = await vi.waitFor(
        () =>
          sources.map((source) => {
            const all = appends.get(source) ?? []
            const last = all.findLast(({ at }) => at <= from)
            const next = all.find(({ at, owner }) => at > from && owner !== last?.owner)
            if (next === undefined) throw new Error(`${what}: ${source} is not recorded yet`)
            return Math.max(
              ...all.map(({ at }, n) =>
                at > from && at <= next.at ? at - Math.max(from, all[n - 1]?.at ?? from) : 0,
              ),
            )
          }),
        PATIENCE,
      )
      const pause = Math.max(0, ...pauses)
      figures.push(`${what}: ${parts.length} of ${PARTS} parts, at most ${pause.toFixed(0)} ms`)
      return state
    }

    const first = start('first')
    await group.withMembers(1)
    const second = start('second')
    await group.withMembers(2)
    const isRecorded = () =>
      vi.waitFor(() => {
        for (const [, all] of appends) expect(all.length).toBeGreaterThan(0)
      }, PATIENCE)
    await isRecorded()
    const loaded = load()
    let third = start('third')
    await group.withMembers(3)
    await change('join', 4, async () => start('fourth'))
    await change('stop', 3, () => ending(second, () => second.send('stop')))
    await change('kill', 2, () => ending(third, () => third.kill('SIGKILL')))
    third = start('fifth')
    const { members } = await group.withMembers(3)
    await change('suspend', 2, async () => first.kill('SIGSTOP'))
    await change('resume', 3, async () => first.kill('SIGCONT'))
    const known = await group.read()
    // The suspended one has joined anew.
    expect(known.members.filter((member) => !members.includes(member))).toHaveLength(1)

    loading.abort()
    await loaded
    const expected = Object.fromEntries(
      Object.entries(Object.groupBy(eventsOf(), ({ monitor_id: id }) => sourceOf(id))).map(
        ([source, events]) => [source, (events ?? []).map(({ id }) => id)],
      ),
    )
    const recorded = async () => {
      const found = await audit(server.url, name)
      return Object.fromEntries(
        Object.entries(found).map(([source, all]) => [
          source,
          // Without when a source was reached or lost.
          all.filter((id) => !/^(live|lost):/.test(id)),
        ]),
      )
    }
    await vi.waitFor(async () => expect(await recorded()).toEqual(expected), { ...PATIENCE, interval: 500 })
    expect(failed).toEqual([])
    await annotate(`${eventsOf().length} events, a lease of ${LEASE} ms. ${figures.join('; ')}`)
  })
})

describe('members of a group', () => {
  const LEASE = 2_000

  /** Opens a log that is a member until the end of the test. */
  function join(name: string, servers = server.url): void {
    const log = natsStore({ servers, name, lease: LEASE })
    onTestFinished(() => log.close())
    const follow = async () => {
      const shares = log.sharing.share('group', PARTS, new AbortController().signal)
      for await (const share of shares) expect(share.size).toBeLessThanOrEqual(PARTS)
    }
    follow().catch(() => {})
  }

  it('have all parts again after messages that no member has sent', async () => {
    const name = 'damaged'
    const group = await groupOf(name)
    join(name)
    let { members: before } = await group.withMembers(1)
    const many = Array.from({ length: 150_000 }, (_, n) => n.toString(36))
    for (const text of [
      '{',
      '{"members":["*-1",">-2","a b-3","",null,7],"owners":[0,1]}',
      `{"members":${JSON.stringify(many)}}`,
    ]) {
      await group.replace(text)
      const { members, owners } = await vi.waitFor(async () => {
        const state = await group.read()
        expect(state.members.length).toBe(1)
        return state
      }, PATIENCE)
      expect(members).not.toEqual(before)
      expect(new Set(owners)).toEqual(new Set(members))
      before = members
    }
  })

  it.each<readonly [how: string, stop: () => Promise<unknown>, resume: () => Promise<unknown>]>([
    ['killed', () => server.kill(), () => server.resume()],
    [
      'suspended',
      async () => process.kill(server.pid, 'SIGSTOP'),
      async () => process.kill(server.pid, 'SIGCONT'),
    ],
  ])(
    'keep their parts when the server is %s for longer than their leases, also where another one joins at once',
    async (how, stop, resume) => {
      const name = `away-${how}`
      const group = await groupOf(name)
      for (let count = 1; count <= 3; count++) {
        join(name)
        await group.withMembers(count)
      }
      const before = await group.read()
      await stop()
      await after(LEASE + 500)
      await resume()
      join(name)
      const { members, owners } = await group.withMembers(4)
      expect(members.slice(0, 3)).toEqual(before.members)
      expect(moved(before.owners, owners)).toHaveLength(PARTS / 4)
      // Later as well, when the members judge one another again.
      await after(LEASE + 500)
      expect(await group.read()).toEqual({ members, owners })
    },
  )

  it('keep their parts when the server was suspended for longer than their leases, and one of them can renew its lease only later than others', async () => {
    const name = 'late'
    const group = await groupOf(name)
    const proxy = await LossyProxy.start(server.port)
    onTestFinished(() => proxy.close())
    join(name)
    await group.withMembers(1)
    join(name, proxy.url)
    const before = await group.withMembers(2)
    process.kill(server.pid, 'SIGSTOP')
    const renewal = proxy.hold(`$KV.rivulet_${name}_leases.`)
    await renewal.reached
    await after(LEASE + 500)
    process.kill(server.pid, 'SIGCONT')
    // The other one has renewed its lease meanwhile, and looks more often than that.
    await after(LEASE / 2)
    const { members } = await group.read()
    renewal.release()
    expect(members).toEqual(before.members)
    await after(LEASE + 500)
    expect(await group.read()).toEqual(before)
  })
})
