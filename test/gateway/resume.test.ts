import { createParser } from 'eventsource-parser'
import { memoryStore } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { view } from 'rivulet/gateway'
import { describe, expect, it } from 'vitest'
import { append } from '../log/append.ts'
import { change } from '../operators/events.ts'
import { ClientModel, openStream, Stream } from './client.ts'
import { everything, held, processed, rowsOf, served, setItem } from './fixture.ts'

const EVERYTHING = [{ view: 'everything' }]

/** The names of the frames of a stream. */
const names = (stream: Stream) => stream.frames.map(({ name }) => name)

describe('a client that resumes', () => {
  it('gets only what has changed since its position', async () => {
    const { log, set, stream: open } = await held()
    await set({ a: 1, b: 1, c: 1 })
    const first = await open()
    await first.until('current')
    await first.close()
    await set({ b: 2, c: null, d: 2 })

    const second = await open(first.model.positions.get('everything'), first.model)
    await second.until('current')

    expect(names(second)).toEqual(['open', 'changes', 'current'])
    expect(second.frames[1]?.data).toMatchObject({
      rows: [
        ['b', 2],
        ['c', null],
        ['d', 2],
      ],
    })
    expect(second.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('gets nothing but the sign that it is up to date where nothing has changed', async () => {
    const { set, stream: open } = await held()
    await set({ a: 1 })
    const first = await open()
    await first.until('current')

    const second = await open(first.model.positions.get('everything'))
    await second.until('current')

    expect(names(second)).toEqual(['open', 'current'])
  })

  it.each([
    ['of another log', '0123456789abcdef/1.5'],
    ['that is none', 'nonsense'],
    ['of nothing', ''],
  ])('gets a gap and a snapshot for a position %s', async (_, after) => {
    const { log, set, stream: open } = await held()
    await set({ a: 1 })
    const stream = await open(after)
    await stream.until('current')

    expect(names(stream)).toEqual(['open', 'gap', 'snapshot', 'current'])
    expect(stream.model.gaps).toEqual([{ view: 'everything', reason: 'epoch' }])
    expect(stream.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('gets a gap and a snapshot where the view was built again', async () => {
    const { log, set, rebuild, stream: open } = await held()
    await set({ a: 1 })
    const first = await open()
    await first.until('current')
    await first.close()
    await rebuild({ b: 2 })

    const second = await open(first.model.positions.get('everything'), first.model)
    await second.until('current')

    expect(second.model.gaps).toEqual([{ view: 'everything', reason: 'rebuilt' }])
    expect(second.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('gets a gap and a snapshot where the view is built again while it is connected', async () => {
    const { log, set, rebuild, stream: open } = await held()
    await set({ a: 1 })
    const stream = await open()
    await stream.until('current')

    await rebuild({ b: 2 })
    await stream.until('snapshot')
    await set({ c: 3 })
    await stream.untilRows((model) => model.rows('everything')['c'] === 3)

    expect(stream.model.gaps).toEqual([{ view: 'everything', reason: 'rebuilt' }])
    expect(stream.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('gets a gap and a snapshot behind removed rows that the log has forgotten', async () => {
    const { log, set, stream: open } = await held()
    await set({ a: 1, b: 1 })
    const first = await open()
    await first.until('current')
    await first.close()
    await set({ a: null })
    for (let at = 0; at < 12_000; at += 4_000) {
      const removed = Array.from({ length: 4_000 }, (_, n) => [`gone${at + n}`, null])
      await set(Object.fromEntries(removed))
    }

    const second = await open(first.model.positions.get('everything'), first.model)
    await second.until('current')

    expect(second.model.gaps).toEqual([{ view: 'everything', reason: 'retention' }])
    expect(second.model.rows('everything')).toEqual(await rowsOf(log))
  })

  it('joins the others at the latest changes, after it has read what it missed from the store', async () => {
    const { log, set, stream: open } = await held()
    await set({ a: 1 })
    const first = await open()
    await first.until('current')
    const position = first.model.positions.get('everything')
    for (let n = 0; n < 1_500; n += 100) {
      await set(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`r${n + at}`, 'x'.repeat(500)])))
    }

    const second = await open(position, new ClientModel())
    await second.until('current')
    await first.untilRows((model) => Object.keys(model.rows('everything')).length === 1_501)

    expect({ a: 1, ...second.model.rows('everything') }).toEqual(await rowsOf(log))
    expect(first.model.rows('everything')).toEqual(await rowsOf(log))
  })
})

describe('a view that has missed entries of the log', () => {
  /** An entry for entries that were deleted. */
  const gap = (id: string): ResearchEvent => ({ ...change(id), type: 'log.gap', data: { from: 'a', to: id } })

  it.each([[everything], [view({ ...everything.definition, types: undefined } as never)]])(
    'says so once to those who follow it, and to those who come later',
    async (definition) => {
      const store = memoryStore()
      const { url, token, log } = await served({ store, views: { everything: definition } })
      const live = await openStream(url, await token(), EVERYTHING)
      await live.until('current')
      await append(store, [setItem('a', 'x', '1')])
      await live.until('changes')
      const before = live.model.positions.get('everything')

      await append(store, [gap('1'), setItem('a', 'y', '1')])
      await live.untilRows((model) => model.rows('everything')['a/y'] !== undefined)
      await processed(store)
      const resumed = await openStream(url, await token(), [{ view: 'everything', after: String(before) }])
      const fresh = await openStream(url, await token(), EVERYTHING)
      const after = live.model.positions.get('everything')
      const later = await openStream(url, await token(), [{ view: 'everything', after: String(after) }])
      for (const each of [resumed, fresh, later]) await each.until('current')

      const missed = [{ view: 'everything', reason: 'missed' }]
      expect([live, resumed, fresh, later].map(({ model }) => model.gaps)).toEqual([
        missed,
        missed,
        missed,
        [],
      ])
      expect(fresh.model.rows('everything')).toEqual(live.model.rows('everything'))
      expect(Object.keys(await rowsOf(log)).filter((key) => !key.startsWith('?'))).toEqual(
        Object.keys(live.model.rows('everything')),
      )
      expect(live.frames.filter(({ name }) => name === 'snapshot')).toHaveLength(1)
    },
  )
})

describe('a stream for EventSource', () => {
  /** Opens a stream by GET, with the token in a header. */
  async function open(url: string, token: string, views: readonly string[], id?: string): Promise<Stream> {
    const query = new URLSearchParams(views.map((each) => ['view', each]))
    const response = await fetch(`${url}/stream?${query}`, {
      headers: { authorization: `Bearer ${token}`, ...(id !== undefined && { 'last-event-id': id }) },
    })
    return new Stream(response, new ClientModel())
  }

  it('has ids with the positions of all its views, from which it resumes', async () => {
    const { url, token, store, append: add } = await served()
    await add(setItem('a', 'x', '1'), setItem('b', 'x', '1'))
    await processed(store)
    await processed(store, 'items')
    const views = ['items?list=a', 'everything', 'items?list=ü b']
    const first = await open(url, await token(), views)
    while (first.frames.filter(({ name }) => name === 'current').length < 3) await first.next()
    const { id } = first.frames.at(-1) ?? {}
    await first.close()
    await add(setItem('a', 'y', '2'))
    await processed(store)
    await processed(store, 'items')

    const second = await open(url, await token(), views, id)
    while (second.frames.filter(({ name }) => name === 'current').length < 3) await second.next()
    await second.close()

    expect(id?.split(',')).toHaveLength(3)
    expect(names(second)).not.toContain('snapshot')
    expect(second.model.gaps).toEqual([])
    expect(second.model.rows('items?list=a')).toEqual({ 'a/y': { value: '2', times: 1 } })
    expect(second.model.rows('everything')).toEqual({ 'a/y': { value: '2', times: 1 } })
    expect(second.model.rows('items?list=%C3%BC%20b')).toEqual({})
  })

  it.each(['', 'nonsense', '1,2,3,4', ',', '%zz,%zz'])('begins anew with the id %o of others', async (id) => {
    const { url, token, append: add, store } = await served()
    await add(setItem('a', 'x', '1'))
    await processed(store)
    const stream = await open(url, await token(), ['everything', 'items?list=a'], id)
    await stream.until('current')
    await stream.close()

    expect(names(stream)).toContain('snapshot')
  })

  it('has an id in each event, so that a parser which drops empty events knows it', async () => {
    const { url, token } = await served()
    const response = await fetch(`${url}/stream?view=everything`, {
      headers: { authorization: `Bearer ${await token()}` },
    })
    const ids: (string | undefined)[] = []
    const parser = createParser({ onEvent: (event) => ids.push(event.id) })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    while (ids.length < 3) parser.feed((await reader?.read())?.value ?? '')
    await reader?.cancel()

    // `open` comes before there is a position.
    expect(ids).toEqual(['', expect.stringContaining('%2F'), expect.stringContaining('%2F')])
  })
})
