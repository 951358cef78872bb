import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, vi } from 'vitest'
import { LogStream } from '../../../src/gateway/durable-streams/log-stream.ts'
import type { Grant } from '../../../src/gateway/grant.ts'
import { append } from '../../log/append.ts'
import { entriesOf } from '../../log/entries.ts'
import { scratchFile } from '../../log/sqlite/scratch.ts'
import { change, fullRun, groupStatus } from '../../operators/events.ts'
import { ALL, logServer } from './log-server.ts'

const NEXT = 'stream-next-offset'
const UP_TO_DATE = 'stream-up-to-date'

const MONITOR: Grant = { ...ALL, sources: ['/v1/monitors/m'], types: ['monitor.event_stream'] }

async function idsOf(response: Response): Promise<unknown[]> {
  const entries: Entry[] = await response.json()
  return entries.map(({ id }) => id)
}

/** An alert that a process has appended because of an event of another source. */
function alert(source: string, origin?: string): ResearchEvent {
  return {
    ...change('alert'),
    cause: {
      process: 'rules',
      source,
      id: '1',
      revision: 1,
      hops: 1,
      ...(origin !== undefined && { origin }),
    },
  }
}

describe('the log by Durable Streams', () => {
  it('is the entries of the log, as JSON', async () => {
    const { get, log, append: add } = await logServer()
    await add(change('1'), groupStatus('2'), fullRun('3'))

    const response = await get()

    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get(UP_TO_DATE)).toBe('true')
    expect(await response.json()).toEqual(await entriesOf(log))
  })

  it('goes on from the next offset, with what was appended since', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'), change('2'))
    const offset = (await get('?offset=-1')).headers.get(NEXT)
    await add(change('3'))

    const response = await get(`?offset=${offset}`)
    const again = await get(`?offset=${response.headers.get(NEXT)}`)

    expect(await idsOf(response)).toEqual(['3'])
    expect(await idsOf(again)).toEqual([])
    expect(again.headers.get(NEXT)).toBe(response.headers.get(NEXT))
  })

  it('takes the position of an entry as an offset too', async () => {
    const { get, log, append: add } = await logServer()
    await add(change('1'), change('2'))
    const [first] = await entriesOf(log)

    expect(await idsOf(await get(`?offset=${encodeURIComponent(first?.position ?? '')}`))).toEqual(['2'])
  })

  it('comes in pages, of which only the last one is up to date', async () => {
    const { get, append: add } = await logServer()
    for (let page = 0; page < 6; page++) {
      await add(...Array.from({ length: 200 }, (_, index) => change(`${page * 200 + index}`)))
    }
    const sizes: number[] = []
    let offset = '-1'
    let isEnd = false
    while (!isEnd) {
      const response = await get(`?offset=${offset}`)
      sizes.push((await idsOf(response)).length)
      offset = response.headers.get(NEXT) ?? ''
      isEnd = response.headers.has(UP_TO_DATE)
    }

    expect(sizes.reduce((sum, size) => sum + size)).toBe(1_200)
    expect(sizes.length).toBeGreaterThan(2)
  })

  it('has its end in a HEAD, and at offset now', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'))
    const end = (await get()).headers.get(NEXT)

    const head = await get('', { method: 'HEAD' })
    const now = await get('?offset=now')

    expect([head.status, head.headers.get(NEXT), head.headers.get('cache-control')]).toEqual([
      200,
      end,
      'no-store',
    ])
    expect([now.headers.get(NEXT), now.headers.get(UP_TO_DATE), await now.json()]).toEqual([end, 'true', []])
    expect([now.headers.get('cache-control'), now.headers.get('etag')]).toEqual(['no-store', null])
  })

  it.each([
    ['?offset=', 'malformed'],
    ['?offset=a%20b', 'malformed'],
    ['?offset=..%2Fa.1', 'malformed'],
    ['?offset=-1&offset=-1', 'more than one offset'],
    ['?live=sse', 'needs an offset'],
    ['?live=long-poll', 'needs an offset'],
    ['?offset=-1&live=always', 'long-poll or sse'],
  ])('refuses %s', async (query, reason) => {
    const { get } = await logServer()

    const response = await get(query)

    expect(response.status).toBe(400)
    expect((await response.json()).error).toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(reason),
    })
  })

  it.each(['', '&live=sse', '&live=long-poll'])(
    'has nothing for an offset of another log%s: 410',
    async (live) => {
      const [one, other] = [await logServer(), await logServer()]
      await other.append(change('1'))
      const offset = (await other.get()).headers.get(NEXT)

      const response = await one.get(`?offset=${encodeURIComponent(offset ?? '')}${live}`)

      expect(response.status).toBe(410)
      expect((await response.json()).error.message).toContain('-1')
    },
  )
})

describe('the log by Durable Streams, where retention has deleted entries', () => {
  const trimmed = async () => {
    const store = memoryStore()
    const server = await logServer({ store })
    await server.append(change('1'))
    const before = (await server.get()).headers.get(NEXT)
    await server.append(change('2'), change('3'))
    await store.retention.trim({ bytes: 1_000_000, limit: 2 })
    return { ...server, before: encodeURIComponent(before ?? '') }
  }

  it.each(['', '&live=sse', '&live=long-poll'])(
    'has nothing for an offset before them%s: 410',
    async (live) => {
      const { get, before } = await trimmed()

      const response = await get(`?offset=${before}${live}`)

      expect(response.status).toBe(410)
      expect((await response.json()).error).toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('-1'),
      })
    },
  )

  it('says so to a client that follows it and was overtaken', async () => {
    const store = memoryStore()
    const { log, authority, append: add } = await logServer({ store })
    const stream = new LogStream(log, { closing: new AbortController().signal })
    await add(change('1'))
    const request = new Request('http://localhost/log?offset=-1&live=sse')
    const response = await stream.respond(request, authority.accessOf(MONITOR), {
      live: () => () => {},
      read: () => () => {},
    })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    const first = await reader?.read()
    await add(change('2'), change('3'))
    await store.retention.trim({ bytes: 1_000_000, limit: 2 })

    const second = await reader?.read()
    const third = await reader?.read()
    await reader?.cancel()

    expect(first?.value).toContain('"id":"1"')
    expect(second?.value).toContain('"type":"log.gap"')
    expect(third?.value).toContain('"id":"3"')
  })

  it('begins at the first entry that is there', async () => {
    const { get } = await trimmed()

    expect(await idsOf(await get('?offset=-1'))).toEqual(['3'])
  })
})

describe('the log by Durable Streams, as a grant sees it', () => {
  it('has only the types and sources of the grant, and its offset moves over the others', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'), groupStatus('2'), change('3', 'other'), change('4'), fullRun('5'))

    const response = await get('', { grant: MONITOR })

    expect(await idsOf(response)).toEqual(['1', '4'])
    expect(response.headers.get(NEXT)).toBe((await get('?offset=now')).headers.get(NEXT))
  })

  it('moves on over pages without anything that the grant sees', async () => {
    const { get, append: add } = await logServer()
    for (let page = 0; page < 6; page++) {
      await add(...Array.from({ length: 200 }, (_, index) => change(`${page * 200 + index}`, 'other')))
    }
    await add(change('last'))

    expect(await idsOf(await get('', { grant: MONITOR }))).toEqual(['last'])
  })

  it('leaves out the fields that the grant omits', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'))

    const [entry] = await (
      await get('', { grant: { ...ALL, omit: ['output', 'data.event_group_id'] } })
    ).json()

    expect(entry).toMatchObject({ id: '1', data: { event_id: '1' } })
    expect(JSON.stringify(entry)).not.toMatch(/output|event_group_id/)
  })

  it.each([
    ['/v1/monitors/m', undefined, true],
    ['/v1/monitors/secret', undefined, false],
    ['/v1/monitors/m', '/v1/monitors/secret', false],
  ])(
    'names the cause of an entry, %s and %s, only where the grant has it',
    async (source, origin, isThere) => {
      const { get, append: add } = await logServer()
      await add(alert(source, origin))

      const [entry] = await (await get('', { grant: MONITOR })).json()

      expect('cause' in entry).toBe(isThere)
      expect(JSON.stringify(entry)).not.toContain('secret')
    },
  )

  it('is refused without types', async () => {
    const { get } = await logServer()

    expect((await get('', { grant: { ...ALL, types: [] } })).status).toBe(403)
  })
})

describe('a page that a client has', () => {
  it('is not sent again: 304', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'))
    const first = await get()
    const etag = first.headers.get('etag') ?? ''

    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await get('', { headers: { 'if-none-match': known } })
      expect([again.status, await again.text()]).toEqual([304, ''])
      expect(again.headers.get(NEXT)).toBe(first.headers.get(NEXT))
    }
    expect((await get('', { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  })

  it('is sent again once its end is not that of the log any more', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'))
    const etag = (await get()).headers.get('etag') ?? ''
    await add(change('2', 'other'))

    expect((await get('', { headers: { 'if-none-match': etag }, grant: MONITOR })).status).toBe(200)
  })

  it('is another one for a grant that sees less', async () => {
    const { get, append: add } = await logServer()
    await add(change('1'))
    const etag = (await get()).headers.get('etag') ?? ''

    const response = await get('', {
      headers: { 'if-none-match': etag },
      grant: { ...ALL, omit: ['output'] },
    })

    expect(response.status).toBe(200)
    expect(response.headers.get('vary')).toContain('Authorization')
    expect(response.headers.get('cache-control')).toBe('private, no-cache')
  })

  it('is sent again after entries of it were forgotten', async () => {
    const { get, log, append: add } = await logServer()
    await add(change('1'), change('2', 'gone'), change('3'))
    const etag = (await get()).headers.get('etag') ?? ''
    await log.forget({ source: '/v1/monitors/gone' })

    const response = await get('', { headers: { 'if-none-match': etag } })

    expect(response.status).toBe(200)
    expect(await idsOf(response)).toEqual(['1', '3'])
  })
})

describe('a long poll', () => {
  it('responds with the first entry that the grant sees', async () => {
    const { get, append: add } = await logServer()
    const polled = get('?offset=now&live=long-poll', { grant: MONITOR })
    const isOver = polled.then(() => true)
    for (let n = 0; n < 3; n++) {
      await add(change(`${n}`, 'other'))
      expect(await Promise.race([isOver, turn(false)])).toBe(false)
    }
    // The poll may begin after an append, and sees those after it.
    const adding = (async () => {
      for (let n = 0; ; n++) {
        await add(change(`m${n}`))
        if (await Promise.race([isOver, turn(false)])) return
      }
    })()

    const response = await polled
    await adding

    expect(response.status).toBe(200)
    expect(response.headers.get('stream-cursor')).toMatch(/^\d+$/)
    expect((await idsOf(response))[0]).toMatch(/^m\d+$/)
  })

  it('ends with 204 when nothing comes, and its offset has moved over hidden entries', async () => {
    const { get, append: add } = await logServer({ longPoll: 1 })
    await add(change('1'))
    const offset = (await get()).headers.get(NEXT)
    await add(change('2', 'other'))

    const response = await get(`?offset=${offset}&live=long-poll`, { grant: MONITOR })

    expect([response.status, await response.text(), response.headers.get(UP_TO_DATE)]).toEqual([
      204,
      '',
      'true',
    ])
    expect(response.headers.get('stream-cursor')).toMatch(/^\d+$/)
    expect(response.headers.get(NEXT)).toBe((await get('?offset=now')).headers.get(NEXT))
  })

  it('ends with its grant, with the gateway, and counts as a connection until then', async () => {
    const { get, hasOpen, pass, closing } = await logServer({ maxConnections: 1 })
    const first = get('?offset=now&live=long-poll')
    await hasOpen(1)
    const refused = await get('?offset=now&live=long-poll')
    pass(601_000)
    const ended = await first
    const second = get('?offset=now&live=long-poll')
    await hasOpen(1)
    closing.abort()

    expect([refused.status, ended.ok, (await second).ok]).toEqual([429, true, true])
  })

  it.each(['long-poll', 'sse'])('by %s counts no more once its client is gone', async (live) => {
    const { get, hasOpen } = await logServer({ longPoll: 60_000 })
    const going = new AbortController()
    const response = get(`?offset=now&live=${live}`, { signal: going.signal })
    response.catch(() => undefined)
    await hasOpen(1)

    going.abort()

    await expect(hasOpen(0)).resolves.toBeUndefined()
  })
})

describe('reads of one subject at the same time', () => {
  it('are limited, apart from its live responses and from other subjects', async () => {
    const store = memoryStore()
    const { get, append: add, hasOpen, log } = await logServer({ store, maxConnections: 1 })
    await add(change('1'))
    const live = get('?offset=now&live=long-poll')
    await hasOpen(1)
    const begun = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const read = vi.spyOn(log, 'read').mockImplementationOnce(async (...of) => {
      begun.resolve()
      await held.promise
      return log.read(...of)
    })
    const first = get()
    await begun.promise

    const second = await get()
    const other = await get('', { grant: { ...ALL, sub: 'bob' } })
    held.resolve()

    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '5'])
    expect((await second.json()).error.code).toBe('too_many')
    expect([other.status, (await first).status, (await get()).status]).toEqual([200, 200, 200])
    read.mockRestore()
    await add(change('2'))
    expect((await live).status).toBe(200)
  })

  it('make room where one fails', async () => {
    const { get, log } = await logServer({ maxConnections: 1 })
    const read = vi.spyOn(log, 'read').mockRejectedValueOnce(new Error('the disk fails'))

    const failed = await get()
    read.mockRestore()

    expect([failed.status, (await get()).status]).toEqual([500, 200])
  })
})

describe('server-sent events', () => {
  it('end with an error for a client that does not read them, some time after its grant', async () => {
    const { log, authority, append: add } = await logServer()
    const stream = new LogStream(log, { closing: new AbortController().signal, grace: 1 })
    const released = Promise.withResolvers<void>()
    await add(change('1'))
    const request = new Request('http://localhost/log?offset=-1&live=sse')
    const response = await stream.respond(request, authority.accessOf(ALL), {
      live: () => released.resolve,
      read: () => () => {},
    })
    const reader = response.body?.getReader()

    await authority.revoke({ sub: ALL.sub })

    await expect(reader?.closed).rejects.toThrow('does not read')
    await expect(released.promise).resolves.toBeUndefined()
  })
})

describe('a log whose store is closed', () => {
  it('refuses with 503', async () => {
    const { get, log } = await logServer()
    await log.close()

    const response = await get()

    expect(response.status).toBe(503)
    expect((await response.json()).error.code).toBe('unavailable')
  })
})

describe('the log in SQLite by Durable Streams', () => {
  it('is the entries of the log, as JSON', async () => {
    const store = sqliteStore(scratchFile())
    await append(store, [change('1'), groupStatus('2'), change('3')])
    const { get, log } = await logServer({ store })

    expect(await (await get()).json()).toEqual(await entriesOf(log))
  })
})
