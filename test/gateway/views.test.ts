import { memoryStore, openLog } from 'rivulet/log'
import { createGateway, view } from 'rivulet/gateway'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sqliteStore } from 'rivulet/log/sqlite'
import { append } from '../log/append.ts'
import { scratchFile } from '../log/sqlite/scratch.ts'
import { openStream } from './client.ts'
import { everything, processed, SECRET, served, setItem, VIEWS } from './fixture.ts'

const EVERYTHING = [{ view: 'everything' }]

describe('a view whose functions fail', () => {
  const failing = view({
    version: 1,
    key: ({ id }) => [id],
    reduce: (): never => {
      throw new Error('a bug in the view')
    },
  })

  it('is denied to those who follow it and to those who come, and the gateway rejects `done`', async () => {
    const store = memoryStore()
    const { url, token, gateway } = await served({ store, views: { failing, everything } })
    const failed = gateway.done.catch((error: unknown) => error)
    const views = [{ view: 'failing' }, ...EVERYTHING]
    const stream = await openStream(url, await token(), views)
    await stream.until('current')
    await stream.until('current')

    await append(store, [setItem('a', 'x', '1')])
    const { data } = await stream.until('denied')
    await stream.untilRows((model) => model.rows('everything')['a/x'] !== undefined)
    const later = await openStream(url, await token(), views)

    expect(data).toEqual({ view: 'failing', problem: { code: 'unavailable', message: expect.any(String) } })
    expect((await later.until('denied')).data).toEqual(data)
    expect(await failed).toMatchObject({
      name: 'ProcessError',
      message: expect.stringContaining('a bug in the view'),
    })
    expect(JSON.stringify(data)).not.toContain('bug')
  })

  it('is denied where its paths are none, and hostile parts of a path are escaped', async () => {
    const store = memoryStore()
    const path = (id: string) => [id.replace(/#.*/, ''), '/', '\ud800', '?', '"\n', '..'] as const
    const hostile = view({ version: 1, key: ({ id }) => path(id), reduce: () => 1 })
    const empty = view({ version: 1, params: ['a', 'b'], key: ({ id }) => [id], reduce: () => 1 })
    const { url, token, gateway } = await served({ store, views: { hostile, empty } })
    const failed = gateway.done.catch((error: unknown) => error)
    await append(store, [setItem('a', 'x', '1')])
    const stream = await openStream(url, await token(), [
      { view: 'hostile' },
      { view: 'empty', params: { a: '1', b: '2' } },
    ])
    await stream.until('denied', ({ data }) => data.view === 'empty?a=1&b=2')
    await stream.untilRows((model) => model.views.get('hostile')?.size === 1)

    expect(await failed).toMatchObject({ message: expect.stringContaining('a list of at least 2 texts') })
    expect(Object.keys(stream.model.rows('hostile'))).toEqual(['a%2Fx%3D1/%2F/%EF%BF%BD/%3F/%22%0A/..'])
  })

  it('hides the rows whose source cannot be found out, also from grants of all sources with a prefix', async () => {
    const unsure = view({
      ...everything.definition,
      source: ([list = '']) => {
        if (list === 'b') throw new Error('no source')
        return `/v1/monitors/${list}`
      },
    } as typeof everything.definition)
    const { url, gateway, append: add } = await served({ views: { unsure } })
    const token = await gateway.grant({ sub: 'u', views: ['unsure'], sources: ['/v1/monitors/*'] })
    await add(setItem('b', 'x', '1'), setItem('a', 'x', '1'))
    const stream = await openStream(url, token, [{ view: 'unsure' }])
    await stream.untilRows((model) => model.rows('unsure')['a/x'] !== undefined)

    expect(Object.keys(stream.model.rows('unsure'))).toEqual(['a/x'])
  })
})

describe('a row', () => {
  it('is removed where its view says that it is over, at an entry after that', async () => {
    let now = 1_000
    const store = memoryStore({ clock: () => now })
    const timed = view({
      ...everything.definition,
      timeToLive: (row: unknown) => (Object(row).value === 'short' ? 100 : undefined),
    } as typeof everything.definition)
    const { url, token } = await served({ store, views: { timed } })
    await append(store, [setItem('a', 'x', 'short'), setItem('a', 'y', 'long'), setItem('a', 'z', 'short')])
    const stream = await openStream(url, await token(), [{ view: 'timed' }])
    await stream.untilRows((model) => Object.keys(model.rows('timed')).length === 3)

    now = 1_050
    await append(store, [setItem('a', 'z', 'long')])
    now = 1_101
    await append(store, [setItem('a', 'w', 'long')])
    await stream.untilRows((model) => model.rows('timed')['a/x'] === undefined)

    expect(Object.keys(stream.model.rows('timed')).toSorted()).toEqual(['a/w', 'a/y', 'a/z'])
  })
})

describe('several gateways over one log', () => {
  it('serve the same rows at once, and the next one goes on where the first ends', async () => {
    const file = scratchFile()
    const open = async () => {
      const log = await openLog(sqliteStore(file))
      onTestFinished(() => log.close())
      return log
    }
    const [first, second] = [await open(), await open()]
    const gateways = [first, second].map((log) =>
      createGateway({ log, views: VIEWS, tokens: { secret: SECRET } }),
    )
    const [one, two] = gateways
    if (one === undefined || two === undefined) throw new Error('there are two')
    onTestFinished(async () => {
      for (const each of gateways) await each.close()
    })
    const writer = sqliteStore(file)
    onTestFinished(() => writer.close())
    const token = await one.grant({ sub: 'u', views: ['everything'], sources: ['*'] })
    const follow = (gateway: typeof one) =>
      openStream('http://localhost/live', token, EVERYTHING, { fetcher: gateway })
    const [a, b] = [await follow(one), await follow(two)]
    await append(writer, [setItem('a', 'x', '1')])
    await a.untilRows((model) => model.rows('everything')['a/x'] !== undefined)
    await b.untilRows((model) => model.rows('everything')['a/x'] !== undefined)

    await one.close()
    await first.close()
    await append(writer, [setItem('a', 'y', '2')])
    await b.untilRows((model) => model.rows('everything')['a/y'] !== undefined)
    const resumed = await openStream(
      'http://localhost/live',
      token,
      [{ view: 'everything', after: String(a.model.positions.get('everything')) }],
      { fetcher: two, model: a.model },
    )
    await resumed.until('current')

    expect(a.frames.at(-1)).toBeDefined()
    expect(resumed.model.rows('everything')).toEqual(b.model.rows('everything'))
    expect(resumed.model.gaps).toEqual([])
  })

  it('serve over the same open log too', async () => {
    const store = memoryStore()
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const { token } = await served({ log, store })
    const other = await served({ log, store })
    const stream = await openStream(other.url, await token(), EVERYTHING)

    await append(store, [setItem('a', 'x', '1')])
    await stream.untilRows((model) => model.rows('everything')['a/x'] !== undefined)
    await processed(store)

    expect(stream.model.rows('everything')).toEqual({ 'a/x': { value: '1', times: 1 } })
  })
})

describe('a log that is closed', () => {
  it('ends the streams of its gateway with a sign to connect again', async () => {
    const { log, url, token } = await served()
    const stream = await openStream(url, await token(), EVERYTHING)
    await stream.until('current')

    await log.close()

    expect((await stream.until('close')).data).toEqual({ reason: 'shutdown' })
    expect(await stream.next()).toBeUndefined()
  })
})
