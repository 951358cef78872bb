import { asyncScheduler, lastValueFrom, Subject, take, tap, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient, createMonitorClient } from 'rivulet'
import type { Diagnostic } from 'rivulet'
import type { Exchange } from '../../../src/transport/exchange.ts'
import { createExchange } from '../../../src/transport/fetch-exchange.ts'
import { pageOf } from '../../support/monitor-page.ts'
import { answer, queryOf, serve } from '../../support/serve.ts'
import { settled } from '../../support/settled.ts'

/** A monitor's list, paginated by offset, which a test changes meanwhile. */
async function monitorOf(
  count: number,
  options: {
    onPage?: (page: number) => void
    fail?: (page: number) => number | undefined
    exchange?: Exchange
  } = {},
) {
  const list: string[] = []
  const add = (id: string) => list.unshift(id)
  for (let n = 1; n <= count; n++) add(`e${n}`)
  let pages = 0
  let connections = 0
  const baseUrl = await serve(
    (request, response) => {
      pages += 1
      const status = options.fail?.(pages)
      if (status !== undefined) {
        return answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, status)
      }
      const page = pageOf(list, request)
      options.onPage?.(pages)
      answer(response, page)
    },
    () => connections++,
  )
  const { exchange } = options
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0, exchange })
  const traffic = () => ({ requests: pages, connections })
  return { client, list, add, traffic }
}

const names = (count: number) => Array.from({ length: count }, (_, n) => `e${n + 1}`)

describe('monitors.events', () => {
  it('walks all pages, newest first, and completes', async () => {
    const { client } = await monitorOf(11)

    const events = await lastValueFrom(client.monitors.events('m', { limit: 3 }).pipe(toArray()))

    expect(events.map(({ id }) => id)).toEqual(names(11).toReversed())
    expect(events[0]).toMatchObject({
      source: '/v1/monitors/m',
      type: 'monitor.event_stream',
      via: 'poll',
      time: null,
    })
  })

  it('errors if the pages repeat a cursor', async () => {
    const baseUrl = await serve((_request, response) =>
      answer(response, { events: [], next_cursor: 'again' }),
    )
    const client = createClient({ baseUrl, apiKey: 'key' })

    const events = lastValueFrom(client.monitors.events('m').pipe(toArray()))

    await expect(events).rejects.toMatchObject({ name: 'ProtocolError', path: '/v1/monitors/m/events' })
  })

  it("reports the service's warnings", async () => {
    const warnings = [{ type: 'warning', message: 'short of breath' }]
    const baseUrl = await serve((_request, response) => answer(response, { events: [], warnings }))
    const client = createClient({ baseUrl, apiKey: 'key' })
    const seen: Diagnostic[] = []
    client.diagnostics.subscribe((diagnostic) => seen.push(diagnostic))

    await lastValueFrom(client.monitors.events('m').pipe(toArray()))

    expect(seen).toEqual([{ kind: 'warnings', source: '/v1/monitors/m', warnings }])
  })
})

describe('monitors.follow', () => {
  it.each<[string, string, string]>([
    ['a page of HTML', 'text/html', '<p>'],
    ['no list', 'application/json', '{"events":null}'],
    ['cut', 'application/json', '{"events":['],
  ])('errors after five invalid responses in a row: %s', async (_what, type, body) => {
    // Two pages: a valid page resets the count even without events.
    const script = ['wrong', 'wrong', 'wrong', 'wrong', 'first', 'wrong', 'wrong', 'wrong', 'wrong', 'last']
    let requested = 0
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/events')) return answer(response, { status: 'active' })
      requested += 1
      const step = script.shift()
      if (step === 'first') return answer(response, { events: [], next_cursor: 'older' })
      const event = { event_id: 'e1', event_group_id: 'x', event_date: null, output: {} }
      if (step === 'last') return answer(response, { events: [event] })
      response.writeHead(200, { 'content-type': type }).end(body)
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0 })
    const seen: string[] = []

    const events = client.monitors.follow('m', { pollInterval: 0 }).pipe(tap(({ id }) => seen.push(id)))

    await expect(lastValueFrom(events)).rejects.toMatchObject({ name: 'ProtocolError', retryable: true })
    expect(seen).toEqual(['e1'])
    expect(requested).toBe(4 + 1 + 4 + 1 + 5)
  })

  it('emits many pages oldest first, then each new event once', async () => {
    const { client, add } = await monitorOf(7)
    const wake = new Subject<void>()
    const seen: string[] = []

    await new Promise<void>((resolve, reject) => {
      const subscription = client.monitors
        .follow('m', { limit: 2, pollInterval: 3_600_000, wake })
        .subscribe({
          next: ({ id }) => {
            seen.push(id)
            if (id === 'e7') {
              for (const n of [8, 9, 10, 11, 12]) add(`e${n}`)
              wake.next()
            }
            if (id === 'e12') {
              subscription.unsubscribe()
              resolve()
            }
          },
          error: reject,
        })
    })

    expect(seen).toEqual(names(12))
  })

  it('requests no page after the one with a known event', async () => {
    // With `fetch`, a cancelled request closes its connection, even one that was never sent.
    const exchange = createExchange()
    let requested = 0
    const { client, add, traffic } = await monitorOf(7, {
      exchange: (...call) => {
        requested += 1
        return exchange(...call)
      },
    })
    const wake = new Subject<void>()
    const events = client.monitors.follow('m', { limit: 2, pollInterval: Infinity, wake })

    await lastValueFrom(
      events.pipe(
        tap(({ id }) => {
          const n = Number(id.slice(1))
          if (n < 7) return
          add(`e${n + 1}`)
          wake.next()
        }),
        take(12),
      ),
    )

    // Four pages of two at first, then one for each of the five new events.
    expect({ requested, ...traffic() }).toEqual({
      requested: 9,
      requests: 9,
      connections: expect.toBeOneOf([1, 2]),
    })
  })

  it('neither loses nor repeats events that appear while it walks the pages', async () => {
    let reported = 8
    const monitor = await monitorOf(8, {
      onPage: (page) => {
        if (page <= 3) monitor.add(`e${++reported}`)
      },
    })

    const events = monitor.client.monitors.follow('m', { limit: 3, pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(11), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(names(11))
  })

  it('resumes after the given event', async () => {
    const { client } = await monitorOf(9)

    const events = client.monitors.follow('m', { after: 'e6', limit: 2, pollInterval: 3_600_000 })
    const seen = await lastValueFrom(events.pipe(take(3), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(['e7', 'e8', 'e9'])
  })

  it('emits one gap if the service no longer has the last event', async () => {
    const { client } = await monitorOf(3)

    const events = client.monitors.follow('m', { after: 'forgotten', limit: 2, pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(4), toArray()))

    expect(seen.map(({ type }) => type)).toEqual([
      'stream.gap',
      ...Array<string>(3).fill('monitor.event_stream'),
    ])
    expect(seen[0]).toMatchObject({ source: '/v1/monitors/m', data: { from: null, to: null } })
  })

  it('is not stopped by an unknown event with the content of an earlier one', async () => {
    const event = (event_id: string) => ({
      event_type: 'event_stream',
      event_id,
      event_group_id: 'x',
      output: {},
    })
    const odd = { event_type: 'dreamt' }
    const lists = [
      [odd, event('e1')],
      [odd, event('e3'), event('e2'), odd, event('e1')],
    ]
    let polls = 0
    const baseUrl = await serve((_request, response) => {
      polls += 1
      answer(response, { events: lists[Math.min(polls, lists.length) - 1] })
    })
    const client = createClient({ baseUrl, apiKey: 'key' })

    const events = client.monitors.follow('m', { pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(4), toArray()))

    expect(seen.map(({ type, id }) => (type === 'unknown' ? type : id))).toEqual([
      'e1',
      'unknown',
      'e2',
      'e3',
    ])
  })

  it('keeps the order if cursors are offsets and events appear while it walks the pages', async () => {
    const list = names(4).toReversed()
    const baseUrl = await serve((request, response) => {
      const start = Number(queryOf(request).get('cursor') ?? 0)
      const end = start + 2
      const page = list.slice(start, end)
      if (list.length === 4) list.unshift('e7', 'e6', 'e5')
      const events = page.map((event_id) => ({
        event_type: 'event_stream',
        event_id,
        event_group_id: 'x',
        output: {},
      }))
      answer(response, { events, ...(end < list.length && { next_cursor: String(end) }) })
    })
    const client = createClient({ baseUrl, apiKey: 'key' })

    const events = client.monitors.follow('m', { pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(7), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(names(7))
  })

  it('emits no gap if only unknown events are listed', async () => {
    const odd = { event_type: 'dreamt' }
    const known = { event_type: 'event_stream', event_id: 'e1', event_group_id: 'x', output: {} }
    let polls = 0
    const baseUrl = await serve((_request, response) => {
      polls += 1
      answer(response, { events: polls < 3 ? [odd] : [known, odd] })
    })
    const client = createClient({ baseUrl, apiKey: 'key' })

    const events = client.monitors.follow('m', { pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(2), toArray()))

    expect(seen.map(({ type }) => type)).toEqual(['unknown', 'monitor.event_stream'])
  })

  it('walks again if the next page is rejected after one without new events', async () => {
    const odd = { event_type: 'dreamt' }
    const event = (event_id: string) => ({
      event_type: 'event_stream',
      event_id,
      event_group_id: 'x',
      output: {},
    })
    const script = [
      [200, { events: [odd], next_cursor: 'a' }],
      [200, { events: [event('e1')] }],
      [200, { events: [odd], next_cursor: 'b' }],
      [422, { type: 'error', error: { ref_id: 'r', message: 'invalid cursor' } }],
      [200, { events: [event('e2'), odd] }],
    ] as const
    let requests = 0
    const baseUrl = await serve((_request, response) => {
      const [status, body] = script[Math.min(requests, script.length - 1)] ?? [500, {}]
      requests += 1
      answer(response, body, status)
    })
    const client = createClient({ baseUrl, apiKey: 'key' })

    const events = client.monitors.follow('m', { pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(3), toArray()))

    expect(seen.map(({ type, id }) => (type === 'unknown' ? type : id))).toEqual(['e1', 'unknown', 'e2'])
  })

  it('walks again if the service rejects the next cursor', async () => {
    const { client } = await monitorOf(6, { fail: (page) => (page === 2 || page === 4 ? 422 : undefined) })

    const events = client.monitors.follow('m', { limit: 2, pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(6), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(names(6))
  })

  it('retries failed polls without losing an event', async () => {
    const { client } = await monitorOf(6, { fail: (page) => (page % 2 === 0 && page < 12 ? 503 : undefined) })

    const events = client.monitors.follow('m', { limit: 2, pollInterval: 0 })
    const seen = await lastValueFrom(events.pipe(take(6), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(names(6))
  })
})

describe('monitors.follow of a monitor that was cancelled', () => {
  /** A monitor with one event, whose status a test sets. */
  async function cancellable(state: {
    status: unknown
    code?: number
    onStatus?: (add: (id: string) => void) => void
  }) {
    const list = ['e1']
    const requested = { events: 0, status: 0 }
    const monitor = { monitor_id: 'm', type: 'event_stream', frequency: '1h' }
    const baseUrl = await serve((request, response) => {
      if ((request.url ?? '').includes('/events')) {
        requested.events += 1
        return answer(response, pageOf(list, request))
      }
      requested.status += 1
      state.onStatus?.((id) => list.unshift(id))
      answer(response, { ...monitor, status: state.status }, state.code)
    })
    const times = { now: 0 }
    const scheduler = { now: () => times.now, schedule: asyncScheduler.schedule.bind(asyncScheduler) }
    const client = createClient({ baseUrl, apiKey: 'key', retries: 0, scheduler })
    return { client, requested, times, monitor }
  }

  it('emits monitor.cancelled after a poll without events, and completes', async () => {
    const { client, requested, monitor } = await cancellable({ status: 'cancelled' })

    const seen = await lastValueFrom(client.monitors.follow('m', { pollInterval: 0 }).pipe(toArray()))

    expect(seen.map(({ type }) => type)).toEqual(['monitor.event_stream', 'monitor.cancelled'])
    expect(seen[1]).toMatchObject({
      id: 'm:cancelled',
      source: '/v1/monitors/m',
      via: 'poll',
      data: { ...monitor, status: 'cancelled' },
    })
    expect(requested).toEqual({ events: 3, status: 1 })
  })

  it('first emits the events between the last poll and the cancellation', async () => {
    const { client } = await cancellable({ status: 'cancelled', onStatus: (add) => add('e2') })

    const seen = await lastValueFrom(client.monitors.follow('m', { pollInterval: 0 }).pipe(toArray()))

    expect(seen.map(({ id }) => id)).toEqual(['e1', 'e2', 'm:cancelled'])
  })

  it.each([
    ['active', 200],
    [null, 200],
    ['cancelled', 404],
    ['cancelled', 503],
  ])('is checked every ten minutes, and otherwise continues: %j, %i', async (status, code) => {
    const { client, requested, times } = await cancellable({ status, code })
    const steps: number[] = []

    await new Promise<void>((resolve, reject) => {
      const wake = new Subject<void>()
      const events = client.monitors.follow('m', { pollInterval: Infinity, wake })
      const subscription = events.subscribe({ error: reject, complete: () => reject(new Error('completed')) })
      onTestFinished(() => subscription.unsubscribe())
      void (async () => {
        for (const now of [0, 0, 599_999, 600_000, 600_001, 1_200_000]) {
          times.now = now
          const before = requested.events
          wake.next()
          await settled(() => requested.events - before)
          steps.push(requested.status)
        }
        resolve()
      })()
    })

    expect(steps.at(-1)).toBe(3)
    expect(steps.indexOf(2)).toBe(3)
  })
})

it('a client of monitors alone follows, reports and checks as one of all areas does', async () => {
  const list = ['e1', 'e2']
  let requests = 0
  const baseUrl = await serve((request, response) => {
    requests += 1
    if (requests === 1) answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, 503)
    else answer(response, pageOf(list, request))
  })
  const { monitors, diagnostics, observe } = createMonitorClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
  const reported: string[] = []
  const observed: string[] = []
  const reporting = diagnostics.subscribe(({ kind }) => void reported.push(kind))
  const stop = observe({ request: ({ path }) => void observed.push(path) })
  const events = await lastValueFrom(monitors.follow('m').pipe(take(2), toArray()))
  stop()
  reporting.unsubscribe()

  expect(events.map(({ id }) => id).toSorted()).toEqual(list)
  expect(reported).toContain('retry')
  expect(observed).toHaveLength(2)
  expect(() => createMonitorClient(Object({ baseUrl, apiKey: null, retires: 1 }))).toThrow(/retries/)
})
