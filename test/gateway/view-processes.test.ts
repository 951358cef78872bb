import { memoryStore } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { createGateway, view } from 'rivulet/gateway'
import { describe, expect, it } from 'vitest'
import { append } from '../log/append.ts'
import { openStream } from './client.ts'
import { everything, processed, SECRET, served, setItem } from './fixture.ts'

const EVERYTHING = [{ view: 'everything' }]

/** The items by a newer version of the view, whose rows are texts. */
const newer = view({
  ...everything.definition,
  version: 2,
  reduce: (_: unknown, { id }: ResearchEvent) => id.replace(/#\d+$/, ''),
})

/** A gateway over a log that others may have open as well, and a way to end it as its program ends. */
async function started(store: ReturnType<typeof memoryStore>, options: Parameters<typeof served>[0] = {}) {
  const own = await served({ views: { everything }, ...options, store: store.connect() })
  own.gateway.done.catch(() => {})
  return {
    ...own,
    follow: async (after?: string) =>
      openStream(own.url, await own.token(), [{ view: 'everything', ...(after !== undefined && { after }) }]),
    end: async () => {
      await own.gateway.close()
      await own.log.close()
    },
  }
}

describe('retention and a view', () => {
  it('whose gateway does not hold it: the next gateway reports what was missed, and its rows are sound', async () => {
    const store = memoryStore()
    const first = await started(store, { holdsRetention: false })
    await append(store, [setItem('a', 'x', '1'), setItem('a', 'y', '1')])
    await processed(store)
    const stream = await first.follow()
    await stream.until('current')
    const before = stream.model.positions.get('everything')
    await first.end()
    await append(store, [setItem('a', 'x', 'missed'), setItem('a', 'y', '2'), setItem('a', 'z', '1')])
    expect(await store.retention.trim({ limit: 3 })).toMatchObject({ deleted: 3, blockedBy: null })

    const next = await started(store, { holdsRetention: false })
    await processed(store)
    for (const after of [undefined, before]) {
      const later = await next.follow(after)
      await later.until('current')
      expect(later.model.gaps).toEqual([{ view: 'everything', reason: 'missed' }])
      expect(later.model.rows('everything')).toMatchObject({ 'a/y': { value: '2' }, 'a/z': { value: '1' } })
    }
  })

  it('whose gateway holds it: its entries stay until it has processed them', async () => {
    const store = memoryStore()
    const first = await started(store)
    await append(store, [setItem('a', 'x', '1')])
    await processed(store)
    await first.end()
    await append(store, [setItem('a', 'y', '1')])
    expect(await store.retention.trim({ limit: 9 })).toMatchObject({ blockedBy: 'process:view:everything' })

    const next = await started(store)
    await processed(store)
    const stream = await next.follow()
    await stream.until('current')
    expect(stream.model.gaps).toEqual([])
    expect(Object.keys(stream.model.rows('everything'))).toEqual(['a/x', 'a/y'])
  })
})

describe('versions of a view that meet', () => {
  it('a newer one waits and serves the older rows, then builds its own', async () => {
    const store = memoryStore()
    const older = await started(store)
    await append(store, [setItem('a', 'x', '1')])
    await processed(store)
    const next = await started(store, { views: { everything: newer } })
    const stream = await next.follow()
    await stream.until('current')
    expect(stream.model.rows('everything')).toEqual({ 'a/x': { value: '1', times: 1 } })
    await append(store, [setItem('a', 'y', '1')])
    await stream.untilRows((model) => model.rows('everything')['a/y'] !== undefined)

    await older.end()
    await stream.untilRows((model) => model.rows('everything')['a/y'] === 'a/y=1')
    expect(stream.model.rows('everything')).toEqual({ 'a/x': 'a/x=1', 'a/y': 'a/y=1' })
    expect(stream.model.gaps).toEqual([{ view: 'everything', reason: 'rebuilt' }])
  })

  it('an older one after a newer one cannot make the view, and denies it', async () => {
    const store = memoryStore()
    const next = await started(store, { views: { everything: newer } })
    await append(store, [setItem('a', 'x', '1')])
    await processed(store)
    const older = await started(store)
    const stream = await older.follow()
    await stream.until('current')
    expect(stream.model.rows('everything')).toEqual({ 'a/x': 'a/x=1' })

    await next.end()
    await expect(older.gateway.done).rejects.toMatchObject({ name: 'ProcessVersionError' })
    expect((await stream.until('denied')).data).toMatchObject({ problem: { code: 'unavailable' } })
  })

  it('on a log that has lost its beginning, the newer one is built from the rest, and reports that', async () => {
    const store = memoryStore()
    const older = await started(store)
    await append(store, [setItem('a', 'x', '1'), setItem('a', 'y', '1'), setItem('a', 'z', '1')])
    await processed(store)
    const before = await older.follow()
    await before.until('current')
    await older.end()
    await store.retention.trim({ limit: 2 })
    await append(store, [setItem('a', 'y', '2')])

    const next = await started(store, { views: { everything: newer } })
    await processed(store)
    const resumed = await next.follow(before.model.positions.get('everything'))
    const fresh = await next.follow()
    for (const stream of [resumed, fresh]) {
      await stream.until('current')
      expect(stream.model.rows('everything')).toEqual({ 'a/y': 'a/y=2', 'a/z': 'a/z=1' })
    }
    expect(resumed.model.gaps.map(({ reason }) => reason)).toEqual(['rebuilt', 'missed'])
    expect(fresh.model.gaps.map(({ reason }) => reason)).toEqual(['missed'])
  })
})

describe('the name of a gateway', () => {
  it('keeps its views apart from those of another gateway of the log', async () => {
    const store = memoryStore()
    const plain = await started(store)
    const named = await started(store, { views: { everything: newer }, name: 'shop' })
    await append(store, [setItem('a', 'x', '1')])
    for (const name of ['everything', 'shop/everything']) await processed(store, name)

    for (const [own, row] of [
      [plain, { value: '1', times: 1 }],
      [named, 'a/x=1'],
    ] as const) {
      const stream = await own.follow()
      await stream.until('current')
      expect(stream.model.rows('everything')).toEqual({ 'a/x': row })
    }
  })

  it('is shared by gateways that stand by for each other, and lag is that of their view', async () => {
    const store = memoryStore()
    const options = { name: 'shop', heartbeat: 20 }
    const first = await started(store, options)
    const second = await started(store, options)
    await append(store, [setItem('a', 'x', '1')])
    await processed(store, 'shop/everything')
    const stream = await second.follow()
    await stream.until('current')
    const { readers } = await second.log.stats()
    expect(readers.map(({ name }) => name)).toContain('view:shop/everything')
    expect(readers.map(({ name }) => name)).not.toContain('view:everything')

    await first.end()
    await append(store, [setItem('a', 'y', '1')])
    await stream.untilRows((model) => model.rows('everything')['a/y'] !== undefined)
    expect((await stream.until('heartbeat')).data.behind).toBeTypeOf('number')
  })

  it.each(['', 'a/b', ' ', '.a', 'ä', 'a'.repeat(65), 7, null])('is refused as %j', async (name) => {
    const { log } = await served()
    const options = { log, views: { everything }, tokens: { secret: SECRET }, name } as never
    expect(() => createGateway(options)).toThrow(expect.objectContaining({ name: 'ArgumentError' }))
  })

  it('cannot be imitated by that of a view', async () => {
    const { log } = await served()
    const options = { log, views: { 'shop/everything': everything }, tokens: { secret: SECRET } }
    expect(() => createGateway(options)).toThrow(/`\/`/)
  })
})

it('a setting that is not true or false is refused', async () => {
  const { log } = await served()
  const options = { log, views: { everything }, tokens: { secret: SECRET }, holdsRetention: 1 } as never
  expect(() => createGateway(options)).toThrow(/holdsRetention/)
})

it('views are followed by their own names', async () => {
  const store = memoryStore()
  const named = await started(store, { name: 'shop' })
  const stream = await openStream(named.url, await named.token(), EVERYTHING)
  await stream.until('current')
  expect(stream.model.rows('everything')).toEqual({})
})
