import { describe, expect, it } from 'vitest'
import { ClientModel, openStream } from './client.ts'
import type { Frame } from './client.ts'
import { held, processed, rowsOf, served, setItem } from './fixture.ts'
import type { ViewRequest } from '../../src/protocol/live.ts'

/** Rows with these numbers. */
const rows = (from: number, to: number, value: unknown = { n: 0 }) =>
  Object.fromEntries(
    Array.from({ length: to - from }, (_, at) => [`r${String(from + at).padStart(5, '0')}`, value]),
  )

/** A client that notices a row whose `n` becomes smaller. */
class WatchfulModel extends ClientModel {
  readonly back: string[] = []

  override take(frame: Frame): void {
    const before = this.rows('everything')
    super.take(frame)
    for (const [key, row] of Object.entries(this.rows('everything'))) {
      const earlier = before[key]
      if (earlier !== undefined && Number(Object(row).n) < Number(Object(earlier).n)) this.back.push(key)
    }
  }
}

describe('a snapshot', () => {
  it('comes in parts, of which the last one has the position', async () => {
    const { log, set, stream: open } = await held()
    await set(rows(0, 1_200))
    const stream = await open()

    await stream.until('current')

    const parts = stream.frames.flatMap((frame) => (frame.name === 'snapshot' ? [frame.data] : []))
    expect(parts.map((part) => [part.rows.length, part.first, part.position !== undefined])).toEqual([
      [500, true, false],
      [500, false, false],
      [200, false, true],
    ])
    expect(stream.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('has parts of a bounded size, whatever the size of its rows', async () => {
    const { set, stream: open } = await held()
    const large = { n: 0, text: 'x'.repeat(30_000) }
    for (let at = 0; at < 30; at += 10) await set(rows(at, at + 10, large))
    const stream = await open()

    await stream.until('current')

    const parts = stream.frames.flatMap((frame) =>
      frame.name === 'snapshot' ? [frame.data.rows.length] : [],
    )
    expect(parts).toEqual(Array.from({ length: 10 }, () => 3))
  })

  it('is of an empty view too', async () => {
    const { stream: open } = await held()
    const stream = await open()

    const { data } = await stream.until('snapshot')

    expect(data).toEqual({ view: 'everything', rows: [], first: true, position: expect.any(String) })
  })

  it('ends with the same rows as the view where these change, come and go while it is sent', async () => {
    const { log, set, stream: open } = await held()
    await set(rows(0, 1_200))
    const model = new WatchfulModel()
    const stream = await open(undefined, model)

    await stream.until('snapshot')
    await set({ r00001: { n: 1 }, r00700: { n: 1 }, r01100: null, r00002: null, r00501a: { n: 1 } })
    await stream.until('snapshot')
    await set({ r00001: { n: 2 }, r00700: { n: 2 }, r00501a: null, r01100: { n: 2 } })
    await stream.until('snapshot', ({ data }) => data.position !== undefined)
    await set({ r00003: { n: 3 } })
    await stream.untilRows(() => Object(model.rows('everything')['r00003']).n === 3)

    expect(model.rows('everything')).toEqual(await rowsOf(log))
    expect(model.back).toEqual([])
  })

  it('is never followed by an older state of a row, also where others have got that meanwhile', async () => {
    const { log, set, stream: open } = await held()
    await set(rows(0, 600))
    const first = await open()
    await first.until('current')
    await first.close()
    // It resumes, so that it does not share the parts of its snapshot.
    const other = await open(first.model.positions.get('everything'))
    await other.until('current')
    const model = new WatchfulModel()
    const stream = await open(undefined, model)

    await stream.until('snapshot')
    await set({ r00550: { n: 1 } })
    await other.until('changes')
    await set({ r00550: { n: 2 } })
    await other.until('changes')
    await stream.until('snapshot', ({ data }) => data.position !== undefined)
    expect(Object(model.rows('everything')['r00550']).n).toBe(2)
    await stream.until('current')

    expect(model.rows('everything')).toEqual(await rowsOf(log))
    expect(model.back).toEqual([])
  })

  it('begins again with a gap where the view is built again while it is sent', async () => {
    const { log, set, rebuild, stream: open } = await held()
    await set(rows(0, 700))
    const stream = await open()

    await stream.until('snapshot')
    await rebuild(rows(650, 660, { n: 9 }))
    const gap = await stream.until('gap')
    await stream.until('current')

    expect(gap.data).toEqual({ view: 'everything', reason: 'rebuilt' })
    expect(stream.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('of params has the row of the params themselves, and no row of others that begin alike', async () => {
    const { append, url, token, store } = await served()
    await append(
      setItem('a', '', 'own'),
      setItem('a', 'x', '1'),
      setItem('ab', 'x', '2'),
      setItem('a-', 'x', '3'),
      setItem('a', 'gone', '4'),
      setItem('a', 'gone', ''),
      setItem('b', '', 'other'),
    )
    await processed(store, 'items')
    const stream = await openStream(url, await token(), [{ view: 'items', params: { list: 'a' } }])

    await stream.until('current')
    expect(stream.model.rows('items?list=a')).toEqual({
      a: { value: 'own', times: 1 },
      'a/x': { value: '1', times: 1 },
    })
    await append(setItem('ab', 'y', '5'), setItem('a', '', ''), setItem('a', 'y', '6'))
    await stream.untilRows((model) => model.rows('items?list=a')['a/y'] !== undefined)

    expect(stream.model.rows('items?list=a')).toEqual({
      'a/x': { value: '1', times: 1 },
      'a/y': { value: '6', times: 1 },
    })
  })
})

describe('gateway.snapshot', () => {
  it('has the rows that a grant sees, by address, and a position from which a stream goes on', async () => {
    const { append, url, store, gateway, token } = await served()
    await append(setItem('a', 'x', '1'), setItem('b', 'x', '2'))
    await processed(store)
    await processed(store, 'items')
    const grant = { sub: 'u', views: ['items', 'everything'], sources: ['/v1/monitors/a'], omit: ['times'] }

    const snapshot = await gateway.snapshot(grant, [
      { view: 'items', params: { list: 'a' } },
      { view: 'everything' },
    ])
    await append(setItem('a', 'y', '3'))
    const after = snapshot['everything']?.position
    const stream = await openStream(url, await token(), [{ view: 'everything', after: String(after) }])
    await stream.untilRows((model) => model.rows('everything')['a/y'] !== undefined)

    expect(Object.keys(snapshot)).toEqual(['items?list=a', 'everything'])
    expect(snapshot['everything']?.rows).toEqual([['a/x', { value: '1' }]])
    expect(snapshot['items?list=a']?.rows).toEqual([['a/x', { value: '1' }]])
    expect(stream.model.rows('everything')).toEqual({ 'a/y': { value: '3', times: 1 } })
  })

  it('refuses views and params that the grant does not name', async () => {
    const { gateway } = await served()
    const grant = { sub: 'u', views: ['items'], sources: ['/v1/monitors/a'] }

    const refused: readonly ViewRequest[] = [
      { view: 'everything' },
      { view: 'unknown' },
      { view: 'items' },
      { view: 'items', params: { list: 'b' } },
      { view: 'items', params: { list: 'a', more: 'x' } },
    ]
    for (const wanted of refused) {
      await expect(gateway.snapshot(grant, [wanted])).rejects.toMatchObject({ name: 'ArgumentError' })
    }
  })
})
