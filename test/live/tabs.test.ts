import { beforeAll, describe, expect, it } from 'vitest'
import { TestPage } from './environment.ts'
import { connectTo, follow, rowsOf, soon, tokenOf } from './pages.ts'
import { streamServer } from './stream-server.ts'
import type { StreamConnection } from './stream-server.ts'

// A page waits for this code by its own clock, which is faster here than the loader of modules.
beforeAll(async () => void (await import('../../src/live/tabs.ts')))

const newPage = () => new TestPage({ tabs: true })
const getToken = () => tokenOf('user_1')

/** Sends a snapshot of each view that was asked for, with one row that names the stream. */
function answerAll(stream: StreamConnection, n: number): void {
  stream.open()
  for (const { view, params } of stream.views) {
    const address = params === undefined ? view : `${view}?group=${params['group']}`
    stream
      .send('snapshot', { view: address, first: true, rows: [['a', { n }]], position: `${n}` })
      .send('current', { view: address })
  }
}

/** Lets what is under way come to rest. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('tabs of an origin', () => {
  it('share one connection, and those that come later have the rows first', async () => {
    const pages = [newPage(), newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [first, second, third] = pages.map((page) =>
      connectTo(server.url, page, { getToken }).view('groups'),
    )
    if (first === undefined || second === undefined || third === undefined) throw new Error('no views')
    follow(first)
    await soon(pages, () => first.status().state === 'live')
    follow(second)
    await soon(pages, () => second.status().state === 'live')
    expect(rowsOf(second)).toEqual({ a: { n: 1 } })

    const stream = await server.stream(0)
    stream.send('changes', { view: 'groups', rows: [['b', { n: 2 }]], position: '2' })
    await soon(pages, () => second.getSnapshot().rows.size === 2)
    follow(third)
    await soon(pages, () => third.getSnapshot().rows.size === 2)

    expect(third.status()).toEqual(first.status())
    expect(server.requests).toBe(1)
  })

  it('do not get the rows that only a tab which joins needs', async () => {
    const pages = [newPage(), newPage(), newPage()]
    const [, second, third] = pages
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const views = pages.map((page) => connectTo(server.url, page, { getToken }).view('groups'))
    for (const view of views) {
      follow(view)
      await soon(pages, () => view.status().state === 'live')
    }

    const hasRows = (page: TestPage | undefined) =>
      page?.received.filter(({ data }) => JSON.stringify(data).includes('"rows":{')).length
    expect([hasRows(second), hasRows(third)]).toEqual([1, 1])
  })

  it.each(['after', 'before'] as const)(
    'have all rows and changes where the rows of a later tab come %s what all of them get',
    async (order) => {
      const pages = [newPage(), newPage()] as const
      const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
      const [one, two] = [
        connectTo(server.url, pages[0], { getToken }),
        connectTo(server.url, pages[1], { getToken }),
      ]
      const other = one.view('group', { group: 'g' })
      const first = one.view('groups')
      const second = two.view('groups')
      follow(other)
      follow(first)
      await soon(pages, () => first.status().state === 'live')
      // The second one has met its leader.
      const met = two.view('group', { group: 'g' })
      follow(met)
      await soon(pages, () => met.status().state === 'live')

      const shared = pages[1].received[0]?.channel
      const { received } = pages[1]
      const before = received.length
      pages[1].holdChannels((channel) => (channel === shared) === (order === 'before'))
      const { snapshots } = follow(second)
      await soon(pages, () => received.length > before)
      const stream = await server.stream(0)
      stream.send('changes', { view: 'groups', rows: [['b', { n: 2 }]], position: '2' })
      await soon(pages, () => first.getSnapshot().rows.size === 2)
      await turns()
      expect(second.getSnapshot().ready).toBe(false)
      pages[1].holdChannels(() => false)
      await soon(pages, () => second.getSnapshot().rows.size === 2)

      expect(rowsOf(second)).toEqual({ a: { n: 1 }, b: { n: 2 } })
      expect(second.status()).toEqual(first.status())
      expect(snapshots.filter(({ ready, status }) => status.state === 'live' && !ready)).toEqual([])
    },
  )

  it('keep the latest rows where those sent to one of them before come later', async () => {
    const pages = [newPage(), newPage()] as const
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = [
      connectTo(server.url, pages[0], { getToken }),
      connectTo(server.url, pages[1], { getToken }),
    ]
    const first = one.view('groups')
    const others = ['g', 'h'].map((group) => one.view('group', { group }))
    for (const view of [...others, first]) follow(view)
    await soon(pages, () => first.status().state === 'live')
    const second = two.view('groups')
    const met = two.view('group', { group: 'g' })
    follow(met)
    await soon(pages, () => met.status().state === 'live')
    const { received } = pages[1]
    const shared = received[0]?.channel
    const rowsSent = () =>
      received.filter(({ data }) => JSON.stringify(data).includes('"kind":"rows"')).length

    // It asks again for what it does not have, since the set of its views has changed.
    const before = rowsSent()
    pages[1].holdChannels((channel) => channel !== shared)
    follow(second)
    await soon(pages, () => rowsSent() === before + 1)
    const stream = server.streams.at(-1)
    stream?.send('changes', { view: 'groups', rows: [['b', { n: 2 }]], position: '2' })
    await soon(pages, () => first.getSnapshot().rows.size === 2)
    follow(two.view('group', { group: 'h' }))
    await soon(pages, () => rowsSent() > before + 1)
    stream?.send('changes', { view: 'groups', rows: [['c', { n: 3 }]], position: '3' })
    await soon(pages, () => first.getSnapshot().rows.size === 3)
    await turns()
    pages[1].holdChannels(() => false, 'last first')
    await soon(pages, () => second.status().state === 'live')
    await turns()

    expect(rowsOf(second)).toEqual(rowsOf(first))
  })

  it('follow the views of all of them over the one connection', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }))
    if (one === undefined || two === undefined) throw new Error('no connections')
    const groups = one.view('groups')
    const { snapshots } = follow(groups)
    await soon(pages, () => groups.status().state === 'live')
    const group = two.view('group', { group: 'tgrp_1' })
    const { end } = follow(group)
    await soon(pages, () => group.status().state === 'live')

    expect(server.streams.map(({ views }) => views)).toEqual([
      [{ view: 'groups' }],
      [
        { view: 'groups', after: '1' },
        { view: 'group', params: { group: 'tgrp_1' } },
      ],
    ])
    expect(server.streams[0]?.isClosed).toBe(true)
    expect(snapshots.map(({ status }) => status.state)).toEqual(['connecting', 'live'])

    end()
    await soon(pages, () => server.streams.length === 3)
    expect(server.streams[2]?.views).toEqual([{ view: 'groups', after: '1' }])
  })

  it('go on from the position of the leader when it is closed, and stay live', async () => {
    const pages = [newPage(), newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const lives = pages.map((page) => connectTo(server.url, page, { getToken }))
    const views = lives.map((live) => live.view('groups'))
    const followed = views.map((view) => follow(view))
    await soon(pages, () => views.every((view) => view.status().state === 'live'))
    const [stream] = server.streams
    stream?.send('changes', { view: 'groups', rows: [['b', { n: 2 }]], position: '2' })
    await soon(pages, () => views.every((view) => view.getSnapshot().rows.size === 2))

    lives[0]?.close()
    const next = server.stream(1)
    await soon(pages, () => server.streams.length === 2)
    expect((await next).views).toEqual([{ view: 'groups', after: '2' }])
    ;(await next).send('changes', { view: 'groups', rows: [['c', { n: 3 }]], position: '3' })
    await soon(pages, () => views.slice(1).every((view) => 'c' in rowsOf(view)))

    expect(
      followed.slice(1).flatMap(({ snapshots }) => snapshots.map(({ status }) => status.state)),
    ).not.toContain('stale')
    expect(server.requests).toBe(2)
  })

  it('replace a leader that holds its lock and hangs, and do not follow it when it goes on', async () => {
    const [hanging, other, third] = [newPage(), newPage(), newPage()]
    const pages = [hanging, other, third]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const views = pages.map((page) => connectTo(server.url, page, { getToken }).view('groups'))
    for (const [index, view] of views.entries()) {
      follow(view)
      await soon(pages, () => views.slice(0, index + 1).every((each) => each.status().state === 'live'))
    }

    hanging.hangs = true
    const hungAt = other.now()
    await soon([other, third], () => server.streams.length === 2)
    expect(other.now() - hungAt).toBeLessThan(2_000)
    const [old, next] = server.streams
    next?.send('changes', { view: 'groups', rows: [['a', { n: 5 }]], position: '5' })
    old?.send('changes', { view: 'groups', rows: [['a', { n: 2 }]], position: '2' })
    await soon([other, third], () => views.slice(1).every((view) => rowsOf(view)['a']?.n === 5))
    hanging.hangs = false
    await soon(pages, () => views.every((view) => rowsOf(view)['a']?.n === 5))

    expect(views.map((view) => view.status().state)).toEqual(['live', 'live', 'live'])
    expect(old?.isClosed).toBe(true)
    expect(server.requests).toBe(2)
  })

  it('go on without a leader that the browser freezes, which has the rows at once when it wakes', async () => {
    const [sleeper, other] = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = [sleeper, other].map((page) =>
      connectTo(server.url, page, { getToken }).view('groups'),
    )
    if (one === undefined || two === undefined) throw new Error('no views')
    follow(one)
    await soon([sleeper, other], () => one.status().state === 'live')
    follow(two)
    await soon([sleeper, other], () => two.status().state === 'live')

    sleeper.emit('sleep')
    await soon(other, () => server.streams.length === 2)
    server.streams[1]?.send('changes', { view: 'groups', rows: [['b', { n: 2 }]], position: '2' })
    await soon(other, () => 'b' in rowsOf(two))
    expect(rowsOf(one)).toEqual({ a: { n: 1 } })
    sleeper.sleep(3_600_000)
    sleeper.emit('wake')
    await soon([sleeper, other], () => 'b' in rowsOf(one) && one.status().state === 'live')

    expect(server.requests).toBe(2)
  })

  it('do not share where their tokens have other subjects or rights', async () => {
    const pages = [newPage(), newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, server.streams.length) })
    const tokens = [
      () => tokenOf('user_1'),
      () => tokenOf('user_2'),
      () => tokenOf('user_1', { omit: ['basis'] }),
    ]
    const views = pages.map((page, index) =>
      connectTo(server.url, page, { getToken: tokens[index] ?? getToken }).view('groups'),
    )
    for (const view of views) follow(view)
    await soon(pages, () => views.every((view) => view.status().state === 'live'))

    expect(server.requests).toBe(3)
    expect(new Set(views.map((view) => rowsOf(view)['a']?.n)).size).toBe(3)
  })

  it('have no row of the subject before, once a token is of another one', async () => {
    const page = newPage()
    let sub = 'user_1'
    const server = await streamServer({
      onStream: (stream) => (server.streams.length === 1 ? answerAll(stream, 1) : stream.open()),
    })
    const view = connectTo(server.url, page, { getToken: () => tokenOf(sub) }).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    sub = 'user_2'
    server.streams[0]?.cut()
    await soon(page, () => server.streams.length === 2)
    await soon(page, () => view.getSnapshot().rows.size === 0)

    expect(server.streams[1]?.views).toEqual([{ view: 'groups' }])
  })

  it('know of a view that the gateway refuses, with its error', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({
      onStream: (stream) => {
        answerAll(stream, 1)
        for (const { view } of stream.views) {
          if (view === 'group') {
            stream.send('denied', {
              view: 'group?group=tgrp_1',
              problem: { code: 'forbidden', message: 'Not yours' },
            })
          }
        }
      },
    })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }))
    if (one === undefined || two === undefined) throw new Error('no connections')
    const groups = one.view('groups')
    follow(groups)
    await soon(pages, () => groups.status().state === 'live')
    const group = two.view('group', { group: 'tgrp_1' })
    follow(group)
    await soon(pages, () => group.status().state === 'denied')

    expect(group.status().error).toMatchObject({
      name: 'LiveError',
      reason: 'forbidden',
      message: 'Not yours',
    })
    expect(group.getSnapshot().rows.size).toBe(0)
    await soon(pages, () => groups.status().state === 'live')
  })

  it('forget the views of a tab that crashes', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }))
    if (one === undefined || two === undefined) throw new Error('no connections')
    const groups = one.view('groups')
    follow(groups)
    await soon(pages, () => groups.status().state === 'live')
    const group = two.view('group', { group: 'tgrp_1' })
    follow(group)
    await soon(pages, () => group.status().state === 'live')

    // Its locks are gone, and it says nothing.
    two.close()
    await soon(pages, () => server.streams.length === 3)
    expect(server.streams[2]?.views).toEqual([{ view: 'groups', after: '1' }])
  })

  it('that come in the middle of a snapshot have all of its rows, not those before it', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }).view('groups'))
    if (one === undefined || two === undefined) throw new Error('no views')
    follow(one)
    await soon(pages, () => one.status().state === 'live')
    const stream = await server.stream(0)
    stream
      .send('gap', { view: 'groups', reason: 'retention' })
      .send('snapshot', { view: 'groups', first: true, rows: [['b', { n: 2 }]] })
    await soon(pages, () => one.getSnapshot().status.state === 'live')
    await turns()
    follow(two)
    await soon(pages, () => two.status().state === 'live')
    stream
      .send('snapshot', { view: 'groups', first: false, rows: [['c', { n: 3 }]], position: '3' })
      .send('changes', { view: 'groups', rows: [['d', { n: 4 }]], position: '4' })
    await soon(pages, () => 'd' in rowsOf(one) && 'd' in rowsOf(two))

    expect(Object.keys(rowsOf(two)).toSorted()).toEqual(['b', 'c', 'd'])
    expect(rowsOf(two)).toEqual(rowsOf(one))
  })

  it('have the rows of a view that was refused for a while', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, server.streams.length) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }).view('groups'))
    if (one === undefined || two === undefined) throw new Error('no views')
    follow(one)
    await soon(pages, () => one.status().state === 'live')
    follow(two)
    await soon(pages, () => two.status().state === 'live')
    const problem = { code: 'forbidden', message: 'Not yours' } as const
    server.streams[0]?.send('denied', { view: 'groups', problem })
    await soon(pages, () => two.status().state === 'denied')
    server.streams[0]?.end()
    await soon(pages, () => one.status().state === 'live' && two.status().state === 'live')

    await soon(pages, () => two.getSnapshot().rows.size > 0)
    expect(rowsOf(two)).toEqual({ a: { n: 2 } })
  })

  it('keep the rows of a view that is unavailable for a while', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, server.streams.length) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }).view('groups'))
    if (one === undefined || two === undefined) throw new Error('no views')
    follow(one)
    await soon(pages, () => one.status().state === 'live')
    follow(two)
    await soon(pages, () => two.status().state === 'live')
    const problem = { code: 'unavailable', message: 'The view has failed' } as const
    server.streams[0]?.send('denied', { view: 'groups', problem })
    await soon(pages, () => two.status().state === 'stale')
    expect(two.status().error).toMatchObject({ reason: 'unavailable' })
    expect(rowsOf(two)).toEqual({ a: { n: 1 } })
    server.streams[0]?.end()
    await soon(pages, () => two.status().state === 'live' && rowsOf(two)['a']?.n === 2)

    expect(rowsOf(one)).toEqual({ a: { n: 2 } })
  })

  it('ask again for a view that was refused, when it has a new listener', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({
      onStream: (stream) => {
        answerAll(stream, 1)
        if (stream.views.length === 2 && server.streams.length === 2) {
          const problem = { code: 'forbidden', message: 'Not yours' } as const
          stream.send('denied', { view: 'group?group=tgrp_1', problem })
        }
      },
    })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }))
    if (one === undefined || two === undefined) throw new Error('no connections')
    const groups = one.view('groups')
    follow(groups)
    await soon(pages, () => groups.status().state === 'live')
    const group = two.view('group', { group: 'tgrp_1' })
    const { end } = follow(group)
    await soon(pages, () => group.status().state === 'denied')
    end()
    const endedAt = pages[1]?.now() ?? 0
    await soon(pages, () => (pages[1]?.now() ?? 0) > endedAt + 1_500)
    const askedAt = pages[1]?.now() ?? 0
    follow(group)
    await soon(pages, () => group.status().state === 'live')
    expect(rowsOf(group)).toEqual({ a: { n: 1 } })
    expect((pages[1]?.now() ?? 0) - askedAt).toBeLessThan(2_000)
  })

  it('follow the next leader where the clock was set back, without an election for each of them', async () => {
    const pages = [newPage(), newPage(), newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, server.streams.length) })
    const lives = pages.map((page) => connectTo(server.url, page, { getToken }))
    const views = lives.map((live) => live.view('groups'))
    for (const [index, view] of views.entries()) {
      follow(view)
      await soon(pages, () => views.slice(0, index + 1).every((each) => each.status().state === 'live'))
    }
    for (const page of pages) {
      const { now } = page
      page.now = () => now() - 3_600_000
    }
    lives[0]?.close()
    const others = views.slice(1)
    await soon(pages, () => others.every((view) => rowsOf(view)['a']?.n === 2))
    for (let time = 0; time < 5_000; time += 100) {
      for (const page of pages) page.advance(100)
      await turns()
    }
    expect(others.map((view) => view.status().state)).toEqual(['live', 'live', 'live'])
    expect(server.requests).toBe(2)
  })

  it('have a connection of their own where their views do not fit into one', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }))
    if (one === undefined || two === undefined) throw new Error('no connections')
    const viewsOf = (live: typeof one, from: number) =>
      Array.from({ length: 40 }, (_, index) => live.view('group', { group: `${from + index}` }))
    const [first, second] = [viewsOf(one, 0), viewsOf(two, 40)]
    for (const view of first) follow(view)
    await soon(pages, () => first.every((view) => view.status().state === 'live'))
    for (const view of second) follow(view)
    await soon(pages, () => second.every((view) => view.status().state === 'live'))
    expect(first.every((view) => view.status().state === 'live')).toBe(true)
    expect(server.streams.filter(({ isClosed }) => !isClosed).map(({ views }) => views.length)).toEqual([
      40, 40,
    ])
  })

  it('make room for the views of the one that has the connection', async () => {
    const pages = [newPage(), newPage()]
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const [one, two] = pages.map((page) => connectTo(server.url, page, { getToken }))
    if (one === undefined || two === undefined) throw new Error('no connections')
    const groups = one.view('groups')
    follow(groups)
    await soon(pages, () => groups.status().state === 'live')
    const other = two.view('group', { group: 'other' })
    follow(other)
    await soon(pages, () => other.status().state === 'live')
    const more = Array.from({ length: 63 }, (_, index) => one.view('group', { group: `${index}` }))
    for (const view of more) follow(view)
    await soon(pages, () => [...more, other, groups].every((view) => view.status().state === 'live'))
    expect(
      server.streams
        .filter(({ isClosed }) => !isClosed)
        .map(({ views }) => views.length)
        .toSorted(),
    ).toEqual([1, 64])
  })

  it.each([
    ['rejects', () => Promise.reject(new DOMException('Storage is blocked', 'SecurityError'))],
    [
      'throws',
      () => {
        throw new DOMException('The document is not active', 'InvalidStateError')
      },
    ],
  ])('have connections of their own where the browser %s for a lock', async (_, request) => {
    const page = newPage()
    page.locks = Object.assign(Object.create(navigator.locks), { request })
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const view = connectTo(server.url, page, { getToken }).view('groups')
    follow(view)
    for (let time = 0; time < 100; time++) {
      page.advance(10)
      await turns()
    }
    expect([view.status().state, server.requests]).toEqual(['live', 1])
  })

  it('have connections of their own where the browser gives no channel', async () => {
    const page = newPage()
    page.BroadcastChannel = class extends BroadcastChannel {
      constructor(name: string) {
        super(name)
        this.close()
        throw new DOMException('Storage is blocked', 'SecurityError')
      }
    }
    const server = await streamServer({ onStream: (stream) => answerAll(stream, 1) })
    const view = connectTo(server.url, page, { getToken }).view('groups')
    follow(view)
    for (let time = 0; time < 100; time++) {
      page.advance(10)
      await turns()
    }
    expect(view.status().state).toBe('live')
  })
})

describe('a page whose token is of another subject, taken for a search', () => {
  it('shows nothing of the connection of the subject before', async () => {
    const page = new TestPage()
    let sub = 'user_1'
    const server = await streamServer({
      answer: (request, response) => {
        if (request.url !== '/live/search') return false
        response.setHeader('content-type', 'application/json').end('{"results":[]}')
        return true
      },
      onStream: (stream) => {
        if (stream.views[0]?.after === undefined) answerAll(stream, server.streams.length)
        else stream.open().send('current', { view: 'groups' })
      },
    })
    // Tokens that end at once, so that each request takes another one.
    const live = connectTo(server.url, page, { getToken: () => tokenOf(sub, { exp: 1 }), share: false })
    const view = live.view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    Object.assign(page, { now: () => 5_000_000_000_000 })
    sub = 'user_2'
    await live.search({ search_queries: ['a'] })
    server.streams[0]?.send('position', { view: 'groups', position: '9' })
    server.streams[0]?.send('changes', { view: 'groups', rows: [['secret', { n: 9 }]], position: '10' })
    await soon(page, () => server.streams.length === 2)
    await soon(page, () => view.status().state === 'live')
    expect(server.streams[0]?.isClosed).toBe(true)
    expect(server.streams[1]?.views).toEqual([{ view: 'groups' }])
    expect(rowsOf(view)).toEqual({ a: { n: 2 } })
  })
})
