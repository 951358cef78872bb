import type { IncomingMessage, ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ProtocolError } from '../../src/transport/errors.ts'
import { createExchange as createFetchExchange } from '../../src/transport/fetch-exchange.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest, TransportSettings } from '../../src/transport/transport.ts'
import { createExchange as createUndiciExchange } from '../../src/transport/undici-exchange.ts'
import { closedOrigin, json, serve } from './server.ts'
import { Listener, exchangeOf } from './stream-listener.ts'

const apiKey = 'key-0123456789-secret'
const get: ApiRequest = { method: 'GET', path: '/v1/stream', idempotent: true }

/** Opens an event stream on the server's side. */
function open(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
}

describe.each([
  { name: 'undici', createExchange: createUndiciExchange },
  { name: 'fetch', createExchange: createFetchExchange },
])('stream over $name', ({ createExchange }) => {
  const transportTo = (baseUrl: string, settings: Partial<TransportSettings> = {}) =>
    createTransport({ baseUrl, apiKey, exchange: createExchange(), ...settings })

  /** All calls that a stream makes on its sink. */
  async function listen(
    listener: (request: IncomingMessage, response: ServerResponse) => unknown,
    settings?: Partial<TransportSettings>,
  ): Promise<Listener> {
    const { origin } = await serve(listener)
    const sink = new Listener()
    transportTo(origin, settings).stream(get, sink)
    await sink.ended
    return sink
  }

  it('reports that it is open, each message, the retry delay, and the end', async () => {
    const sink = await listen((_request, response) => {
      open(response).end(
        'retry: 1500\n\nid: 1\nevent: a\ndata: one\n\n: a comment\n\ndata: two\ndata: lines\n\n',
      )
    })

    expect(sink.calls).toEqual(['open', 1500, 'one', 'two\nlines', 'end'])
    expect(sink.messages).toEqual([
      { id: '1', event: 'a', data: 'one' },
      { id: undefined, event: undefined, data: 'two\nlines' },
    ])
  })

  it('calls nothing before it has returned its flow', async () => {
    const sink = new Listener()
    transportTo(await closedOrigin()).stream(get, sink)

    expect(sink.calls).toEqual([])
    await sink.ended
    expect(sink.failure).toMatchObject({ reason: 'refused', path: '/v1/stream' })
  })

  it('requests an event stream with the key, also by POST', async () => {
    const { origin } = await serve((request, response) => {
      open(response).end(`data: ${JSON.stringify([request.method, request.url, request.headers])}\n\n`)
    })
    const sink = new Listener()

    transportTo(`${origin}/api`).stream(
      { ...get, method: 'POST', query: { last_event_id: '7' }, body: {} },
      sink,
    )
    await sink.ended

    expect(JSON.parse(sink.messages[0]?.data ?? '')).toMatchObject([
      'POST',
      '/api/v1/stream?last_event_id=7',
      { accept: 'text/event-stream', 'x-api-key': apiKey, 'accept-encoding': 'identity' },
    ])
  })

  it('is open before the first message arrives', async () => {
    const opened = Promise.withResolvers<void>()
    const { origin } = await serve((_request, response) => open(response).flushHeaders())
    const sink = new Listener()
    sink.open = () => opened.resolve()

    const flow = transportTo(origin).stream(get, sink)
    await opened.promise
    flow.abort()

    expect(sink.messages).toEqual([])
  })

  it.each([
    ['carriage returns', 'data: a\r\rdata: b\r\r'],
    ['both line ends', 'data: a\r\n\r\ndata: b\r\n\r\n'],
    ['a byte order mark', '\uFEFFdata: a\n\ndata: b\n\n'],
    ['unknown fields and a retry that is not a number', 'what: x\nretry: soon\ndata: a\n\ndata: b\n\n'],
  ])('reads a stream with %s', async (_what, text) => {
    const sink = await listen((_request, response) => open(response).end(text))

    expect(sink.calls).toEqual(['open', 'a', 'b', 'end'])
  })

  it('does not emit an event without its final blank line', async () => {
    const sink = await listen((_request, response) => open(response).end('data: whole\n\ndata: half\n'))

    expect(sink.calls).toEqual(['open', 'whole', 'end'])
  })

  it('decodes a character that is split over two chunks', async () => {
    const bytes = Buffer.from('data: 🌊\n\n')
    const first = Promise.withResolvers<void>()
    const { origin } = await serve(async (_request, response) => {
      open(response).write(Buffer.concat([Buffer.from('data: first\n\n'), bytes.subarray(0, 8)]))
      await first.promise
      response.end(bytes.subarray(8))
    })
    const sink = new Listener()

    transportTo(origin).stream(get, sink)
    await sink.begun
    first.resolve()
    await sink.ended

    expect(sink.calls).toEqual(['open', 'first', '🌊', 'end'])
  })

  it('reports a disconnect within a character as a broken connection, without a partial event', async () => {
    const sink = await listen((_request, response) => {
      const bytes = Buffer.from('data: one\n\ndata: 🌊')
      open(response).write(bytes.subarray(0, -2), () => response.destroy())
    })

    expect(sink.calls.filter((call) => call !== 'one')).toEqual(['open', 'error'])
    expect(sink.failure).toMatchObject({ reason: 'broken', retryable: true })
  })

  it('reports the idle timeout', async () => {
    const sink = await listen((_request, response) => open(response).write('data: one\n\n'), {
      timeouts: { silence: 40 },
    })

    expect(sink.calls).toEqual(['open', 'one', 'error'])
    expect(sink.failure).toMatchObject({ reason: 'silence', retryable: true })
  })

  it.each([
    ['another content type', 200, { 'content-type': 'text/html' }, 'text/html'],
    ['no content', 200, {}, '200 and no content'],
    ['JSON', 200, { 'content-type': 'application/json' }, '200 and application/json'],
    ['a 202', 202, { 'content-type': 'text/event-stream' }, '202 and text/event-stream'],
  ])('refuses %s as a ProtocolError', async (_what, status, headers, expected) => {
    const sink = await listen((_request, response) => response.writeHead(status, headers).end())

    expect(sink.calls).toEqual(['error'])
    expect(sink.failure).toBeInstanceOf(ProtocolError)
    expect(sink.failure?.message).toContain(expected)
  })

  it('quotes the body that came instead of a stream, without the key', async () => {
    const sink = await listen((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end(`<h1>Sign in</h1>\n <p>${apiKey} ${'x'.repeat(500)}</p>`)
    })

    expect(sink.calls).toEqual(['error'])
    expect(sink.failure).toMatchObject({
      name: 'ProtocolError',
      retryable: true,
      message:
        'GET /v1/stream: answered with 200 and text/html where an event stream was expected: "<h1>Sign in</h1> <p>(not shown) ' +
        `${'x'.repeat(167)}…"`,
    })
  })

  it('reports a body that came instead of a stream and never ends', async () => {
    const sink = await listen(
      (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).flushHeaders(),
      { timeouts: { silence: 40 } },
    )

    expect(sink.failure).toMatchObject({
      name: 'ProtocolError',
      message: expect.stringContaining('text/html'),
    })
  })

  it('reports a 204 as noContent, or as the end to a sink without noContent', async () => {
    const { origin } = await serve((_request, response) => response.writeHead(204).end())
    const [caring, other] = [new Listener(), new Listener()]
    const ended = Promise.withResolvers<void>()

    transportTo(origin).stream(
      get,
      Object.assign(caring, {
        noContent() {
          caring.calls.push('no content')
          ended.resolve()
        },
      }),
    )
    transportTo(origin).stream(get, other)
    await Promise.all([ended.promise, other.ended])

    expect(caring.calls).toEqual(['no content'])
    expect(other.calls).toEqual(['end'])
  })

  it('refuses cached responses', async () => {
    const sink = await listen((request, response) => {
      open(response).end(`data: ${request.headers['cache-control']}\n\n`)
    })

    expect(sink.messages[0]?.data).toBe('no-cache')
  })

  /** The calls of a stream with `rest` after its first event, on a sink with `endWithinEvent`. */
  async function closedBehind(rest: string | Uint8Array): Promise<unknown[]> {
    const { origin } = await serve((_request, response) => {
      open(response).write('data: one\n\n')
      response.end(rest)
    })
    const sink = new Listener()
    const calls: unknown[] = []
    const endWithinEvent = () => {
      calls.push('end within event')
      sink.end()
    }
    transportTo(origin).stream(get, Object.assign(sink, { endWithinEvent }))
    await sink.ended
    return [...sink.calls, ...calls]
  }

  it.each([
    'data: tw',
    'data: two\n',
    'data: two\r\n',
    'data: two\r',
    'id: 2\n',
    'id: 2',
    'event: a\n',
    'event: a',
    'dat',
    'data',
    'data\n',
    ': comment\ndata: two\n',
    Buffer.from('data: 🌊').subarray(0, -2),
  ])('reports a close within an event to a sink with endWithinEvent: %j', async (rest) => {
    expect(await closedBehind(rest)).toEqual(['open', 'one', 'end', 'end within event'])
  })

  it.each(['', '\n', '\r', ': bye', ': bye\n', 'retry: 5\n', ': bye\n\n', ':\r\n\r\n', 'data: two\r\r'])(
    'reports a close after an event as the end to that sink: %j',
    async (rest) => {
      const calls = await closedBehind(rest)
      expect(calls.filter((call) => call !== 5 && call !== 'two')).toEqual(['open', 'one', 'end'])
    },
  )

  it('does not follow a redirect', async () => {
    const sink = await listen((_request, response) => response.writeHead(302, { location: '/' }).end())

    expect(sink.failure).toBeInstanceOf(ProtocolError)
    expect(sink.failure).toMatchObject({ retryable: false })
  })

  it.each([
    [401, 'AuthenticationError', false],
    [404, 'NotFoundError', false],
    [429, 'RateLimitError', true],
    [503, 'ServerError', true],
  ])('reports a %i as %s, without a retry', async (status, errorName, retryable) => {
    let requests = 0
    const sink = await listen((_request, response) => {
      requests += 1
      const body = { type: 'error', error: { ref_id: 'r-1', message: `bad key ${apiKey}` } }
      json(response, status, body, { 'retry-after': '2' })
    })

    expect(sink.calls).toEqual(['error'])
    expect(sink.failure).toMatchObject({
      name: errorName,
      status,
      ref_id: 'r-1',
      retryable,
      retryAfter: 2_000,
    })
    expect(inspect(sink.failure, { depth: 10, showHidden: true })).not.toContain(apiKey)
    expect(requests).toBe(1)
  })

  it('reads the 422 of the task groups', async () => {
    const detail = [{ loc: ['query', 'last_event_id'], msg: 'unknown', type: 'value_error' }]
    const sink = await listen((_request, response) => json(response, 422, { detail }))

    expect(sink.failure).toMatchObject({ name: 'ValidationError', issues: detail })
  })

  it('reports the status of an error response that is truncated', async () => {
    const sink = await listen((_request, response) => {
      response.writeHead(404, { 'content-length': '100' }).write('{', () => response.destroy())
    })

    expect(sink.calls).toEqual(['error'])
    expect(sink.failure).toMatchObject({ name: 'NotFoundError' })
  })

  it.each([
    ['a line', 'data: one\n\n', 'x'],
    ['an event of many lines', 'data: one\n\n', 'x\ndata: '],
  ])('ends %s that never ends, and closes', async (_what, start, part) => {
    const closed = Promise.withResolvers<void>()
    const sink = await listen(
      (request, response) => {
        request.socket.on('close', () => closed.resolve())
        open(response).write(`${start}data: `)
        const more = () => {
          while (response.write(part.repeat(1_000))) continue
        }
        response.on('drain', more)
        more()
      },
      { maxEventLength: 50_000 },
    )
    await closed.promise

    expect(sink.calls).toEqual(['open', 'one', 'error'])
    expect(sink.failure).toBeInstanceOf(ProtocolError)
    expect(sink.failure).toMatchObject({ retryable: false, message: expect.stringContaining('50000') })
  })

  it('emits no message after an abort, not even one of the same chunk', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      open(response).write('data: 1\n\ndata: 2\n\nretry: 5\n\ndata: 3\n\n')
    })
    const sink = new Listener()
    const flow = transportTo(origin).stream(get, sink)
    sink.onMessage = ({ data }) => {
      if (data === '2') flow.abort()
    }
    await closed.promise

    expect(sink.calls).toEqual(['open', '1', '2'])
  })

  it.each(['open', 'message'] as const)('reports one error where the sink throws in %s', async (where) => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      open(response).write('data: 1\n\ndata: 2\n\n')
    })
    const sink = new Listener()
    const bug = new Error('a bug of the sink')
    let thrown = 0
    sink[where] = () => {
      thrown += 1
      throw bug
    }

    transportTo(origin).stream(get, sink)
    await sink.ended
    await closed.promise

    expect(sink.calls.at(-1)).toBe('error')
    expect(sink.failure).toMatchObject({ cause: bug })
    expect(thrown).toBe(1)
  })

  it('applies backpressure while it is paused, and continues', async () => {
    const { origin } = await serve((_request, response) => {
      open(response)
      for (let i = 0; i < 4_000; i++) response.write(`data: ${i} ${'x'.repeat(1_000)}\n\n`)
      response.end()
    })
    const sink = new Listener()
    const flow = transportTo(origin).stream(get, sink)
    const held = Promise.withResolvers<void>()
    sink.onMessage = () => {
      flow.pause()
      held.resolve()
    }
    await held.promise
    expect(sink.messages.length).toBeLessThan(1_000)

    sink.onMessage = () => {}
    flow.resume()
    await sink.ended

    expect(sink.messages.map(({ data }) => Number.parseInt(data, 10))).toEqual(
      Array.from({ length: 4_000 }, (_, i) => i),
    )
  })
})

describe('the messages of a stream', () => {
  const text = fc.string({ unit: fc.constantFrom(...'aZ0 :ß€🌊,{}"\\\t\uFEFF') })
  const message = fc.record({
    id: fc.option(text, { nil: undefined }),
    event: fc.option(text, { nil: undefined }),
    lines: fc.array(text, { minLength: 1, maxLength: 3 }),
    comment: fc.option(text, { nil: undefined }),
  })

  it('are the same wherever the bytes are split', async () => {
    const cuts = fc.array(fc.nat(), { maxLength: 30 })
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
    await fc.assert(
      fc.asyncProperty(fc.array(message), cuts, lineEnd, fc.boolean(), async (messages, at, eol, mark) => {
        const written = messages.map(({ id, event, lines, comment }) =>
          [
            ...(comment === undefined ? [] : [`: ${comment}`]),
            ...(id === undefined ? [] : [`id: ${id}`]),
            ...(event === undefined ? [] : [`event: ${event}`]),
            ...lines.map((line) => `data: ${line}`),
            eol,
          ].join(eol),
        )
        const bytes = new TextEncoder().encode((mark ? '\uFEFF' : '') + written.join(''))
        const borders = [0, ...at.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
          (a, b) => a - b,
        )
        const chunks = borders.slice(1).map((border, i) => bytes.slice(borders[i], border))
        const sink = new Listener()

        createTransport({ baseUrl: 'http://localhost', apiKey, exchange: exchangeOf(chunks) }).stream(
          get,
          sink,
        )
        await sink.ended

        expect(sink.messages).toEqual(
          messages.map(({ id, event, lines }) => ({
            id,
            event: event === '' ? undefined : event,
            data: lines.join('\n'),
          })),
        )
        expect(sink.calls.at(-1)).toBe('end')
      }),
      { numRuns: 500 },
    )
  })
})
