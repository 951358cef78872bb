import { pino } from 'pino'
import { defer, firstValueFrom, lastValueFrom, of, toArray } from 'rxjs'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ApiError, ArgumentError, ConnectionError, createClient, NotFoundError } from 'rivulet'
import type { ClientOptions, Logger } from 'rivulet'
import type { Exchange } from 'rivulet/transport'
import { reconnect } from 'rivulet/operators'
import { bodyOf, json, serve } from '../transport/server.ts'

const apiKey = 'key-0123456789-secret'
const nowhere = { baseUrl: 'http://127.0.0.1:1', apiKey }

// What a user without a type checker could write.
// oxlint-disable-next-line typescript/no-explicit-any
type Untyped = any

afterEach(() => {
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
})

describe('an unknown option', () => {
  const client = createClient(nowhere)

  it.each<[string, string, (options: Untyped) => unknown]>([
    ['apikey', 'apiKey', (options) => createClient({ ...nowhere, ...options })],
    ['baseURL', 'baseUrl', (options) => createClient(options)],
    ['maxRetries', 'retries', (options) => createClient({ ...nowhere, ...options })],
    ['header', 'headers', (timeouts) => createClient({ ...nowhere, timeouts })],
    ['querry', 'query', (options) => client.get('/v1/x', options)],
    ['idempotant', 'idempotent', (options) => client.post('/v1/x', {}, options)],
    ['onretry', 'onRetry', (options) => client.stream('/v1/x', options)],
  ])('%s is refused at the call, with %s as a suggestion', (name, meant, call) => {
    const refused = () => call({ [name]: apiKey })

    expect(refused).toThrow(ArgumentError)
    expect(refused).toThrow(
      expect.objectContaining({ argument: name, message: expect.stringContaining(meant) }),
    )
    expect(refused).not.toThrow(apiKey)
  })

  it.each([
    ['logger', { logger: () => {} }],
    ['logger', { logger: { info() {} } }],
    ['fetch', { fetch: 'https://x.example' }],
    ['exchange', { exchange: {} }],
    ['exchange', { exchange: () => {}, fetch: () => {} }],
  ])('is refused as an invalid %s', (argument, wrong) => {
    const options: Untyped = { ...nowhere, ...wrong }

    expect(() => createClient(options)).toThrow(expect.objectContaining({ argument }))
  })
})

describe('the address', () => {
  it.each([
    [
      'research.example',
      'baseUrl must be an http or https URL, such as https://research.example, got a string (not shown)',
    ],
    ['https://me:sesame@research.example/a', 'got "https://research.example/a" (without its credentials)'],
    ['', 'got an empty string'],
  ])('%s is refused, showing only its safe parts', (baseUrl, message) => {
    expect(() => createClient({ baseUrl, apiKey })).toThrow(message)
    expect(() => createClient({ baseUrl, apiKey })).not.toThrow('sesame')
  })

  it('may be a path in a browser', async () => {
    const { origin } = await serve((request, response) => json(response, 200, { url: request.url }))
    vi.stubGlobal('location', new URL(`${origin}/app/page?x=1#top`))

    const answer = await createClient({ baseUrl: '/api/', apiKey }).get('/v1/x')

    expect(answer).toEqual({ url: '/api/v1/x' })
  })

  it.each(['//evil.example', '/\\evil.example', '/\t/evil.example', 'api', './api', '/a?b', '/a#b'])(
    'is never another host, nor a path with more than itself: %j',
    (baseUrl) => {
      vi.stubGlobal('location', new URL('https://page.example/app/'))

      expect(() => createClient({ baseUrl, apiKey })).toThrow(ArgumentError)
    },
  )

  it('is refused as a path outside of a browser', () => {
    expect(() => createClient({ baseUrl: '/api', apiKey })).toThrow(
      'a path is resolved against the address of a page, which only a browser has, got "/api"',
    )
  })
})

describe('a client without a key', () => {
  it('sends none', async () => {
    vi.stubEnv('RIVULET_API_KEY', apiKey)
    const { origin } = await serve((request, response) => json(response, 200, request.headers))

    const sent = await createClient({ baseUrl: origin, apiKey: null }).get('/v1/x')

    expect(sent).not.toHaveProperty('x-api-key')
  })

  it('is created only with an explicit null', () => {
    vi.stubEnv('RIVULET_API_KEY', '')

    expect(() => createClient({ baseUrl: 'http://127.0.0.1:1' })).toThrow(
      'apiKey must be given (null for none), or set as RIVULET_API_KEY in the environment',
    )
    expect(() => createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: '' })).toThrow('got an empty string')
  })

  it('may use plain http to a gateway, unless a header may be secret', () => {
    const gateway = { baseUrl: 'http://gateway.internal', apiKey: null }

    expect(() => createClient(gateway)).not.toThrow()
    expect(() => createClient({ ...gateway, headers: { authorization: 'Bearer abcdefgh' } })).toThrow(
      'allowInsecure',
    )
  })
})

describe('a custom fetch', () => {
  /** A response whose body has one message and never ends. */
  function streaming() {
    const { promise: response, resolve } = Promise.withResolvers<Response>()
    const { promise: cancelled, resolve: cancel } = Promise.withResolvers<unknown>()
    const answer = () => {
      const start = (controller: ReadableStreamDefaultController) =>
        controller.enqueue(new TextEncoder().encode('data: one\n\n'))
      const headers = { 'content-type': 'text/event-stream' }
      resolve(new Response(new ReadableStream({ start, cancel }), { headers }))
    }
    return { response, answer, cancelled }
  }

  it('makes the requests, streams too', async () => {
    const { origin } = await serve((request, response) => {
      if (request.headers.accept === 'text/event-stream')
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: one\n\n')
      else json(response, 200, { through: request.headers['x-through'] })
    })
    const client = createClient({
      baseUrl: origin,
      apiKey,
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...Object(init.headers), 'x-through': 'proxy' } }),
    })

    expect(await client.get('/v1/x')).toEqual({ through: 'proxy' })
    expect(await firstValueFrom(client.stream('/v1/x'))).toMatchObject({ data: 'one' })
  })

  it('that ignores the signal has its body cancelled, whether it arrives before the abort or after', async () => {
    const [early, late] = [streaming(), streaming()]
    const fetcher = (url: string) => (url.endsWith('/early') ? early : late).response
    const client = createClient({ baseUrl: 'https://x.example', apiKey, fetch: fetcher })

    const first = firstValueFrom(client.stream('/v1/early'))
    early.answer()
    await first
    client.stream('/v1/late').subscribe().unsubscribe()
    late.answer()

    await expect(Promise.all([early.cancelled, late.cancelled])).resolves.toBeDefined()
  })

  it.each<[string, Untyped]>([
    [
      'throws',
      () => {
        throw new Error('no network')
      },
    ],
    ['answers with nothing', () => undefined],
    ['answers with something other than a Response', () => ({ status: 200 })],
    [
      'answers with text for bytes',
      () => ({
        status: 200,
        headers: new Headers({ 'content-type': 'application/json' }),
        body: { getReader: () => ({ read: async () => ({ done: false, value: 'text' }) }) },
      }),
    ],
    [
      'answers with a body that is taken',
      () => {
        const response = new Response('{}')
        response.body?.getReader()
        return response
      },
    ],
  ])('that %s fails the request and nothing else', async (_what, fetcher) => {
    const client = createClient({ baseUrl: 'https://x.example', apiKey, fetch: fetcher, retries: 0 })

    await expect(client.get('/v1/x')).rejects.toBeInstanceOf(ConnectionError)
  })
})

it('accepts a custom exchange, with its types', async () => {
  const exchange: Exchange = ({ path }, sink) => {
    queueMicrotask(() => {
      sink.head(200, (name) => (name === 'content-type' ? 'application/json' : undefined))
      sink.chunk(new TextEncoder().encode(JSON.stringify({ path })))
      sink.end()
    })
    return { pause() {}, resume() {}, abort() {} }
  }

  expect(await createClient({ ...nowhere, exchange }).get('/v1/x')).toEqual({ path: '/v1/x' })
})

describe('a logger', () => {
  async function logged(logger: Logger, initialDelay = 0): Promise<void> {
    let requests = 0
    const { origin } = await serve((request, response) => {
      requests += 1
      if (requests === 1)
        json(response, 503, { error: { ref_id: 'r', message: `no ${request.headers['x-api-key']}` } })
      else json(response, 200, {})
    })
    const options: ClientOptions = { baseUrl: origin, apiKey, logger, initialDelay }
    await createClient(options).get('/v1/x')
  }

  it('logs a retry as a warning, without the key', async () => {
    const lines: unknown[] = []
    await logged(pino({ base: null, timestamp: false }, { write: (line) => lines.push(JSON.parse(line)) }))

    expect(lines).toEqual([
      {
        level: 40,
        method: 'GET',
        path: '/v1/x',
        attempt: 1,
        delay: 0,
        error: 'GET /v1/x: 503 no (not shown) (ref_id r)',
        code: 'server',
        msg: 'request failed, retrying',
      },
    ])
  })

  it("logs the service's warnings without the key, as diagnostics does", async () => {
    const { origin } = await serve((request, response) => {
      const warning = { type: 'warning', message: `${request.headers['x-api-key']} is old`, detail: null }
      const deep = `{"type":"warning","message":"deep","detail":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
      const warnings = `[null,"text",{"message":1},${deep},${JSON.stringify(warning)}]`
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{"events":[],"warnings":${warnings}}`)
    })
    const warn = vi.fn<(details: object, message: string) => void>()
    const client = createClient({
      baseUrl: origin,
      apiKey,
      logger: { debug: warn, info: warn, warn, error: warn },
    })
    const diagnostics: unknown[] = []
    client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))

    await lastValueFrom(client.monitors.events('m'), { defaultValue: undefined })

    const warnings = [{ type: 'warning', message: '(not shown) is old', detail: null }]
    expect(diagnostics).toEqual([{ kind: 'warnings', source: '/v1/monitors/m', warnings }])
    expect(warn.mock.calls).toEqual([[{ source: '/v1/monitors/m', type: 'warning' }, '(not shown) is old']])
  })

  it('logs delays in whole milliseconds', async () => {
    const warn = vi.fn<(details: object, message: string) => void>()
    await logged({ debug: warn, info: warn, warn, error: warn }, 1.5)

    const delay: unknown = expect.toSatisfy(Number.isInteger)
    expect(warn.mock.calls).toEqual([[expect.objectContaining({ delay }), expect.any(String)]])
  })

  it('that throws does not affect events', async () => {
    const warn = vi.fn<() => void>(() => {
      throw new Error('the disk is full')
    })
    await logged({ debug: warn, info: warn, warn, error: warn })

    expect(warn).toHaveBeenCalledOnce()
  })
})

describe('stream', () => {
  it('can be a POST with a body', async () => {
    const { origin } = await serve(async (request, response) => {
      const body = await bodyOf(request)
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`data: ${request.method} ${body}\n\ndata: [DONE]\n\n`)
    })

    const messages = createClient({ baseUrl: origin, apiKey }).stream('/v1beta/chat/completions', {
      method: 'POST',
      body: { stream: true },
    })

    expect(await lastValueFrom(messages.pipe(toArray()))).toEqual([
      { data: 'POST {"stream":true}' },
      { data: '[DONE]' },
    ])
  })

  it('reports retry and an id without data, in order, so that reconnect can use both', async () => {
    const positions: (string | null)[] = []
    const { origin } = await serve((request, response) => {
      positions.push(new URL(request.url ?? '', origin).searchParams.get('after'))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (positions.length === 1) response.end('retry: 5\n\nid: 1\ndata: a\n\nid: 2\n\n')
      else response.end('id: 3\ndata: b\n\n')
    })
    const client = createClient({ baseUrl: origin, apiKey })
    const calls: unknown[] = []
    let position: string | undefined
    let delay: number | undefined
    const connection = defer(() =>
      client.stream('/v1/x', {
        query: { after: position },
        onId: (id) => calls.push({ id: (position = id) }),
        onRetry: (ms) => calls.push({ retry: (delay = ms) }),
      }),
    )

    const done = () => of(positions.length === 2)
    const messages = connection.pipe(reconnect({ done, serverDelay: () => delay }), toArray())
    const received = await lastValueFrom(messages)

    expect(received).toMatchObject([{ data: 'a' }, { data: 'b' }])
    expect(calls).toEqual([{ retry: 5 }, { id: '2' }])
    expect(positions).toEqual([null, '2'])
  })

  it('completes where there is no stream', async () => {
    const { origin } = await serve((_request, response) => response.writeHead(204).end())

    expect(
      await lastValueFrom(createClient({ baseUrl: origin, apiKey }).stream('/v1/x').pipe(toArray())),
    ).toEqual([])
  })

  it("errors with the error that a caller's function throws", async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('retry: 5\n\n')
    })
    const bug = new Error('a bug of the caller')
    const messages = createClient({ baseUrl: origin, apiKey }).stream('/v1/x', {
      onRetry: () => {
        throw bug
      },
    })

    await expect(lastValueFrom(messages)).rejects.toBe(bug)
  })

  it.each([
    ['method', { method: 'PUT' }],
    ['body', { body: {} }],
    ['onRetry', { onRetry: 5 }],
    ['onId', { onId: 'x' }],
  ])('refuses an invalid %s', (argument, wrong) => {
    const options: Untyped = wrong

    expect(() => createClient(nowhere).stream('/v1/x', options)).toThrow(
      expect.objectContaining({ argument }),
    )
  })
})

describe('an error in JSON', () => {
  it('has its message and its request', () => {
    const request = { method: 'GET', path: '/v1/x' }
    const refusal = {
      status: 404,
      problem: { ref_id: 'r', message: 'gone' },
      retryable: false,
      taken: 'no',
    } as const

    expect(JSON.parse(JSON.stringify({ error: new NotFoundError(request, refusal) }))).toEqual({
      error: {
        name: 'NotFoundError',
        code: 'not_found',
        message: 'GET /v1/x: 404 gone (ref_id r)',
        method: 'GET',
        path: '/v1/x',
        status: 404,
        ref_id: 'r',
        retryable: false,
      },
    })
    expect(JSON.parse(JSON.stringify(new ConnectionError('refused', 'no', request)))).toEqual({
      name: 'ConnectionError',
      code: 'connection',
      message: 'GET /v1/x: no',
      method: 'GET',
      path: '/v1/x',
      retryable: true,
    })
    expect(new NotFoundError(request, refusal)).toBeInstanceOf(ApiError)
  })
})
