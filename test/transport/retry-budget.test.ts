import { firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient } from '../../src/client.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest, TransportSettings } from '../../src/transport/transport.ts'
import { ImpatientScheduler } from '../support/impatient-scheduler.ts'
import { json, serve } from './server.ts'
import { Listener } from './stream-listener.ts'

const get: ApiRequest = { method: 'GET', path: '/v1/x', idempotent: true }

/** A service whose status a test changes, with a client of it in virtual time. `outage` is the status while it is down. */
async function setUp(outage = 503, settings: Partial<TransportSettings> = {}) {
  const service = { isDown: true, requests: 0, origin: '' }
  const { origin } = await serve((_request, response) => {
    service.requests += 1
    json(response, service.isDown ? outage : 200, { events: [] }, { 'retry-after': '1' })
  })
  service.origin = origin
  const scheduler = new ImpatientScheduler()
  const transport = createTransport({ baseUrl: origin, apiKey: 'k', scheduler, ...settings })
  /** Makes requests, of which each fails after its retries, and returns how many arrived. */
  const fail = async (count: number, request = get) => {
    const before = service.requests
    const failures = Array.from({ length: count }, () => transport.request(request).catch(() => {}))
    await Promise.all(failures)
    return service.requests - before
  }
  return { service, transport, fail }
}

describe('the retries of all requests of a client', () => {
  it('are 500 while none succeeds, and each request still has its first attempt', async () => {
    const { fail } = await setUp(503, { retries: 100 })

    expect(await fail(10)).toBe(10 + 500)
    expect(await fail(10)).toBe(10)
  })

  it('grow by one with every five successes', async () => {
    const { service, transport, fail } = await setUp(503, { retries: 500 })
    await fail(1)
    service.isDown = false
    for (let successes = 0; successes < 14; successes++) await transport.request(get)
    service.isDown = true

    expect(await fail(10)).toBe(10 + 2)
  })

  it('are never more than 500 at once, however many requests have succeeded', async () => {
    const { service, transport, fail } = await setUp(503, { retries: 1_000 })
    service.isDown = false
    for (let successes = 0; successes < 5; successes++) await transport.request(get)
    service.isDown = true

    expect(await fail(1)).toBe(1 + 500)
  })

  it('count the streamed answers too, which fail with the error of their only attempt', async () => {
    const { service, transport, fail } = await setUp(503, { retries: 500 })
    await fail(1)
    const sink = new Listener()
    const before = service.requests

    transport.answer(get, sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ name: 'ServerError', status: 503, retryable: true })
    expect(service.requests - before).toBe(1)
  })

  it('do not count those of a quota, whose queue is paused by a 429', async () => {
    const { fail } = await setUp(429, { retries: 300 })

    expect(await fail(2, { ...get, quota: 'search' })).toBe(602)
    expect(await fail(1)).toBe(301)
  })

  it('do not limit how often a poll reconnects', async () => {
    const event = {
      event_type: 'event_stream',
      event_id: 'e1',
      event_group_id: 'x',
      event_date: null,
      output: {},
    }
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      if (requests <= 700) json(response, 503, {})
      else json(response, 200, { events: [event] })
    })
    const client = createClient({ baseUrl: origin, apiKey: 'k', scheduler: new ImpatientScheduler() })

    const first = await firstValueFrom(client.monitors.follow('m'))

    expect(first).toMatchObject({ id: 'e1' })
  })
})
