import { getEventListeners } from 'node:events'
import { gzipSync } from 'node:zlib'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { ConnectionError, ProtocolError } from '../../src/transport/errors.ts'
import { createExchange as createFetchExchange } from '../../src/transport/fetch-exchange.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest, RetryInfo, TransportSettings } from '../../src/transport/transport.ts'
import { createExchange as createUndiciExchange } from '../../src/transport/undici-exchange.ts'
import { bodyOf, closedOrigin, json, serve } from './server.ts'
import { ImpatientScheduler } from '../support/impatient-scheduler.ts'

const apiKey = 'key-0123456789-secret'
const get: ApiRequest = { method: 'GET', path: '/v1/x', idempotent: true }
const post: ApiRequest = { method: 'POST', path: '/v1/x', body: { a: 1 }, idempotent: false }

describe.each([
  { name: 'undici', createExchange: createUndiciExchange },
  { name: 'fetch', createExchange: createFetchExchange },
])('request over $name', ({ createExchange }) => {
  const transportTo = (baseUrl: string, settings: Partial<TransportSettings> = {}) =>
    createTransport({
      baseUrl,
      apiKey,
      exchange: createExchange(),
      scheduler: new ImpatientScheduler(),
      ...settings,
    })

  /** The error of a request. */
  const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => expect.unreachable('the request was answered'),
      (error: unknown) => error,
    )

  it('sends key, headers, betas, query and JSON, and reads the response', async () => {
    const { origin } = await serve(async (request, response) => {
      const body: unknown = JSON.parse(await bodyOf(request))
      json(response, 200, { method: request.method, url: request.url, headers: request.headers, body })
    })
    const transport = transportTo(origin, { headers: { 'X-Team': 'one', 'service-beta': 'zero' } })

    const answer = await transport.request({
      method: 'POST',
      path: '/v1/a%2Fb',
      query: { q: 'ä b', list: ['x', 'y'], n: 1, yes: true, none: undefined, nil: null },
      body: { text: 'ß' },
      headers: { 'x-trace': 't' },
      betas: ['webhook-2025-08-12', 'other'],
      idempotent: true,
    })

    expect(answer.status).toBe(200)
    expect(answer.header('content-type')).toBe('application/json')
    expect(answer.body).toMatchObject({
      method: 'POST',
      url: '/v1/a%2Fb?q=%C3%A4+b&list=x&list=y&n=1&yes=true',
      headers: {
        'x-api-key': apiKey,
        'x-team': 'one',
        'x-trace': 't',
        'service-beta': 'zero,webhook-2025-08-12,other',
        'content-type': 'application/json',
        accept: 'application/json',
      },
      body: { text: 'ß' },
    })
  })

  it('uses the configured name of the beta header', async () => {
    const { origin } = await serve((request, response) => json(response, 200, request.headers))

    const { body } = await transportTo(origin, { betaHeader: 'X-Beta' }).request({ ...get, betas: ['b'] })

    expect(body).toMatchObject({ 'x-beta': 'b' })
    expect(body).not.toHaveProperty('service-beta')
  })

  it('sends no body and no content type where there is none', async () => {
    const { origin } = await serve(async (request, response) => {
      json(response, 200, { text: await bodyOf(request), type: request.headers['content-type'] ?? null })
    })

    const { body } = await transportTo(origin).request({ method: 'POST', path: '/', idempotent: true })

    expect(body).toEqual({ text: '', type: null })
  })

  it.each(['/api', '/api/', '/a/b'])('keeps the prefix %s of the base URL', async (prefix) => {
    const { origin } = await serve((request, response) => json(response, 200, request.url))

    const { body } = await transportTo(origin + prefix).request({ ...get, query: { a: 1 } })

    expect(body).toBe(`${prefix.replace(/\/$/, '')}/v1/x?a=1`)
  })

  it.each([204, 200, 202])('accepts an empty %i as a response without a body', async (status) => {
    const { origin } = await serve((_request, response) => response.writeHead(status).end())

    const answer = await transportTo(origin).request({ ...post, mayBeEmpty: true })

    expect(answer).toMatchObject({ status, body: undefined })
  })

  it.each([
    [204, {}, '', '204 and no content where JSON was expected'],
    [202, {}, '', '202 and no content where JSON was expected'],
    [200, { 'content-type': 'application/json' }, '', '200 and application/json where JSON was expected'],
    [
      200,
      { 'content-type': 'text/html' },
      '<p>Sign in!</p>',
      'text/html where JSON was expected: "<p>Sign in!</p>"',
    ],
    [200, { 'content-type': 'image/png' }, 'PNG', '200 and image/png where JSON was expected'],
  ])('refuses a %i with %o that is not JSON, after its retries', async (status, headers, body, expected) => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      response.writeHead(status, headers).end(body)
    })

    const error = await failureOf(transportTo(origin).request(get))

    expect(error).toBeInstanceOf(ProtocolError)
    expect(String(error)).toMatch(new RegExp(`${expected.replaceAll(/[?.]/g, '.')}$`))
    expect(requests).toBe(5)
  })

  it('reads compressed responses and other kinds of JSON', async () => {
    const { origin } = await serve((_request, response) => {
      const headers = {
        'content-type': 'application/problem+json; charset=utf-8',
        'content-encoding': 'gzip',
      }
      response.writeHead(200, headers).end(gzipSync('{"ä":"€"}'))
    })

    const { body } = await transportTo(origin).request(get)

    expect(body).toEqual({ ä: '€' })
  })

  it('skips a byte order mark', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('\uFEFF{"a":1}')
    })

    const { body } = await transportTo(origin).request(get)

    expect(body).toEqual({ a: 1 })
  })

  it.each([
    ['another content type', 'text/html', '<html></html>', 'text/html'],
    ['truncated JSON', 'application/json', '{"a":', '5 bytes that are not JSON'],
    [
      'a truncated character',
      'application/json',
      Buffer.from('1€').subarray(0, 2),
      '2 bytes that are not JSON',
    ],
  ])('refuses %s as a ProtocolError', async (_what, type, body, expected) => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': type }).end(body)
    })

    const error = await failureOf(transportTo(origin, { retries: 0 }).request(get))

    expect(error).toBeInstanceOf(ProtocolError)
    expect(error).toMatchObject({ retryable: true, message: expect.stringContaining(expected) })
  })

  it.each([
    ['declared', { 'content-length': '2002' }],
    ['received', {}],
    ['decoded', { 'content-encoding': 'gzip' }],
  ])('stops at a response whose %s size exceeds the limit', async (how, headers) => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      const text = `"${'x'.repeat(2_000)}"`
      response.writeHead(200, { 'content-type': 'application/json', ...headers })
      response.end(how === 'decoded' ? gzipSync(text) : text)
    })

    const error = await failureOf(transportTo(origin, { maxBodyBytes: 1_000 }).request(get))

    expect(error).toBeInstanceOf(ProtocolError)
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining('1000 bytes') })
    expect(requests).toBe(1)
  })

  it('destroys the socket of a response that never ends', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        while (response.write('"'.repeat(65_536))) continue
      }
      response.on('drain', more)
      more()
    })

    const error = await failureOf(transportTo(origin, { maxBodyBytes: 1_000_000 }).request(get))
    await closed.promise

    expect(error).toBeInstanceOf(ProtocolError)
  })

  it.each([301, 302, 303, 307, 308])(
    'does not follow a %i, which would send the key elsewhere',
    async (status) => {
      const elsewhere: unknown[] = []
      const other = await serve((request, response) => {
        elsewhere.push(request.headers)
        json(response, 200, {})
      })
      const { origin } = await serve((_request, response) => {
        response.writeHead(status, { location: `${other.origin}/v1/x` }).end()
      })

      const error = await failureOf(transportTo(origin).request(get))

      expect(error).toBeInstanceOf(ProtocolError)
      expect(error).toMatchObject({ retryable: false })
      expect(elsewhere).toEqual([])
    },
  )

  it.each([
    [401, 1],
    [402, 1],
    [403, 1],
    [404, 1],
    [408, 3],
    [409, 1],
    [422, 1],
    [429, 3],
    [500, 3],
    [502, 3],
    [503, 3],
    [504, 3],
  ])('sends a read with the response %i %i times', async (status, times) => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      json(response, status, { type: 'error', error: { ref_id: `ref-${requests}`, message: 'no' } })
    })

    const error = await failureOf(transportTo(origin, { retries: 2 }).request(get))

    expect(requests).toBe(times)
    expect(error).toMatchObject({ status, ref_id: `ref-${times}`, method: 'GET', path: '/v1/x' })
  })

  it.each([
    [408, 1],
    [429, 3],
    [500, 1],
    [502, 1],
    [503, 3],
    [504, 1],
  ])('sends a write with the response %i %i times', async (status, times) => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      json(response, status, { type: 'error', error: { ref_id: `ref-${requests}`, message: 'no' } })
    })

    await failureOf(transportTo(origin, { retries: 2 }).request(post))

    expect(requests).toBe(times)
  })

  it("does not retry a write after a proxy's 503", async () => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      response.writeHead(503, { 'content-type': 'text/plain' }).end('upstream connect error')
    })

    const error = await failureOf(transportTo(origin, { retries: 2 }).request(post))

    expect(requests).toBe(1)
    expect(error).toMatchObject({ status: 503, taken: 'maybe' })
  })

  it('quotes an error page on one line, without characters that control a terminal', async () => {
    const page = `<h1>Bad\n gateway</h1>\u001B[2J\u202E${'x'.repeat(300)}`
    const { origin } = await serve((_request, response) => {
      response.writeHead(502, { 'content-type': 'text/html' }).end(page)
    })

    const message = String(await failureOf(transportTo(origin, { retries: 0 }).request(get)))

    expect(message).toContain('<h1>Bad gateway</h1> [2J xxx')
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(message.length).toBeLessThan(300)
  })

  it('reads the 422 of the task groups', async () => {
    const detail = [{ loc: ['body', 'inputs'], msg: 'too many', type: 'too_long' }]
    const { origin } = await serve((_request, response) => json(response, 422, { detail }))

    const error = await failureOf(transportTo(origin).request(post))

    expect(error).toMatchObject({ name: 'ValidationError', issues: detail, taken: 'no' })
  })

  it.each([
    ['is truncated', (response: { destroy(): unknown }) => response.destroy()],
    ['becomes idle', () => {}],
  ])('reports the status of an error response whose body %s', async (_how, then) => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(403, { 'content-length': '1000' })
      response.write('{"error":', () => then(response))
    })

    const error = await failureOf(transportTo(origin, { timeouts: { silence: 50 } }).request(get))

    expect(error).toMatchObject({ name: 'PermissionError', status: 403 })
  })

  it('reads only the beginning of an endless error body', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(404)
      const more = () => {
        while (response.write('x'.repeat(16_384))) continue
      }
      response.on('drain', more)
      more()
    })

    const error = await failureOf(transportTo(origin).request(get))
    await closed.promise

    expect(error).toMatchObject({ name: 'NotFoundError' })
  })

  it('succeeds after failures, with backoff and full jitter', async () => {
    const answers = [500, 502, 503, 200]
    const { origin } = await serve((_request, response) => json(response, answers.shift() ?? 0, { ok: true }))
    const scheduler = new ImpatientScheduler()
    const retries: RetryInfo[] = []
    const transport = transportTo(origin, {
      scheduler,
      backoff: { initialDelay: 1_000, maxDelay: 3_000 },
      random: () => 0.5,
      onRetry: (info) => retries.push(info),
    })

    const { body } = await transport.request({ ...get, query: { a: 1 } })

    expect(body).toEqual({ ok: true })
    expect(retries.map(({ attempt, delay }) => [attempt, delay])).toEqual([
      [1, 500],
      [2, 1_000],
      [3, 1_500],
    ])
    expect(retries[0]).toMatchObject({ method: 'GET', path: '/v1/x?a=1', error: { status: 500 } })
    expect(scheduler.now()).toBe(3_000)
  })

  it.each([
    ['seconds', '7', 7_000],
    ['a date', 'Sun, 06 Nov 1994 08:49:37 GMT', 37_000],
  ])('waits for a Retry-After in %s', async (_form, value, delay) => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      const headers = { 'retry-after': value, date: 'Sun, 06 Nov 1994 08:49:00 GMT' }
      json(response, requests === 1 ? 429 : 200, {}, headers)
    })
    const scheduler = new ImpatientScheduler()

    await transportTo(origin, { scheduler }).request(post)

    expect(scheduler.now()).toBe(delay)
  })

  it.each([
    ['0', 'POST'],
    ['0.001', 'GET'],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 'POST'],
  ])('backs off where Retry-After is %s', async (value, method) => {
    const { origin } = await serve((_request, response) =>
      json(response, 429, {}, { 'retry-after': value, date: 'Sun, 06 Nov 1994 08:49:00 GMT' }),
    )
    const scheduler = new ImpatientScheduler()
    const backoff = { initialDelay: 500, maxDelay: 1_500 }
    const transport = transportTo(origin, { scheduler, backoff, retries: 3, random: () => 1 })

    await failureOf(transport.request(method === 'POST' ? { ...post, quota: 'search' } : get))

    expect(scheduler.now()).toBe(500 + 1_000 + 1_500)
  })

  it('reports a Retry-After that it did not wait for', async () => {
    const { origin } = await serve((_request, response) => json(response, 429, {}, { 'retry-after': '9' }))

    const error = await failureOf(transportTo(origin, { retries: 0 }).request(get))

    expect(error).toMatchObject({ name: 'RateLimitError', retryAfter: 9_000 })
  })

  it('retries even a write where no connection was made', async () => {
    const retries: RetryInfo[] = []
    const transport = transportTo(await closedOrigin(), { retries: 3, onRetry: (info) => retries.push(info) })

    const error = await failureOf(transport.request(post))

    expect(error).toBeInstanceOf(ConnectionError)
    expect(error).toMatchObject({ reason: 'refused', taken: 'no' })
    expect(retries).toHaveLength(3)
  })

  it.each([
    ['read', get, 2],
    ['write', post, 1],
  ])('retries a %s after a truncated response only if it is idempotent', async (_kind, request, times) => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
      response.write('{', () => response.destroy())
    })

    const error = await failureOf(transportTo(origin, { retries: 1 }).request(request))

    expect(requests).toBe(times)
    expect(error).toMatchObject({ name: 'ConnectionError', reason: 'broken', taken: 'maybe' })
  })

  it('uses the timeouts of a request', async () => {
    const { origin } = await serve(() => {})

    const error = await failureOf(
      transportTo(origin, { retries: 0 }).request({ ...get, timeouts: { headers: 30 } }),
    )

    expect(error).toMatchObject({ reason: 'headers_timeout', message: expect.stringContaining('30 ms') })
  })

  it('leaves no listener on the signal, with or without a response', async () => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      json(response, requests % 3 === 0 ? 200 : 503, {})
    })
    const { signal } = new AbortController()

    await transportTo(origin, { retries: 2 }).request(get, signal)
    const answered = getEventListeners(signal, 'abort').length
    await failureOf(transportTo(origin, { retries: 1 }).request(get, signal))

    expect([requests, answered, getEventListeners(signal, 'abort').length]).toEqual([5, 0, 0])
  })

  it('sends nothing with an aborted signal', async () => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      json(response, 200, {})
    })
    const reason = new Error('changed my mind')

    const error = await failureOf(transportTo(origin).request(get, AbortSignal.abort(reason)))

    expect(error).toBe(reason)
    expect(requests).toBe(0)
  })

  it("destroys the socket when the signal aborts, and rejects with the signal's reason", async () => {
    const [arrived, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{', () => arrived.resolve())
    })
    const controller = new AbortController()
    const failure = failureOf(transportTo(origin).request(get, controller.signal))
    await arrived.promise

    controller.abort('a reason that is no error')
    await closed.promise

    expect(await failure).toBe('a reason that is no error')
  })

  it('stops waiting when the signal aborts between two attempts', async () => {
    let requests = 0
    const { origin } = await serve((_request, response) => {
      requests += 1
      json(response, 503, {})
    })
    const controller = new AbortController()
    const reason = new Error('enough')
    const scheduler = new VirtualTimeScheduler()
    const transport = transportTo(origin, {
      scheduler,
      onRetry: () => queueMicrotask(() => controller.abort(reason)),
    })

    const error = await failureOf(transport.request(get, controller.signal))

    expect(error).toBe(reason)
    expect(scheduler.actions).toEqual([])
    expect(requests).toBe(1)
  })

  it('does not start a delay when the signal aborts right before', async () => {
    const { origin } = await serve((_request, response) => json(response, 503, {}))
    const controller = new AbortController()
    const transport = transportTo(origin, {
      scheduler: new VirtualTimeScheduler(),
      onRetry: () => controller.abort('enough'),
    })

    expect(await failureOf(transport.request(get, controller.signal))).toBe('enough')
  })
})
