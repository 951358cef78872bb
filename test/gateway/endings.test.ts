import { memoryStore } from 'rivulet/log'
import type { Position } from 'rivulet/log'
import { describe, expect, it, vi } from 'vitest'
import { ClientModel, openStream, Stream } from './client.ts'
import { held, processed, served, setItem } from './fixture.ts'

const EVERYTHING = [{ view: 'everything' }]

/** A body that the test sends. */
function pipe() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const awaited = Promise.withResolvers<void>()
  const stream = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
      },
      pull: () => awaited.resolve(),
    },
    { highWaterMark: 0 },
  )
  return {
    stream,
    /** Resolves once the gateway reads it. */
    awaited: awaited.promise,
    end: (text: string) => {
      controller?.enqueue(new TextEncoder().encode(text))
      controller?.close()
    },
  }
}

/** A request for a stream whose body is sent later. */
function slowRequest(url: string, token: string, body: ReadableStream<Uint8Array>) {
  const request = {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
    // Node asks for it, and the types of `fetch` do not have it.
    duplex: 'half',
  }
  return new Request(`${url}/stream`, request)
}

describe('a request whose body is still on its way', () => {
  it('is refused when the gateway has closed meanwhile', async () => {
    const { gateway, url, token } = await served()
    const body = pipe()
    const responding = gateway(slowRequest(url, await token(), body.stream))
    await body.awaited
    await gateway.close()

    body.end(JSON.stringify({ views: EVERYTHING }))
    const response = await responding

    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({
      error: { code: 'unavailable', message: 'the gateway is closed' },
    })
  })

  it('gets no row when its grant has expired meanwhile', async () => {
    const { gateway, url, set } = await held()
    await set({ a: 1 })
    const now = Date.now()
    const clock = vi.spyOn(Date, 'now').mockReturnValue(now)
    try {
      const token = await gateway.grant({
        sub: 'slow',
        views: ['everything'],
        sources: ['*'],
        timeToLive: 60_000,
      })
      const body = pipe()
      const responding = gateway(slowRequest(url, token, body.stream))
      await body.awaited
      clock.mockReturnValue(now + 60_000)
      body.end(JSON.stringify({ views: EVERYTHING }))
      const stream = new Stream(await responding, new ClientModel())

      const { data } = await stream.until('close')

      expect(data).toEqual({ reason: 'expired' })
      expect(stream.frames.map(({ name }) => name)).toEqual(['open', 'close'])
    } finally {
      clock.mockRestore()
    }
  })
})

describe('a request that was aborted before there is a response', () => {
  it('leaves no connection', async () => {
    const { gateway, url, token } = await served()
    const ended = vi.fn<() => void>()
    gateway.observe({ connected: () => ended })
    const headers = { authorization: `Bearer ${await token()}` }

    const request = new Request(`${url}/stream?view=everything`, { headers, signal: AbortSignal.abort() })
    await gateway(request)

    expect(ended).toHaveBeenCalledOnce()
  })
})

describe('a stream whose grant ends while its next frame is read', () => {
  it('does not get that frame', async () => {
    const store = memoryStore()
    const { changes } = store.processes
    let hold: Promise<void> | undefined
    const reading = Promise.withResolvers<void>()
    Object.assign(store.processes, {
      changes: async (...of: Parameters<typeof changes>) => {
        const page = await changes(...of)
        if (hold === undefined || of[0] !== 'process:view:everything') return page
        reading.resolve()
        await hold
        return page
      },
    })
    const { gateway, url, append } = await served({ store })
    await append(setItem('a', 'x', '1'))
    await processed(store)
    const token = await gateway.grant({ sub: 'gone', views: ['everything'], sources: ['*'] })
    const first = await openStream(url, token, EVERYTHING, { fetcher: gateway })
    await first.until('current')
    const position = first.model.positions.get('everything') ?? ''
    await append(setItem('a', 'x', '2'))
    await first.untilRows((model) => JSON.stringify(model.rows('everything')).includes('"2"'))
    await first.close()

    const release = Promise.withResolvers<void>()
    hold = release.promise
    const second = await openStream(url, token, [{ view: 'everything', after: position }], {
      fetcher: gateway,
    })
    await second.until('open')
    const next = second.next()
    await reading.promise
    await gateway.revoke({ sub: 'gone' })
    hold = undefined
    release.resolve()

    expect(await next).toMatchObject({ name: 'close', data: { reason: 'revoked' } })
  })
})

describe('a view that has no followers any more', () => {
  it('does not read from where they were when others come later', async () => {
    const store = memoryStore()
    const { changes } = store.processes
    const from: Position[] = []
    let hold: Promise<void> | undefined
    const reading = Promise.withResolvers<void>()
    Object.assign(store.processes, {
      changes: async (...of: Parameters<typeof changes>) => {
        from.push(of[1])
        const page = await changes(...of)
        if (hold !== undefined) {
          reading.resolve()
          await hold
        }
        return page
      },
    })
    const { gateway, url, token, append } = await served({ store })
    await append(setItem('a', 'x', '1'))
    await processed(store)
    const own = await token()
    const first = await openStream(url, own, EVERYTHING, { fetcher: gateway })
    await first.until('current')
    const release = Promise.withResolvers<void>()
    hold = release.promise
    await append(setItem('a', 'x', '2'))
    await reading.promise
    await first.close()
    hold = undefined
    release.resolve()
    await append(setItem('a', 'x', '3'))
    await processed(store)
    const end = await store.processes.end('process:view:everything')
    from.length = 0

    const second = await openStream(url, own, EVERYTHING)
    await second.until('current')

    expect(new Set(from)).toEqual(new Set([end]))
  })
})

describe('a stream of EventSource of whose views one is denied', () => {
  it('resumes the others', async () => {
    const { url, token, store, append } = await served()
    await append(setItem('a', 'x', '1'))
    await processed(store)
    const open = async (id?: string) => {
      const query = new URLSearchParams([
        ['view', 'missing'],
        ['view', 'everything'],
      ])
      const headers = {
        authorization: `Bearer ${await token()}`,
        ...(id !== undefined && { 'last-event-id': id }),
      }
      return new Stream(await fetch(`${url}/stream?${query}`, { headers }), new ClientModel())
    }
    const first = await open()
    const { id } = await first.until('current')
    await first.close()

    const second = await open(id)
    await second.until('current')
    await second.close()

    expect(second.frames.map(({ name }) => name)).toEqual(['open', 'denied', 'current'])
  })
})

describe('a gateway that is closed', () => {
  it('rejects a revocation with an error that says so', async () => {
    const { gateway } = await served()
    await gateway.close()

    await expect(gateway.revoke({ sub: 'user' })).rejects.toMatchObject({
      code: 'log_closed',
      message: 'the gateway is closed: stop what uses it first, then close it',
    })
  })
})
