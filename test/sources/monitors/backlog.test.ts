import * as fc from 'fast-check'
import { lastValueFrom, Subject, take, tap, toArray } from 'rxjs'
import { createClient } from 'rivulet'
import { Gate, underGate } from 'rivulet/operators'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answer, queryOf, serve } from '../../support/serve.ts'
import { settled } from '../../support/settled.ts'

const names = (count: number) => Array.from({ length: count }, (_, n) => `e${n + 1}`)

/** A monitor's list of events, newest first. */
interface Listed {
  /** What a cursor is: an offset from the newest event, which shifts as events appear, or the id of an event. */
  readonly cursors: 'newest' | 'event'
  /** Called before each response. Returns the status of an error to respond with. */
  readonly onRequest?: (request: number, list: string[]) => number | undefined
}

async function monitorOf(count: number, { cursors, onRequest }: Listed) {
  const list = names(count).toReversed()
  const requested: string[] = []
  const baseUrl = await serve((request, response) => {
    if (!(request.url ?? '').includes('/events')) return answer(response, { status: 'active' })
    const query = queryOf(request)
    const cursor = query.get('cursor')
    requested.push(cursor ?? '')
    const status = onRequest?.(requested.length, list)
    if (status === 422 ? cursor !== null : status !== undefined) {
      return answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, status)
    }
    const begin = cursor === null ? 0 : cursors === 'newest' ? Number(cursor) : list.indexOf(cursor) + 1
    const end = begin + Number(query.get('limit'))
    const page = list.slice(begin, end)
    answer(response, {
      events: page.map((id) =>
        // These have no id of their own.
        id.startsWith('odd')
          ? { event_type: id }
          : { event_id: id, event_group_id: 'x', event_date: null, output: {} },
      ),
      ...(end < list.length && { next_cursor: cursors === 'newest' ? String(end) : page.at(-1) }),
    })
  })
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0 })
  return { client, list, requested }
}

/** The cursors of these pages of 100 events, newest first. */
const pages = (...indexes: number[]) => indexes.map((index) => (index === 0 ? '' : String(index * 100)))

describe('a long backlog of a monitor', () => {
  it('is buffered as cursors: all but the oldest 400 events are fetched again, page by page', async () => {
    const { client, requested } = await monitorOf(1_000, { cursors: 'newest' })
    const requestedBy = new Map<string, number>()

    const events = client.monitors.follow('m', { pollInterval: Infinity })
    const seen = await lastValueFrom(
      events.pipe(
        tap(({ id }) => requestedBy.set(id, requested.length)),
        take(1_000),
        toArray(),
      ),
    )

    expect(seen.map(({ id }) => id)).toEqual(names(1_000))
    expect(requested).toEqual([...pages(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), ...pages(5, 4, 3, 2, 1, 0)])
    // At each event, at most the next page was requested.
    const ahead = [1, 300, 301, 400, 401, 500, 501].map((n) => (requestedBy.get(`e${n}`) ?? Infinity) - 10)
    const most = [0, 0, 1, 1, 2, 2, 3]
    expect(ahead.filter((pagesAhead, at) => pagesAhead > (most[at] ?? 0))).toEqual([])
  })

  it('is not fetched further while the gate is closed', async () => {
    const { client, requested } = await monitorOf(1_000, { cursors: 'newest' })
    const gate = new Gate()
    let seen = 0
    const events = client.monitors.follow('m', { pollInterval: Infinity }).pipe(underGate(gate))
    const subscription = events.subscribe(() => {
      if (++seen === 450) gate.close()
    })
    onTestFinished(() => subscription.unsubscribe())

    await settled(() => Math.max(0, seen - 449))

    expect([seen, requested.length]).toEqual([450, 12])
  })

  it('of at most four pages of 100 is fetched once', async () => {
    const { client, requested } = await monitorOf(400, { cursors: 'event' })

    await lastValueFrom(client.monitors.follow('m', { pollInterval: Infinity }).pipe(take(400)))

    expect(requested).toHaveLength(4)
  })

  it('resumes after a failed request, without walking back again', async () => {
    const { client, requested } = await monitorOf(1_000, {
      cursors: 'event',
      onRequest: (request) => (request === 6 || request === 13 ? 503 : undefined),
    })

    const events = client.monitors.follow('m', { pollInterval: Infinity })
    const seen = await lastValueFrom(events.pipe(take(1_000), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(names(1_000))
    // Ten to walk back, six fetched again, and two that failed.
    expect(requested).toHaveLength(18)
  })

  it('is emitted with a gap if the next events were deleted from the list meanwhile', async () => {
    const { client } = await monitorOf(1_000, {
      cursors: 'newest',
      onRequest: (request, list) => {
        if (request === 11) list.length = 450
        return undefined
      },
    })

    const events = client.monitors.follow('m', { pollInterval: Infinity })
    const seen = await lastValueFrom(events.pipe(take(851), toArray()))

    expect(seen.map(({ type, id }) => (type === 'stream.gap' ? type : id))).toEqual([
      ...names(1_000).slice(0, 400),
      'stream.gap',
      ...names(1_000).slice(550),
    ])
  })

  it('loses no event without its own id that moves to an older page', async () => {
    const { client } = await monitorOf(1_000, {
      cursors: 'newest',
      onRequest: (request, list) => {
        // The oldest event of the first page that is fetched again, right before that request.
        if (request === 1) list[599] = 'odd401'
        if (request === 11) list.unshift('e1001')
        return undefined
      },
    })

    const events = client.monitors.follow('m', { pollInterval: Infinity })
    const seen = await lastValueFrom(events.pipe(take(1_000), toArray()))

    expect(seen.map(({ type, id }) => (type === 'unknown' ? type : id))).toEqual(
      names(1_000).with(400, 'unknown'),
    )
  })

  it('of unknown events is walked back once, emitted once, and recognised by the next poll', async () => {
    const { client, list, requested } = await monitorOf(0, { cursors: 'newest' })
    list.push(...Array.from({ length: 1_500 }, (_, n) => `odd${1_500 - n}`))
    const wake = new Subject<void>()

    const events = client.monitors.follow('m', { pollInterval: Infinity, wake })
    const seen: unknown[] = []
    const subscription = events.subscribe(({ data }) => void seen.push(data))
    onTestFinished(() => subscription.unsubscribe())
    await settled(() => requested.length)
    const first = requested.splice(0)
    list.unshift('odd1501')
    wake.next()
    await settled(() => requested.length)

    expect(seen).toEqual(Array.from({ length: 1_501 }, (_, n) => ({ event_type: `odd${n + 1}` })))
    // Fifteen to walk back, eleven fetched again.
    expect(first).toHaveLength(26)
    expect(requested).toEqual(pages(0))
  })

  it('does not count as known after an event without an id occurs again', async () => {
    const { client, list, requested } = await monitorOf(3, { cursors: 'newest' })
    list.unshift('odd', 'odd', 'odd')
    const wake = new Subject<void>()

    const events = client.monitors.follow('m', { pollInterval: Infinity, wake, limit: 5 })
    const seen: string[] = []
    const subscription = events.subscribe(({ type, id }) => void seen.push(type === 'unknown' ? type : id))
    onTestFinished(() => subscription.unsubscribe())
    await settled(() => requested.length)
    list.unshift('odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'e4')
    list.unshift('odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd', 'odd')
    wake.next()
    await settled(() => requested.length)

    expect(seen).toEqual(['e1', 'e2', 'e3', 'unknown', 'e4'])
  })

  it('errors if every walk is rejected at its second page', async () => {
    const { client, requested } = await monitorOf(200, { cursors: 'event', onRequest: () => 422 })

    const events = lastValueFrom(client.monitors.follow('m', { pollInterval: Infinity }))

    await expect(events).rejects.toMatchObject({ name: 'ValidationError', status: 422 })
    expect(requested).toHaveLength(8)
  })

  it('errors if the pages repeat a cursor', async () => {
    const baseUrl = await serve((_request, response) =>
      answer(response, { events: [], next_cursor: 'again' }),
    )
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const events = lastValueFrom(client.monitors.follow('m'))

    await expect(events).rejects.toMatchObject({ name: 'ProtocolError', path: '/v1/monitors/m/events' })
  })

  it.each([1, '', {}, [], true])(
    'treats a cursor that is not a string as the end of the list: %j',
    async (next_cursor) => {
      const event = { event_id: 'e1', event_group_id: 'x', output: {} }
      const baseUrl = await serve((_request, response) => answer(response, { events: [event], next_cursor }))
      const client = createClient({ baseUrl, apiKey: 'key' })

      const first = await lastValueFrom(client.monitors.follow('m', { pollInterval: Infinity }).pipe(take(1)))

      expect(first.id).toBe('e1')
    },
  )

  it('is emitted in order and exactly once, whatever appears or fails meanwhile', async () => {
    const happening = fc.record({
      at: fc.integer({ min: 1, max: 40 }),
      what: fc.oneof(
        fc.record({ appear: fc.integer({ min: 1, max: 250 }) }),
        fc.constantFrom({ status: 503 }, { status: 422 }),
      ),
    })
    const script = fc.record({
      count: fc.integer({ min: 0, max: 1_200 }),
      limit: fc.constantFrom(17, 50, 100),
      cursors: fc.constantFrom('newest' as const, 'event' as const),
      odd: fc.uniqueArray(fc.integer({ min: 1, max: 1_200 }), { maxLength: 30 }),
      happenings: fc.uniqueArray(happening, { maxLength: 12, selector: ({ at }) => at }),
    })
    await fc.assert(
      fc.asyncProperty(script, async ({ count, limit, cursors, odd, happenings }) => {
        const isOdd = new Set(odd)
        const name = (n: number) => (isOdd.has(n) ? `odd${n}` : `e${n}`)
        let reported = 0
        const report = (list: string[], more: number) => {
          for (let n = 0; n < more; n++) list.unshift(name(++reported))
        }
        const appearing = happenings.map(({ what }) => ('appear' in what ? what.appear : 0))
        const total = count + appearing.reduce((sum, more) => sum + more, 0)
        fc.pre(total > 0)
        // A service that rejects more cursors in a row cannot be paginated.
        let refusals = 0
        const { client, list } = await monitorOf(0, {
          cursors,
          onRequest: (request, all) => {
            const what = happenings.find(({ at }) => at === request)?.what
            if (what === undefined) return undefined
            if ('appear' in what) return void report(all, what.appear)
            return what.status === 422 && ++refusals > 3 ? undefined : what.status
          },
        })
        report(list, count)

        const events = client.monitors.follow('m', { limit, pollInterval: 0 })
        const seen = await lastValueFrom(events.pipe(take(total), toArray()))

        const idOf = ({ type, id, data }: (typeof seen)[number]) =>
          type === 'unknown' ? (data as { event_type: string }).event_type : id
        expect(seen.map(idOf)).toEqual(Array.from({ length: total }, (_, n) => name(n + 1)))
      }),
      { numRuns: 60 },
    )
  })
})
