import { IDBFactory, IDBKeyRange } from 'fake-indexeddb'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { OfflineRows } from '../../src/live/offline-rows.ts'
import type { RowState } from '../../src/protocol/live.ts'
import { TestPage, until } from './environment.ts'
import { connectTo, follow, rowsOf, soon, tokenOf } from './pages.ts'
import { streamServer } from './stream-server.ts'
import type { StreamConnection } from './stream-server.ts'

beforeAll(async () => {
  globalThis.IDBKeyRange = IDBKeyRange
  // A page waits for this code by its own clock, which is faster here than the loader of modules.
  await import('../../src/live/offline.ts')
})

const getToken = () => tokenOf('user_1')

function sendRow(stream: StreamConnection, n: number): void {
  stream
    .open()
    .send('snapshot', { view: 'groups', first: true, rows: [['a', { n }]], position: `${n}` })
    .send('current', { view: 'groups' })
}

/** A page without a network, and without a token. */
function offlinePage(indexedDB: IDBFactory): TestPage {
  const page = new TestPage({ indexedDB })
  page.online = false
  Object.assign(page, { fetch: () => Promise.reject(new TypeError('fetch failed')) })
  return page
}

/** What is on the disk for a gateway, once it is as wanted. */
async function kept(
  indexedDB: IDBFactory,
  url: string,
  isWanted: (addresses: string[]) => boolean,
): Promise<string[]> {
  for (;;) {
    const rows = await new OfflineRows(indexedDB, url, () => Date.UTC(2026, 10, 22)).load()
    const addresses = [...(rows?.views.keys() ?? [])]
    if (isWanted(addresses)) return addresses
  }
}

describe('with offline', () => {
  it('a page that was closed writes nothing any more', async () => {
    const indexedDB = new IDBFactory()
    const page = new TestPage({ indexedDB })
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page, { getToken, offline: true })
    const view = live.view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    await until(() => page.left > 1)
    live.close()
    for (let second = 0; second < 10; second++) {
      page.advance(1_000)
      for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await kept(indexedDB, server.url, () => true)).toEqual([])
  })

  it('a database that hangs gets one copy of the rows at a time', async () => {
    const { promise: opened } = Promise.withResolvers<never>()
    const save = vi.spyOn(OfflineRows.prototype, 'save').mockImplementation(() => opened)
    onTestFinished(() => save.mockRestore())
    const page = new TestPage({ indexedDB: new IDBFactory() })
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const view = connectTo(server.url, page, { getToken, offline: true }).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    await until(() => page.left > 1)
    for (let n = 2; n < 6; n++) {
      server.streams[0]?.send('changes', { view: 'groups', rows: [['a', { n }]], position: `${n}` })
      await soon(page, () => rowsOf(view)['a']?.n === n)
      page.advance(3_000)
    }
    expect(save).toHaveBeenCalledTimes(1)
  })

  it('a page starts with the last rows where there is no network and no token', async () => {
    const indexedDB = new IDBFactory()
    const page = new TestPage({ indexedDB })
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const first = connectTo(server.url, page, { getToken, offline: true }).view('groups')
    follow(first)
    await soon(page, () => first.status().state === 'live')
    await until(() => page.left > 1)
    page.emit('hide')
    await kept(indexedDB, server.url, ([address]) => address === 'groups')

    const later = offlinePage(indexedDB)
    const view = connectTo(server.url, later, {
      offline: true,
      getToken: () => Promise.reject(new Error('no network')),
    }).view('groups')
    follow(view)
    await soon(later, () => view.getSnapshot().ready)

    expect(rowsOf(view)).toEqual({ a: { n: 1 } })
    expect(view.status().state).toBe('offline')
  })

  it('the rows of the disk are followed from their position', async () => {
    const indexedDB = new IDBFactory()
    const rows: readonly RowState[] = [['a', { n: 1 }]]
    const server = await streamServer({
      onStream: (stream) =>
        stream
          .open()
          .send('changes', { view: 'groups', rows: [['b', { n: 2 }]], position: '8' })
          .send('current', { view: 'groups' }),
    })
    const page = new TestPage({ indexedDB })
    const token = getToken()
    const { iat: _, exp: _e, jti: _j, ...rights } = JSON.parse(atob(token.split('.')[1] ?? ''))
    const disk = new OfflineRows(indexedDB, server.url, page.now)
    await disk.save(JSON.stringify(rights), new Map([['groups', { rows, position: '7' }]]))
    const view = connectTo(server.url, page, { getToken: () => token, offline: true }).view('groups')
    const { snapshots } = follow(view)
    await soon(page, () => view.status().state === 'live')

    expect(server.streams[0]?.views).toEqual([{ view: 'groups', after: '7' }])
    expect(rowsOf(view)).toEqual({ a: { n: 1 }, b: { n: 2 } })
    expect(snapshots.map(({ status }) => status.state)).not.toContain('denied')
  })

  it('the rows of another subject are never shown once there is a token, and are removed', async () => {
    const indexedDB = new IDBFactory()
    const page = new TestPage({ indexedDB })
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 2) })
    const disk = new OfflineRows(indexedDB, server.url, page.now)
    await disk.save('{"sub":"user_0"}', new Map([['groups', { rows: [['a', { n: 1 }]], position: '7' }]]))
    const view = connectTo(server.url, page, { getToken, offline: true }).view('groups')
    const { snapshots } = follow(view)
    await soon(page, () => view.status().state === 'live')

    expect(server.streams[0]?.views).toEqual([{ view: 'groups' }])
    expect(snapshots.map(({ rows }) => rows.get('a')?.n)).not.toContain(1)
  })

  it.each([
    ['close is called', (live: Disposable) => live[Symbol.dispose]()],
    [
      'the gateway denies the view',
      (_: Disposable, stream: StreamConnection | undefined) =>
        stream?.send('denied', { view: 'groups', problem: { code: 'forbidden', message: '' } }),
    ],
  ] as const)('nothing is left on the disk once %s', async (_, end) => {
    const indexedDB = new IDBFactory()
    const page = new TestPage({ indexedDB })
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const live = connectTo(server.url, page, { getToken, offline: true })
    const view = live.view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    page.advance(3_000)
    await kept(indexedDB, server.url, ({ length }) => length === 1)
    end(live, server.streams[0])

    expect(await kept(indexedDB, server.url, ({ length }) => length === 0)).toEqual([])
  })

  it.each([
    [
      'that throws',
      () => {
        throw new Error('SecurityError')
      },
    ],
    ['that fails', () => new IDBFactory().open('rivulet-live', 9)],
  ])('a database %s is as good as none', async (_, open) => {
    const indexedDB = new IDBFactory()
    Object.assign(indexedDB, { open })
    const page = new TestPage({ indexedDB })
    const server = await streamServer({ onStream: (stream) => sendRow(stream, 1) })
    const view = connectTo(server.url, page, { getToken, offline: true }).view('groups')
    follow(view)
    await soon(page, () => view.status().state === 'live')
    page.advance(3_000)
    page.emit('hide')
    expect(rowsOf(view)).toEqual({ a: { n: 1 } })
  })
})

describe('what is kept', () => {
  const row = (length: number): readonly RowState[] => [['a', 'x'.repeat(length)]]

  it('is bounded in views and length, of which the newest ones stay', async () => {
    let now = 0
    const disk = new OfflineRows(new IDBFactory(), '/live', () => now++)
    for (let index = 0; index < 60; index++) {
      await disk.save('me', new Map([[`view_${index}`, { rows: row(1), position: '1' }]]))
    }
    const views = [...((await disk.load())?.views.keys() ?? [])]
    expect(views).toHaveLength(50)
    expect(views).toContain('view_59')

    for (const index of [1, 2, 3]) {
      await disk.save('me', new Map([[`large_${index}`, { rows: row(3_000_000), position: '1' }]]))
    }
    expect([...((await disk.load())?.views.keys() ?? [])]).not.toContain('large_1')
  })

  it('is a week old at most, and of one subject', async () => {
    let now = 0
    const disk = new OfflineRows(new IDBFactory(), '/live', () => now)
    await disk.save('me', new Map([['old', { rows: row(1), position: '1' }]]))
    now += 6 * 24 * 3_600_000
    await disk.save('me', new Map([['new', { rows: row(1), position: '1' }]]))
    now += 2 * 24 * 3_600_000
    expect([...((await disk.load())?.views.keys() ?? [])]).toEqual(['new'])
    await disk.save('you', new Map([['yours', { rows: row(1), position: '1' }]]))
    expect(await disk.load()).toEqual({
      rights: 'you',
      views: new Map([['yours', { rows: row(1), position: '1' }]]),
    })
  })

  it('is apart for each gateway', async () => {
    const indexedDB = new IDBFactory()
    const [one, two] = ['/one', '/two'].map((url) => new OfflineRows(indexedDB, url, () => 0))
    await one?.save('me', new Map([['a', { rows: row(1), position: '1' }]]))
    await two?.save('me', new Map([['b', { rows: row(1), position: '1' }]]))
    await one?.clear()
    expect([await one?.load(), [...((await two?.load())?.views.keys() ?? [])]]).toEqual([undefined, ['b']])
  })
})
