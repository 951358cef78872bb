import { FetchError, stream } from '@durable-streams/client'
import type { StreamOptions } from '@durable-streams/client'
import { memoryStore } from 'rivulet/log'
import type { Entry } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { describe, expect, it } from 'vitest'
import { entriesOf } from '../../log/entries.ts'
import { change } from '../../operators/events.ts'
import { ALL, logServer } from './log-server.ts'

type Server = Awaited<ReturnType<typeof logServer>>

/** Begins a stream with a new token for each request. */
function begin({ url, token }: Server, options: Partial<StreamOptions> = {}) {
  return stream<Entry>({
    url,
    headers: { authorization: async () => `Bearer ${await token()}` },
    // Otherwise, it waits before it connects again after a connection of less than a second.
    sseResilience: { backoffBaseDelay: 0, minConnectionDuration: 0 },
    ...options,
  })
}

/** Follows the log. A connection that is cut ends the client's stream, so a new one goes on from the last batch. */
async function follow(server: Server, live: 'sse' | 'long-poll', options: Partial<StreamOptions> = {}) {
  const ending = new AbortController()
  const ids: string[] = []
  let received = () => {}
  let offset = '-1'
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => undefined)
  async function read(): Promise<void> {
    const response = await begin(server, { live, offset, signal: ending.signal, ...options })
    response.subscribeJson((batch) => {
      ids.push(...batch.items.map(({ id }) => id))
      ;({ offset } = batch)
      received()
    })
    await response.closed
  }
  const run = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await read().catch((error: unknown) => {
        if (error instanceof FetchError) throw error
      })
    }
  }
  run().catch(failed.reject)
  return {
    ids,
    /** Rejects with the response that ends it. */
    failed: failed.promise,
    /** Resolves once this entry is there. */
    async until(id: string): Promise<void> {
      while (!ids.includes(id)) {
        await new Promise<void>((resolve) => {
          received = resolve
        })
      }
    },
    end: () => ending.abort(),
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `${from + index}`)

async function addAll(server: Server, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += 200)
    await server.append(...ids.slice(at, at + 200).map((id) => change(id)))
}

describe('the client of Durable Streams', () => {
  it('catches up over pages, and resumes from its offset', async () => {
    const server = await logServer()
    await addAll(server, range(0, 1_200))

    const first = await begin(server)
    const before = await first.json()
    await addAll(server, range(1_200, 1_300))
    const second = await (await begin(server, { offset: first.offset })).json()

    expect(before).toHaveLength(1_200)
    expect([...before, ...second]).toEqual(await entriesOf(server.log))
  })

  it.each(['sse', 'long-poll'] as const)(
    'follows the log by %s, through cuts, without a gap or a repetition',
    async (live) => {
      const server = await logServer()
      await addAll(server, range(0, 100))
      const followed = await follow(server, live)

      for (let at = 100; at < 300; at += 20) {
        await addAll(server, range(at, at + 10))
        if (at % 60 === 0) server.cut()
        await addAll(server, range(at + 10, at + 20))
        await followed.until(`${at + 5}`)
      }
      await followed.until('299')
      followed.end()

      expect(followed.ids).toEqual(range(0, 300))
    },
  )

  it.each(['sse', 'long-poll'] as const)(
    'goes on by %s with a new token when its grant ends',
    async (live) => {
      const server = await logServer()
      let tokens = 0
      const authorization = async () => {
        tokens += 1
        return `Bearer ${await server.token({ ...ALL, timeToLive: 60_000 })}`
      }
      const followed = await follow(server, live, { headers: { authorization } })
      await addAll(server, ['1'])
      await followed.until('1')
      await server.hasOpen(1)
      const before = tokens

      server.pass(61_000)
      await addAll(server, ['2'])
      await followed.until('2')
      followed.end()

      expect(followed.ids).toEqual(['1', '2'])
      expect(tokens).toBeGreaterThan(before)
    },
  )

  it.each(['sse', 'long-poll'] as const)(
    'ends by %s with 401 when its grant ends and its token stays',
    async (live) => {
      const server = await logServer()
      const authorization = `Bearer ${await server.token({ ...ALL, timeToLive: 60_000 })}`
      const followed = await follow(server, live, { headers: { authorization } })
      await addAll(server, ['1'])
      await followed.until('1')
      await server.hasOpen(1)

      server.pass(61_000)
      await addAll(server, ['2'])

      await expect(followed.failed).rejects.toMatchObject({ status: 401 })
      expect(followed.ids).toEqual(['1'])
    },
  )

  it.each(['sse', 'long-poll'] as const)('ends by %s when its grant is revoked', async (live) => {
    const server = await logServer()
    const followed = await follow(server, live, {
      headers: { authorization: `Bearer ${await server.token()}` },
    })
    await addAll(server, ['1'])
    await followed.until('1')

    await server.authority.revoke({ sub: ALL.sub })
    await addAll(server, ['2'])

    await expect(followed.failed).rejects.toMatchObject({ status: 401 })
    expect(followed.ids).toEqual(['1'])
  })

  it('begins again after a 410, with what the log has', async () => {
    const store = memoryStore()
    const server = await logServer({ store })
    await addAll(server, range(0, 10))
    const { offset } = await begin(server, { live: false, offset: 'now' })
    await addAll(server, range(10, 30))
    await store.retention.trim({ bytes: 1_000_000, limit: 20 })

    const again = await begin(server, {
      live: false,
      offset,
      onError: (error) =>
        'status' in error && error.status === 410 ? { params: { offset: '-1' } } : undefined,
    })

    expect((await again.json()).map(({ id }) => id)).toEqual(range(20, 30))
  })
})

/** Counts the reads of a store. */
function counting(store: LogStore): { readonly store: LogStore; reads: number } {
  const counted = { store, reads: 0 }
  const read = store.read.bind(store)
  store.read = (after, options) => {
    counted.reads += 1
    return read(after, options)
  }
  return counted
}

describe('the log by server-sent events', () => {
  it('is read when the client takes it', async () => {
    const counted = counting(memoryStore())
    const server = await logServer(counted)
    await addAll(server, range(0, 10_000))
    const response = await server.get('?offset=-1&live=sse')
    const reader = response.body?.getReader()
    await reader?.read()

    const reads = counted.reads
    await addAll(server, range(10_000, 10_200))

    // 20 pages of 500 entries, some of which the buffers of the sockets hold.
    expect(reads).toBeLessThan(20)
    await reader?.cancel()
  })
})
