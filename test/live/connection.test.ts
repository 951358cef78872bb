import { describe, expect, it } from 'vitest'
import { ArgumentError } from 'rivulet'
import { viewAddress } from 'rivulet/live'
import { TestPage, until } from './environment.ts'
import { connectTo, follow, rowsOf, soon, tokenOf } from './pages.ts'
import { streamServer } from './stream-server.ts'
import type { Answer, StreamConnection } from './stream-server.ts'

/** Sends one row at a position, and that it is all. */
function sendRow(stream: StreamConnection, n: number): void {
  stream
    .open()
    .send('snapshot', { view: 'groups', first: true, rows: [['a', { n }]], position: `${n}` })
    .send('current', { view: 'groups' })
}

/** Refuses the first requests with this status. */
function refusing(
  times: number,
  status: number,
  body: unknown = {},
  headers: Record<string, string> = {},
): Answer {
  let left = times
  return (_, response) => {
    if (left-- <= 0) return false
    response.writeHead(status, headers).end(JSON.stringify(body))
    return true
  }
}

/** Lets what is under way come to rest. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Sets the clock back by an hour. Timers go on. */
function setBack(page: TestPage): void {
  const { now } = page
  page.now = () => now() - 3_600_000
}

describe('a connection that is lost', () => {
  it('is made again from the position, while the view is stale with its rows', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => stream.views[0]?.after ?? sendRow(stream, 1) })
    const view = connectTo(server.url, page).view('groups')
    const { snapshots } = follow(view)
    await soon(page, () => view.status().state === 'live')
    page.advance(5_000)
    server.streams[0]?.cut()
    await until(() => view.status().state === 'stale')
    expect(rowsOf(view)).toEqual({ a: { n: 1 } })
    expect(view.status()).toMatchObject({
      since: page.now(),
      error: { name: 'LiveError', reason: 'network' },
    })
    await soon(page, () => server.streams.length === 2)
    expect(server.streams[1]?.views).toEqual([{ view: 'groups', after: '1' }])
    server.streams[1]?.open().send('current', { view: 'groups' })
    await soon(page, () => view.status().state === 'live')

    expect(snapshots.map(({ status }) => status.state)).toEqual(['connecting', 'live', 'stale', 'live'])
    expect(new Set(snapshots.slice(1).map(({ rows }) => rows)).size).toBe(1)
  })

  it.each(['expired', 'shutdown', 'revoked'] as const)(
    'is made again within a second, at a random time, with a new token where the gateway has closed it: %s',
    async (reason) => {
      const page = new TestPage()
      let tokens = 0
      const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
      const view = connectTo(server.url, page, { getToken: async () => `token_${++tokens}` }).view('groups')
      const { snapshots } = follow(view)
      await soon(page, () => view.status().state === 'live')
      page.advance(5_000)
      server.streams[0]?.send('close', { reason }).end()
      const closedAt = page.now()
      await soon(page, () => server.streams.length === 2)
      await until(() => view.status().state === 'live')

      // Half of the bound, since the page's random number is a half: all tabs of a gateway have lost theirs at this moment.
      expect(page.now() - closedAt).toBeGreaterThanOrEqual(500)
      expect(page.now() - closedAt).toBeLessThan(700)
      expect(server.streams.map(({ token }) => token)).toEqual(['Bearer token_1', 'Bearer token_2'])
      expect(snapshots.map(({ status }) => status.state)).toEqual(['connecting', 'live'])
    },
  )

  it('is not made in a loop where the gateway closes each one at once', async () => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) => {
        sendRow(stream, 1)
        stream.send('close', { reason: 'shutdown' }).end()
      },
    })
    follow(connectTo(server.url, page).view('groups'))
    for (let second = 0; second < 60; second++) {
      page.advance(1_000)
      await turns()
    }
    expect(server.requests).toBeGreaterThan(20)
    expect(server.requests).toBeLessThan(90)
  })

  it('is made again with growing waits, up to half a minute, where the gateway cannot be reached', async () => {
    const page = new TestPage()
    let requests = 0
    Object.assign(page, {
      fetch: () => {
        requests++
        return Promise.reject(new TypeError('fetch failed'))
      },
    })
    const view = connectTo('http://127.0.0.1:9', page).view('groups')
    follow(view)
    const times: number[] = []
    const began = page.now()
    await soon(page, () => {
      if (requests > times.length) times.push(page.now() - began)
      if (times.length > 8) page.advance(1_000)
      return times.length === 10
    })
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0))

    // Half of the bound, since the page's random number is a half.
    expect(waits.slice(0, 7).map((wait) => Math.round(wait / 10) * 10)).toEqual([
      250, 500, 1000, 2000, 4000, 8000, 15000,
    ])
    expect(Math.max(...waits)).toBeLessThan(17_000)
    expect(view.status()).toMatchObject({ state: 'connecting', error: { reason: 'network' } })
  })

  it('is dead when nothing comes for two heartbeats', async () => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) => {
        sendRow(stream, 1)
        stream.open({ heartbeat: 10_000 })
      },
    })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    page.advance(19_000)
    server.streams[0]?.send('heartbeat', { now: 0, behind: 7 })
    await until(() => Reflect.get(view, 'address') === 'groups' && page.now() > 0)
    await turns()
    page.advance(19_000)
    await turns()
    expect(view.status().state).toBe('live')
    page.advance(4_000)
    await until(() => view.status().state !== 'live')
    expect(view.status()).toMatchObject({ state: 'stale', error: { reason: 'timeout' } })
    await soon(page, () => server.streams.length === 2)
  })
})

describe('a page that wakes up', () => {
  it('makes a new connection at once where the old one is silent for longer than a heartbeat', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => sendRow(stream, server.streams.length) })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    page.emit('wake')
    page.sleep(3_600_000)
    page.emit('wake')
    await until(() => rowsOf(view)['a']?.n === 2 && view.status().state === 'live')
    expect(server.requests).toBe(2)
  })

  it('does not wait any longer, and tries once', async () => {
    const page = new TestPage()
    const server = await streamServer({
      answer: refusing(4, 503),
      onStream: (stream) => sendRow(stream, 1),
    })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => server.requests === 4)
    await turns()
    page.sleep(1_500)
    page.emit('wake')
    page.emit('wake')
    await until(() => view.status().state === 'live')
    expect(server.requests).toBe(5)
  })

  it('tries again soon where its network takes a moment, but not before a Retry-After', async () => {
    const page = new TestPage()
    const server = await streamServer({
      answer: (_, response) => {
        if (server.requests > 12) return false
        response.writeHead(503, server.requests === 12 ? { 'retry-after': '9' } : {}).end()
        return true
      },
      onStream: (stream) => sendRow(stream, 1),
    })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => server.requests === 8)
    await turns()
    page.emit('wake')
    await until(() => server.requests === 9)
    const wokenAt = page.now()
    await soon(page, () => server.requests === 12)
    expect(page.now() - wokenAt).toBeLessThan(2_000)
    await turns()
    page.emit('wake')
    page.advance(8_500)
    await turns()
    expect(server.requests).toBe(12)
    await soon(page, () => view.status().state === 'live')
  })

  it('is offline while the browser has no network, and live when it has one again', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page)
    const view = live.view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    const { fetch } = page
    page.online = false
    Object.assign(page, { fetch: () => Promise.reject(new TypeError('fetch failed')) })
    page.emit('offline')
    await until(() => view.status().state === 'offline')
    await until(() => live.status.getSnapshot().state === 'offline')
    expect(rowsOf(view)).toEqual({ a: { n: 1 } })
    page.advance(60_000)
    page.online = true
    Object.assign(page, { fetch })
    page.sleep(2_000)
    page.emit('wake')
    await until(() => view.status().state === 'live')
  })
})

describe('a clock that is set back', () => {
  it('while an orderly end is followed by the next connection does not keep the views live', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page)
    const view = live.view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    page.advance(5_000)
    Object.assign(page, { fetch: () => Promise.reject(new TypeError('fetch failed')) })
    server.streams[0]?.send('close', { reason: 'shutdown' }).end()
    await until(() => live.inspect.getSnapshot().connection?.state === 'waiting')
    setBack(page)
    for (let second = 0; second < 5; second++) {
      page.advance(1_000)
      await turns()
    }
    expect(view.status()).toMatchObject({ state: 'stale', error: { reason: 'network' } })
  })

  it('after the page has woken up does not make it ask in quick succession', async () => {
    const page = new TestPage()
    let requests = 0
    Object.assign(page, {
      fetch: () => {
        requests++
        return Promise.reject(new TypeError('fetch failed'))
      },
    })
    follow(connectTo('http://127.0.0.1:9', page).view('groups'))
    await soon(page, () => requests === 8)
    page.emit('wake')
    setBack(page)
    const before = requests
    for (let second = 0; second < 60; second++) {
      page.advance(1_000)
      await turns()
    }
    expect(requests - before).toBeLessThan(8)
  })
})

describe('a gateway that refuses', () => {
  it('gets one new token at once, then the view is denied and the waits grow', async () => {
    const page = new TestPage()
    let tokens = 0
    const server = await streamServer({
      answer: refusing(3, 401, { error: { code: 'expired', message: 'The token has expired' } }),
      onStream: (stream) => sendRow(stream, 1),
    })
    const view = connectTo(server.url, page, { getToken: () => `token_${++tokens}` }).view('groups')
    follow(view)
    page.advance(100)
    await until(() => view.status().state === 'denied')
    expect(server.requests).toBe(2)
    expect(view.status().error).toMatchObject({ reason: 'expired', message: 'The token has expired' })
    await soon(page, () => view.status().state === 'live')
    expect(tokens).toBe(4)
  })

  it('is not asked before its Retry-After', async () => {
    const page = new TestPage()
    const server = await streamServer({
      answer: refusing(1, 429, { error: { code: 'too_many', message: 'Too many' } }, { 'retry-after': '7' }),
      onStream: (stream) => sendRow(stream, 1),
    })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    page.advance(100)
    await until(() => view.status().error !== undefined)
    expect(view.status().error).toMatchObject({ reason: 'too_many', retryAfter: 7_000 })
    page.advance(6_900)
    await turns()
    expect(server.requests).toBe(1)
    // All who were refused at the same time come back at times of their own.
    page.advance(200)
    await turns()
    expect(server.requests).toBe(1)
    page.advance(200)
    await until(() => view.status().state === 'live')
  })

  it('with an error that never ends is a typed error, and no more is read than is of use', async () => {
    const page = new TestPage()
    let sent = 0
    let wasCut = false
    let left = 1
    const server = await streamServer({
      answer: (_, response) => {
        if (left-- <= 0) return false
        response.writeHead(503)
        const more = () => {
          sent++
          if (!response.destroyed) response.write('x'.repeat(65_536), more)
        }
        response.on('error', () => {})
        response.on('close', () => (wasCut = true))
        more()
        return true
      },
      onStream: (stream) => sendRow(stream, 1),
    })
    const view = connectTo(server.url, page).view('groups')
    const { snapshots } = follow(view)
    page.advance(100)
    await until(() => wasCut || sent > 2_000)
    expect(wasCut).toBe(true)
    await soon(page, () => view.status().state === 'live')
    expect(snapshots.flatMap(({ status: { error } }) => error ?? [])[0]).toMatchObject({
      reason: 'unavailable',
    })
  })

  it.each([
    ['a body that is no event stream', 200, 'text/html', '<html>', 'protocol'],
    ['an error that is no JSON', 502, 'text/html', '<html>', 'unavailable'],
    ['an error of another shape', 418, 'application/json', '{"error":[1]}', 'invalid'],
  ])('or answers %s is a typed error, and asked again', async (_, status, type, body, reason) => {
    const page = new TestPage()
    let left = 1
    const server = await streamServer({
      answer: (_request, response) => {
        if (left-- <= 0) return false
        response.writeHead(status, { 'content-type': type }).end(body)
        return true
      },
      onStream: (stream) => sendRow(stream, 1),
    })
    const view = connectTo(server.url, page).view('groups')
    const { snapshots } = follow(view)
    await soon(page, () => view.status().state === 'live')
    const errors = snapshots.flatMap(({ status: { error } }) => error ?? [])
    expect(errors[0]).toMatchObject({ name: 'LiveError', code: 'live', reason })
    expect(server.requests).toBe(2)
  })

  it('a view of several keeps the others live', async () => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) => {
        sendRow(stream, 1)
        stream.send('denied', { view: 'group?group=x', problem: { code: 'forbidden', message: 'No' } })
      },
    })
    const live = connectTo(server.url, page)
    const [groups, group] = [live.view('groups'), live.view('group', { group: 'x' })]
    follow(groups)
    follow(group)
    await soon(page, () => group.status().state === 'denied')
    expect(groups.status().state).toBe('live')
    expect(live.status.getSnapshot()).toMatchObject({ state: 'denied', error: { reason: 'forbidden' } })
  })
})

it.each([{ group: '\ud800' }, { '\udc00': 'x' }])(
  'params with a lone surrogate are an ArgumentError at once',
  (params) => {
    const live = connectTo('/live', new TestPage())
    expect(() => live.view('group', params as never)).toThrow(ArgumentError)
    expect(() => viewAddress('group', params as never)).toThrow(
      /^view must be a text without a lone surrogate.*, got "\\u[d][8c]00"$/,
    )
  },
)

describe('a view that the gateway cannot make now', () => {
  const problem = { code: 'unavailable', message: 'The view has failed' } as const

  it('is not asked for in a loop, whatever the gateway says', async () => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) =>
        stream
          .open()
          .send('denied', { view: 'groups', problem: { ...problem, retryAfter: 0 } })
          .send('heartbeat', { now: 0, behind: server.streams.length }),
    })
    const live = connectTo(server.url, page)
    follow(live.view('groups'))
    page.advance(100)
    await until(() => live.inspect.getSnapshot().connection?.behind === 1 || server.requests > 10)
    const stream = await server.stream(0)
    stream.send('heartbeat', { now: 0, behind: 2 })
    await until(() => live.inspect.getSnapshot().connection?.behind === 2 || server.requests > 10)
    expect(server.requests).toBe(1)

    page.advance(1_000)
    stream.send('heartbeat', { now: 0, behind: 3 })
    await until(() => server.requests === 2)
  })

  it.each([
    ['with a heartbeat after a minute', undefined, 60_000],
    ['once the time is over that the gateway gave', 5_000, 5_000],
  ])('is stale with its rows, and is asked for again %s', async (_, retryAfter, wait) => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) => {
        stream.open({ heartbeat: 120_000 })
        if (server.streams.length > 1) stream.send('current', { view: 'groups' })
        else {
          stream
            .send('snapshot', { view: 'groups', first: true, rows: [['a', { n: 1 }]], position: '1' })
            .send('current', { view: 'groups' })
        }
      },
    })
    const live = connectTo(server.url, page)
    const view = live.view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    const stream = await server.stream(0)
    const refusal = retryAfter === undefined ? problem : { ...problem, retryAfter }
    stream.send('denied', { view: 'groups', problem: refusal })
    await until(() => view.status().state !== 'live')
    expect(view.status()).toMatchObject({ state: 'stale', error: { reason: 'unavailable' } })
    expect(rowsOf(view)).toEqual({ a: { n: 1 } })

    page.advance(wait - 10)
    stream.send('heartbeat', { now: 0, behind: 1 })
    await until(() => live.inspect.getSnapshot().connection?.behind === 1)
    expect(stream.isClosed).toBe(false)
    page.advance(10)
    stream.send('heartbeat', { now: 0, behind: 2 })
    await soon(page, () => view.status().state === 'live')
    expect(server.streams[1]?.views).toEqual([{ view: 'groups', after: '1' }])
    expect(rowsOf(view)).toEqual({ a: { n: 1 } })
  })

  it('is connecting where it has no rows yet', async () => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) => stream.open().send('denied', { view: 'groups', problem }),
    })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => view.status().error !== undefined)
    expect(view.status()).toMatchObject({ state: 'connecting', error: { reason: 'unavailable' } })
  })
})

describe('a frame', () => {
  it.each([
    ['that is no JSON', 'event: changes\ndata: {\n\n'],
    ['that is no object', 'event: changes\ndata: null\n\n'],
    ['with rows that are none', 'event: changes\ndata: {"view":"groups","rows":[["a"]],"position":"2"}\n\n'],
    ['of a change without a position', 'event: changes\ndata: {"view":"groups","rows":[]}\n\n'],
    ['of rows in place of a list', 'event: snapshot\ndata: {"view":"groups","rows":{},"first":true}\n\n'],
    ['of a heartbeat whose delay is none', 'event: heartbeat\ndata: {"now":0,"behind":{"toString":1}}\n\n'],
    ['of more than 16 MB', `event: changes\ndata: "${'x'.repeat(17 * 1024 * 1024)}"\n\n`],
    [
      'of more than 16 MB in small lines',
      `event: changes\n${`data: ${'x'.repeat(10_000)}\n`.repeat(2_000)}\n`,
    ],
  ])('%s is a typed error, and a new connection goes on from the position', async (_, text) => {
    const page = new TestPage()
    const server = await streamServer({
      onStream: (stream) => {
        if (server.streams.length === 1) sendRow(stream, 1)
        else stream.open().send('current', { view: 'groups' })
      },
    })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    server.streams[0]?.write(text)
    await until(() => view.status().state === 'stale')
    expect(view.status().error).toMatchObject({ name: 'LiveError', reason: 'protocol' })
    await soon(page, () => view.status().state === 'live')
    expect(server.streams[1]?.views).toEqual([{ view: 'groups', after: '1' }])
    expect(rowsOf(view)).toEqual({ a: { n: 1 } })
  })

  it.each(['toString', 'constructor', '__proto__', 'later'])(
    'of unknown kind is skipped: %s',
    async (kind) => {
      const page = new TestPage()
      const server = await streamServer({
        onStream: (stream) => {
          stream.open().write(`event: ${kind}\ndata: }\n\n: comment\n\ndata: of no kind\n\n`)
          stream
            .send('changes', { view: 'unknown', rows: [], position: '' })
            .send('snapshot', { view: 'groups', first: true, rows: [['a', { n: 1 }]], position: '1' })
            .send('current', { view: 'groups' })
        },
      })
      const view = connectTo(server.url, page).view('groups')
      follow(view)
      await soon(page, () => view.status().state === 'live')
      expect(server.requests).toBe(1)
    },
  )

  it('of another version of the protocol denies the views', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => stream.open({ protocol: 2 }) })
    const view = connectTo(server.url, page).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'denied')
    expect(view.status().error?.message).toMatch('version 2 of the protocol')
  })
})

describe('getToken', () => {
  it.each([
    ['rejects', () => Promise.reject(new Error('no session'))],
    [
      'throws',
      () => {
        throw new Error('no session')
      },
    ],
    ['returns an empty text', () => ''],
    ['returns a text with a line end', () => 'a\nb'],
    ['returns something else', () => Object('token')],
  ])('that %s is a typed error, and called again', async (_, failing) => {
    const page = new TestPage()
    let calls = 0
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const view = connectTo(server.url, page, { getToken: () => (++calls < 3 ? failing() : 'token') }).view(
      'groups',
    )
    const { snapshots } = follow(view)
    await soon(page, () => view.status().state === 'live')
    expect(snapshots.flatMap(({ status }) => status.error ?? [])[0]).toMatchObject({
      name: 'LiveError',
      reason: 'token',
    })
    expect([calls, server.requests]).toEqual([3, 1])
  })

  it('that never settles is given up and called again', async () => {
    const page = new TestPage()
    let calls = 0
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const getToken = () => (++calls === 1 ? new Promise<string>(() => {}) : tokenOf('user_1'))
    const view = connectTo(server.url, page, { getToken }).view('groups')
    follow(view)
    page.advance(100)
    page.advance(25_000)
    await soon(page, () => view.status().state === 'live')
    expect(calls).toBe(2)
  })
})

describe('views that come while a token is awaited', () => {
  it('are in the request that it is for, and getToken is called once', async () => {
    const page = new TestPage()
    const { promise, resolve } = Promise.withResolvers<string>()
    let calls = 0
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page, {
      getToken: () => {
        calls++
        return promise
      },
    })
    follow(live.view('groups'))
    for (const group of ['1', '2', '3']) {
      await soon(page, () => calls > 0)
      follow(live.view('group', { group }))
      page.advance(100)
      await turns()
    }
    resolve('token')
    await soon(page, () => live.view('groups').status().state === 'live')
    expect([calls, server.streams.map(({ views }) => views.length)]).toEqual([1, [4]])
  })

  it('and go again leave nothing to ask for', async () => {
    const page = new TestPage()
    const { promise, resolve } = Promise.withResolvers<string>()
    const server = await streamServer()
    const { end } = follow(connectTo(server.url, page, { getToken: () => promise }).view('groups'))
    page.advance(100)
    await turns()
    end()
    page.advance(6_000)
    resolve('token')
    await turns()
    expect(server.requests).toBe(0)
  })
})

describe('more views than a connection carries', () => {
  it('are refused with a typed error, until there is room', async () => {
    const page = new TestPage()
    const server = await streamServer({
      answer: () => false,
      onStream: (stream) => {
        stream.open()
        for (const { params } of stream.views) {
          const view = `group?group=${params?.['group']}`
          stream.send('snapshot', { view, first: true, rows: [], position: '1' }).send('current', { view })
        }
      },
    })
    const live = connectTo(server.url, page)
    const views = Array.from({ length: 66 }, (_, index) => live.view('group', { group: `${index}` }))
    const ends = views.map((view) => follow(view).end)
    await soon(page, () => views[63]?.status().state === 'live')
    expect(server.streams.map((stream) => stream.views.length)).toEqual([64])
    expect(views.map((view) => view.status().state)).toEqual([
      ...Array.from({ length: 64 }, () => 'live'),
      'denied',
      'denied',
    ])
    expect(views[64]?.status().error).toMatchObject({ name: 'LiveError', reason: 'too_many' })

    ends[0]?.()
    page.advance(6_000)
    await soon(page, () => views[64]?.status().state === 'live')
    expect(views[65]?.status().state).toBe('denied')
    expect(views[1]?.status().state).toBe('live')
  })
})

describe('a view without a listener', () => {
  it('is followed for 5 s after the last of them, whatever ended before', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page)
    const view = live.view('groups')
    const first = follow(view)
    await soon(page, () => view.status().state === 'live')
    first.end()
    page.advance(4_000)
    follow(view).end()
    page.advance(4_000)
    await turns()
    expect(server.streams[0]?.isClosed).toBe(false)
    page.advance(1_500)
    await until(() => server.streams[0]?.isClosed === true)
  })
})

describe('params that are no texts', () => {
  it.each([undefined, null, 5, 'x'.repeat(2_000)])('are an error where they are given: %s', (group) => {
    const live = connectTo('http://127.0.0.1:9', new TestPage())
    expect(() => live.view('group', Object({ group }))).toThrow(ArgumentError)
  })
})

describe('close', () => {
  it('says so in the views, and is final for those that linger', async () => {
    const page = new TestPage()
    let tokens = 0
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page, { getToken: () => `token_${++tokens}` })
    const [groups, group] = [live.view('groups'), live.view('group', { group: '1' })]
    const { end } = follow(group)
    follow(groups)
    await soon(page, () => groups.status().state === 'live')
    end()
    const before = tokens
    live.close()
    expect(groups.status()).toMatchObject({ state: 'stale', error: { reason: 'closed' } })
    expect(group.status()).toMatchObject({ state: 'denied', error: { reason: 'closed' } })
    const late = follow(live.view('group', { group: '2' }))
    expect(late.snapshots.at(-1)?.status).toMatchObject({ state: 'denied', error: { reason: 'closed' } })
    page.advance(10_000)
    await turns()
    expect([tokens, page.left]).toEqual([before, 0])
    expect(rowsOf(groups)).toEqual({ a: { n: 1 } })
  })

  it('ends the connection, and leaves no timer and no listener', async () => {
    const page = new TestPage()
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page)
    const view = live.view('groups')
    const { snapshots } = follow(view)
    await soon(page, () => view.status().state === 'live')
    live.close()
    live.close()
    await until(() => server.streams[0]?.isClosed === true)
    await until(() => page.left === 0)
    const { end } = follow(view)
    end()
    expect([snapshots.length, server.requests, page.left]).toEqual([2, 1, 0])
  })

  it('is not needed where nothing was followed: nothing was opened', () => {
    const page = new TestPage({ tabs: true })
    const view = connectTo('http://127.0.0.1:9', page, { getToken: () => expect.unreachable() }).view(
      'groups',
    )
    expect(view.getSnapshot()).toBe(view.getServerSnapshot())
    expect(page.left).toBe(0)
  })
})
