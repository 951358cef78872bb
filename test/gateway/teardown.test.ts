import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore } from 'rivulet/log'
import { describe, expect, it, vi } from 'vitest'
import { openStream } from './client.ts'
import { held, served } from './fixture.ts'

const EVERYTHING = [{ view: 'everything' }]

/** Asks for a stream until it is no longer refused. */
async function opened(url: string, token: string) {
  for (;;) {
    const stream = await openStream(url, token, EVERYTHING).catch(() => undefined)
    if (stream !== undefined) return stream
    await turn()
  }
}

describe('a client that is gone', () => {
  it('frees its place among the connections of its subject', async () => {
    const { url, token } = await served({ maxConnections: 1 })
    const own = await token()
    const first = await openStream(url, own, EVERYTHING)
    await first.until('current')
    await expect(openStream(url, own, EVERYTHING)).rejects.toThrow('429')

    await first.close()
    const second = await opened(url, own)

    expect((await second.until('current')).data).toEqual({ view: 'everything' })
  })

  it('frees its place before it has read anything, also where its request was refused', async () => {
    const { url, token, gateway } = await served({ maxConnections: 1 })
    const own = await token()
    const headers = { authorization: `Bearer ${own}`, 'content-type': 'application/json' }
    for (let n = 0; n < 5; n++) {
      const refused = await gateway(new Request(`${url}/stream`, { method: 'POST', headers, body: '{}' }))
      expect(refused.status).toBe(400)
      const body = JSON.stringify({ views: EVERYTHING })
      const response = await gateway(new Request(`${url}/stream`, { method: 'POST', headers, body }))
      expect(response.status).toBe(200)
      await response.body?.cancel()
    }
  })

  it('ends where its request is aborted, in runtimes that say so', async () => {
    const { url, token, gateway } = await served({ maxConnections: 1 })
    const headers = { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' }
    const open = (signal: AbortSignal) =>
      gateway(
        new Request(`${url}/stream`, {
          method: 'POST',
          headers,
          body: JSON.stringify({ views: EVERYTHING }),
          signal,
        }),
      )
    const leaving = new AbortController()
    const first = await open(leaving.signal)
    leaving.abort()
    const second = await open(new AbortController().signal)

    expect([first.status, second.status]).toEqual([200, 200])
    await second.body?.cancel()
  })

  it('leaves no call of the log behind, and several of a view have one between them', async () => {
    const store = memoryStore()
    const { wait } = store.processes
    const waiting = new Set<object>()
    Object.assign(store.processes, {
      wait: (...of: Parameters<typeof wait>) => {
        const call = {}
        waiting.add(call)
        return wait(...of).finally(() => waiting.delete(call))
      },
    })
    /** Resolves once so many calls wait. */
    const untilWaiting = async (count: number) => {
      await vi.waitFor(() => expect(waiting.size).toBe(count), { timeout: 10_000, interval: 1 })
    }
    const { url, token } = await served({ store })
    const own = await token()
    const both = [await openStream(url, own, EVERYTHING), await openStream(url, own, EVERYTHING)]
    for (const each of both) await each.until('current')
    await untilWaiting(1)

    for (const each of both) await each.close()
    await untilWaiting(0)
    const later = await openStream(url, own, EVERYTHING)
    await later.until('current')
    await untilWaiting(1)
    await later.close()
    await untilWaiting(0)

    expect(waiting.size).toBe(0)
  })
})

describe('a subject whose grant ends', () => {
  it('gets the reason, and nothing after it', async () => {
    const { gateway, url, set } = await held()
    await set({ a: 1 })
    const grant = { sub: 'gone', views: ['everything'], sources: ['*'] }
    const token = await gateway.grant(grant)
    const stream = await openStream(url, token, EVERYTHING)
    await stream.until('current')

    await gateway.revoke({ sub: 'gone' })
    await set({ a: 2 })

    expect((await stream.until('close')).data).toEqual({ reason: 'revoked' })
    expect(await stream.next()).toBeUndefined()
    expect(stream.model.rows('everything')).toEqual({ a: 1 })
  })
})
