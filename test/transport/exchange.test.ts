import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { brotliCompressSync, constants, createGzip, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createExchange as createFetchExchange } from '../../src/transport/fetch-exchange.ts'
import { createExchange as createUndiciExchange } from '../../src/transport/undici-exchange.ts'
import { ProtocolError } from '../../src/transport/errors.ts'
import type { Exchange } from '../../src/transport/exchange.ts'
import { Recorder, wire } from './recorder.ts'
import { bodyOf, closedOrigin, serve, serveTcp } from './server.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe.each([
  { name: 'undici', createExchange: createUndiciExchange },
  { name: 'fetch', createExchange: createFetchExchange },
])('the $name exchange', ({ createExchange }) => {
  it('sends the request unchanged and reports the response in order', async () => {
    const { origin } = await serve(async (request, response) => {
      const received = [request.method, request.url, request.headers['x-extra'], await bodyOf(request)]
      response.writeHead(201, { 'x-answer': 'yes' }).end(received.join(' '))
    })
    const sink = new Recorder()

    createExchange()(
      wire(origin, { method: 'POST', path: '/a/b?c=d%20e', headers: { 'x-extra': 'one' }, body: '{"ü":1}' }),
      sink,
    )
    await sink.ended

    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
    expect(sink.status).toBe(201)
    expect(sink.header('x-answer')).toBe('yes')
    expect(sink.header('x-none')).toBeUndefined()
    expect(sink.text).toBe('POST /a/b?c=d%20e one {"ü":1}')
  })

  it('reports a response without a body', async () => {
    const { origin } = await serve((_request, response) => response.writeHead(204).end())
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'end'])
  })

  it('skips an interim response', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.end('done')
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.status).toBe(200)
    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
  })

  it('reports that a refused connection sent nothing', async () => {
    const sink = new Recorder()

    createExchange()(wire(await closedOrigin()), sink)
    expect(sink.calls).toEqual([])
    await sink.ended

    expect(sink.calls).toEqual(['error'])
    expect(sink.failure).toMatchObject({ reason: 'refused', taken: 'no', retryable: true })
    expect(sink.failure?.message).toContain('ECONNREFUSED')
  })

  it('reports that a host without an address was sent nothing', async () => {
    const sink = new Recorder()

    // A label of more than 63 characters is not valid in DNS, so no query is sent.
    createExchange()(wire(`http://${'x'.repeat(64)}.invalid`), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ reason: 'refused', taken: 'no' })
  })

  it('times out a response that does not begin, and closes', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request) => request.socket.on('close', () => closed.resolve()))
    const sink = new Recorder()

    createExchange()(wire(origin, { timeouts: { connect: 5_000, headers: 40, silence: 5_000 } }), sink)
    await sink.ended
    await closed.promise

    expect(sink.failure).toMatchObject({ reason: 'headers_timeout', taken: 'maybe' })
    expect(sink.failure?.message).toContain('40 ms')
  })

  it('times out a body that becomes idle, and closes', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.write('one')
    })
    const sink = new Recorder()

    createExchange()(wire(origin, { timeouts: { connect: 5_000, headers: 5_000, silence: 40 } }), sink)
    await sink.ended
    await closed.promise

    expect(sink.calls).toEqual(['head', 'chunk', 'error'])
    expect(sink.failure).toMatchObject({ reason: 'silence', taken: 'maybe' })
  })

  it('does not count the time that the process was blocked as idle', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { origin } = await serve((_request, response) => {
      response.write('one')
      sink.onChunk = () => {
        sink.onChunk = () => response.end()
        response.write('two')
        // The timeout is over when the event loop goes on, before it looks at the socket.
        setImmediate(() => vi.advanceTimersByTime(1_000))
      }
    })
    const sink = new Recorder()

    createExchange()(wire(origin, { timeouts: { connect: 5_000, headers: 5_000, silence: 50 } }), sink)
    await sink.ended

    expect(sink.failure).toBeUndefined()
    expect(sink.text).toBe('onetwo')
  })

  it('stops the idle timeout while the flow is paused, and restarts it on resume', async () => {
    const { origin } = await serve((_request, response) => response.write('one'))
    const sink = new Recorder()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const flow = createExchange()(
      wire(origin, { timeouts: { connect: 100, headers: 100, silence: 100 } }),
      sink,
    )
    await sink.begun

    flow.pause()
    vi.advanceTimersByTime(1_000_000)
    expect(sink.failure).toBeUndefined()
    flow.resume()
    vi.advanceTimersByTime(99)
    expect(sink.failure).toBeUndefined()
    vi.advanceTimersByTime(2)
    await sink.ended

    expect(sink.failure).toMatchObject({ reason: 'silence' })
  })

  it('reports a truncated body as a broken connection', async () => {
    const { origin } = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('some', () => request.socket.destroy())
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.calls.at(-1)).toBe('error')
    expect(sink.failure).toMatchObject({ reason: 'broken', taken: 'maybe' })
    expect(sink.failure?.cause).toBeInstanceOf(Error)
  })

  it('reports a chunked body that ends with a close as a broken connection', async () => {
    const port = await serveTcp((socket) => {
      socket.once('data', () =>
        socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nsome\r\n'),
      )
    })
    const sink = new Recorder()

    createExchange()(wire(`http://127.0.0.1:${port}`), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ reason: 'broken', taken: 'maybe' })
  })

  it('reports that a request may have been taken when a kept-alive connection dies under it', async () => {
    let requests = 0
    const { origin } = await serve((request, response) => {
      requests += 1
      if (requests === 1) response.end('ok')
      else request.socket.destroy()
    })
    const exchange = createExchange()
    const [first, second] = [new Recorder(), new Recorder()]
    exchange(wire(origin), first)
    await first.ended

    exchange(wire(origin, { method: 'POST', body: '{}' }), second)
    await second.ended

    expect(second.failure).toMatchObject({ reason: 'broken', taken: 'maybe' })
    expect(requests).toBe(2)
  })

  it('destroys the socket on abort and calls nothing more', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.write('one')
    })
    const sink = new Recorder()
    const flow = createExchange()(wire(origin), sink)
    await sink.begun

    flow.abort()
    flow.abort()
    flow.resume()
    await closed.promise

    expect(sink.calls).toEqual(['head', 'chunk'])
  })

  it('calls nothing more when it is aborted from within a chunk', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      for (let i = 0; i < 50; i++) response.write(`${i}\n`.repeat(2_000))
      response.end()
    })
    const sink = new Recorder()
    let chunks = 0
    const flow = createExchange()(wire(origin), sink)
    sink.onChunk = () => {
      chunks += 1
      flow.abort()
    }
    await closed.promise

    expect(chunks).toBe(1)
    expect(sink.calls).toEqual(['head', 'chunk'])
  })

  it('sends nothing when it is aborted immediately', async () => {
    const paths: (string | undefined)[] = []
    const { origin } = await serve((request, response) => {
      paths.push(request.url)
      response.end()
    })
    const exchange = createExchange()
    const [aborted, after] = [new Recorder(), new Recorder()]

    exchange(wire(origin, { path: '/aborted' }), aborted).abort()
    exchange(wire(origin, { path: '/after' }), after)
    await after.ended

    expect(paths).toEqual(['/after'])
    expect(aborted.calls).toEqual([])
  })

  it.each(['head', 'chunk'] as const)('reports one error where the sink throws in %s', async (where) => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.write('one')
    })
    const sink = new Recorder()
    const bug = new Error('a bug of the sink')
    vi.spyOn(sink, where).mockImplementation(() => {
      throw bug
    })

    createExchange()(wire(origin), sink)
    await sink.ended
    await closed.promise

    expect(sink.calls.filter((call) => call === 'error')).toHaveLength(1)
    expect(sink.failure).toMatchObject({ reason: 'broken', cause: bug })
  })

  it.each(['end', 'error'] as const)('continues other requests when a sink throws in %s', async (where) => {
    const { origin } = await serve((request, response) => {
      if (request.url === '/cut') request.socket.destroy()
      else response.end('ok')
    })
    const exchange = createExchange()
    const [bad, good] = [new Recorder(), new Recorder()]
    const thrown = Promise.withResolvers<void>()
    vi.spyOn(bad, where).mockImplementation(() => {
      thrown.resolve()
      throw new Error('a bug of the sink')
    })

    exchange(wire(origin, { path: where === 'error' ? '/cut' : '/' }), bad)
    await thrown.promise
    exchange(wire(origin), good)
    await good.ended

    expect(good.text).toBe('ok')
    expect(bad.calls).not.toContain(where === 'end' ? 'error' : 'end')
  })

  it('stops reading the socket while it is paused, and loses nothing', async () => {
    const size = 32 * 1024 * 1024
    let written = 0
    const { origin } = await serve((request, response) => {
      if (request.url === '/tick') return response.end()
      return pour(response, size, (bytes) => (written += bytes))
    })
    const exchange = createExchange()
    const sink = new Recorder()
    const flow = exchange(wire(origin), sink)
    sink.onChunk = () => flow.pause()
    await sink.begun

    // Nothing arrives while other requests complete.
    for (let quiet = 0, before = -1; quiet < 20; quiet = written === before ? quiet + 1 : 0) {
      before = written
      const tick = new Recorder()
      exchange(wire(origin, { path: '/tick' }), tick)
      await tick.ended
    }
    expect(written).toBeLessThan(size)
    expect(sink.bytes).toBeLessThan(1024 * 1024)

    sink.onChunk = () => {}
    flow.resume()
    await sink.ended
    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
    expect(sink.bytes).toBe(size)
  })

  it('keeps a pause from before the response', async () => {
    const size = 16 * 1024 * 1024
    const { origin } = await serve((_request, response) => pour(response, size))
    const sink = new Recorder()
    const flow = createExchange()(wire(origin), sink)
    flow.pause()
    await sink.opened
    expect(sink.bytes).toBe(0)

    flow.resume()
    await sink.ended

    expect(sink.bytes).toBe(size)
  })

  it('can be paused and resumed from within every chunk', async () => {
    const size = 4 * 1024 * 1024
    const { origin } = await serve((_request, response) => pour(response, size))
    const sink = new Recorder()
    const flow = createExchange()(wire(origin), sink)
    let chunks = 0
    sink.onChunk = () => {
      chunks += 1
      flow.pause()
      if (chunks % 2 === 0) queueMicrotask(() => flow.resume())
      else flow.resume()
    }
    await sink.ended

    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
    expect(sink.bytes).toBe(size)
  })

  it('can be resumed from within a chunk of another response', async () => {
    const size = 4 * 1024 * 1024
    const { origin } = await serve((_request, response) => pour(response, size))
    const exchange = createExchange()
    const [held, other] = [new Recorder(), new Recorder()]
    const flow = exchange(wire(origin), held)
    held.onChunk = () => flow.pause()
    await held.begun

    exchange(wire(origin), other)
    other.onChunk = () => flow.resume()
    await other.ended
    held.onChunk = () => {}
    flow.resume()
    await held.ended

    expect([held.failure, other.failure]).toEqual([undefined, undefined])
    expect([held.bytes, other.bytes]).toEqual([size, size])
  })

  it('can send a request from within a chunk of another response', async () => {
    const { origin } = await serve((request, response) => response.end(request.url))
    const exchange = createExchange()
    const [idle, first, second] = [new Recorder(), new Recorder(), new Recorder()]
    exchange(wire(origin), idle)
    await idle.ended
    first.onChunk = () => exchange(wire(origin, { path: '/second' }), second)

    exchange(wire(origin, { path: '/first' }), first)
    await Promise.all([first.ended, second.ended])

    expect([first.text, second.text]).toEqual(['/first', '/second'])
  })

  it('does not follow a redirect', async () => {
    let elsewhere = 0
    const other = await serve((_request, response) => {
      elsewhere += 1
      response.end()
    })
    const { origin } = await serve((_request, response) => {
      response.writeHead(302, { location: other.origin }).end()
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.status).toBe(302)
    expect(elsewhere).toBe(0)
  })

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('decodes a body in %s (%o)', async (coding, compress) => {
    const text = 'straße '.repeat(50_000)
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': coding }).end(compress(text))
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
    expect(sink.text).toBe(text)
  })

  it('emits the decodable part of a compressed body immediately', async () => {
    const released = Promise.withResolvers<void>()
    const { origin } = await serve(async (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      const gzip = createGzip()
      gzip.pipe(response)
      gzip.write('one')
      gzip.flush()
      await released.promise
      gzip.end('two')
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.begun
    expect(sink.text).toBe('one')
    released.resolve()
    await sink.ended

    expect(sink.text).toBe('onetwo')
  })

  it('pauses a compressed body too', async () => {
    const size = 64 * 1024 * 1024
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(size)))
    })
    const exchange = createExchange()
    const sink = new Recorder()
    const flow = exchange(wire(origin), sink)
    sink.onChunk = () => flow.pause()
    await sink.begun

    expect(sink.bytes).toBeLessThan(1024 * 1024)
    sink.onChunk = () => {}
    flow.resume()
    await sink.ended

    expect(sink.bytes).toBe(size)
  })

  it('accepts an empty body with any content coding', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': '0' }).end()
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'end'])
  })
})

describe('the undici exchange', () => {
  const exchange: Exchange = createUndiciExchange()

  it('destroys a connecting socket on abort', async () => {
    const connected = Promise.withResolvers<Socket>()
    // The TLS handshake is never answered.
    const port = await serveTcp((socket) => connected.resolve(socket.resume()))
    const sink = new Recorder()
    const flow = exchange(wire(`https://127.0.0.1:${port}`), sink)
    const socket = await connected.promise

    flow.abort()
    await once(socket, 'close')

    expect(sink.calls).toEqual([])
  })

  it('destroys a connecting socket on timeout', async () => {
    const connected = Promise.withResolvers<Socket>()
    const port = await serveTcp((socket) => connected.resolve(socket.resume()))
    const sink = new Recorder()

    const timeouts = { connect: 60, headers: 60_000, silence: 60_000 }
    exchange(wire(`https://127.0.0.1:${port}`, { timeouts }), sink)
    const socket = await connected.promise
    await Promise.all([sink.ended, once(socket, 'close')])

    expect(sink.failure).toMatchObject({ reason: 'connect_timeout', taken: 'no' })
  })

  it('emits the decodable part of a compressed body when the connection breaks', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      const partial = gzipSync('one', { finishFlush: constants.Z_SYNC_FLUSH })
      response.write(partial, () => response.destroy())
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'chunk', 'error'])
    expect(sink.text).toBe('one')
    expect(sink.failure).toMatchObject({ reason: 'broken' })
  })

  it('reports a truncated compressed body as a broken connection', async () => {
    const { origin } = await serve((_request, response) => {
      const whole = gzipSync('some text that is long enough to be cut')
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(whole.subarray(0, whole.length - 12))
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ reason: 'broken' })
  })

  it('names an unknown content coding', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'compress' }).end('???')
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended

    expect(sink.failure).toBeInstanceOf(ProtocolError)
    expect(sink.failure?.message).toContain('content coding compress')
  })

  it.each([
    ['deflate without its wrapper', 'deflate', deflateRawSync('x'.repeat(1_000))],
    ['text', 'gzip', Buffer.from('this is no gzip')],
    ['gzip with something else after it', 'gzip', Buffer.concat([gzipSync('one'), Buffer.from('two')])],
    ['brotli', 'gzip', brotliCompressSync('one')],
    ['text', 'br', Buffer.from('\xff'.repeat(100), 'latin1')],
    ['text', 'gzip, br, gzip, br, gzip, br', Buffer.from('too many')],
  ])('refuses %s declared as %s', async (_what, coding, body) => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(200, { 'content-encoding': coding }).write(body)
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended
    await closed.promise

    expect(sink.calls.filter((call) => call !== 'chunk')).toEqual(['head', 'error'])
    expect(sink.failure).toBeInstanceOf(ProtocolError)
  })

  it.each([
    ['more than one member', 'gzip', Buffer.concat([gzipSync('one'), gzipSync('two')])],
    ['zeroes at the end', 'gzip', Buffer.concat([gzipSync('onetwo'), Buffer.alloc(99)])],
    ['another coding beneath', 'br, x-gzip', gzipSync(brotliCompressSync('onetwo'))],
    ['capitals in the name', 'GZip', gzipSync('onetwo')],
  ])('decodes a body with %s', async (_what, coding, body) => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': coding }).end(body)
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
    expect(sink.text).toBe('onetwo')
  })

  it('closes when data follows the end of a compressed body', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(200, { 'content-encoding': 'deflate' })
      response.write(Buffer.concat([deflateSync('one'), Buffer.alloc(99)]))
      const more = () => {
        while (response.write(Buffer.alloc(16_384))) continue
      }
      response.on('drain', more)
      more()
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended
    await closed.promise

    expect(sink.text).toBe('one')
  })

  it.each(['gzip', 'br', 'deflate', 'zstd'])(
    'accepts an empty chunked body announced as %s',
    async (coding) => {
      const { origin } = await serve((_request, response) => {
        response.writeHead(200, { 'content-encoding': coding, 'transfer-encoding': 'chunked' }).end()
      })
      const sink = new Recorder()

      exchange(wire(origin), sink)
      await sink.ended

      expect(sink.calls).toEqual(['head', 'end'])
    },
  )

  it('reads a compressed error, and the status of one that cannot be decoded', async () => {
    const { origin } = await serve((request, response) => {
      const coding = request.url === '/' ? 'gzip' : 'none-such'
      response.writeHead(402, { 'content-encoding': coding }).end(gzipSync('{"no":"credit"}'))
    })
    const [good, bad] = [new Recorder(), new Recorder()]

    exchange(wire(origin), good)
    exchange(wire(origin, { path: '/bad' }), bad)
    await Promise.all([good.ended, bad.ended])

    expect([good.status, good.text]).toEqual([402, '{"no":"credit"}'])
    expect([bad.status, bad.calls]).toEqual([402, ['head', 'error']])
  })

  it('reads a compressed body only as fast as its reader', async () => {
    const size = 64 * 1024 * 1024
    let written = 0
    const { origin } = await serve((request, response) => {
      if (request.url === '/tick') return response.end()
      response.writeHead(200, { 'content-encoding': 'gzip' })
      // Stored, not compressed: as many bytes are encoded as decoded.
      const gzip = createGzip({ level: 0 })
      gzip.pipe(response)
      return pour(gzip, size, (bytes) => (written += bytes))
    })
    const sink = new Recorder()
    const flow = exchange(wire(origin), sink)
    sink.onChunk = () => flow.pause()
    await sink.begun

    for (let quiet = 0, before = -1; quiet < 20; quiet = written === before ? quiet + 1 : 0) {
      before = written
      const tick = new Recorder()
      exchange(wire(origin, { path: '/tick' }), tick)
      await tick.ended
    }
    expect(written).toBeLessThan(size / 2)
    expect(sink.bytes).toBeLessThan(1024 * 1024)

    let chunks = 0
    sink.onChunk = () => {
      chunks += 1
      flow.pause()
      if (chunks % 2 === 0) setImmediate(() => flow.resume())
      else flow.resume()
    }
    flow.resume()
    await sink.ended
    expect(sink.calls).toEqual(['head', 'chunk', 'end'])
    expect(sink.bytes).toBe(size)
  })

  it('stops decoding a decompression bomb when its reader aborts', async () => {
    const closed = Promise.withResolvers<void>()
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
    const { origin } = await serve((request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      if (request.url === '/whole') return response.end(bomb)
      // It never ends, so that its connection is closed for the abort.
      request.socket.on('close', () => closed.resolve())
      return response.write(bomb)
    })
    const sink = new Recorder()
    const flow = exchange(wire(origin), sink)
    sink.onChunk = () => {
      if (sink.bytes > 1_000_000) flow.abort()
    }
    await closed.promise
    // In the time that this takes, the rest of the other would be decoded too.
    const whole = new Recorder()
    exchange(wire(origin, { path: '/whole' }), whole)
    await whole.ended

    expect(whole.bytes).toBe(64 * 1024 * 1024)
    expect(sink.bytes).toBeLessThan(1_200_000)
    expect(sink.calls).toEqual(['head', 'chunk'])
  })

  it("prints no warning, and keeps the program's own warnings", async () => {
    const program = `
      const warn = process.emitWarning
      const { createExchange } = await import('./src/transport/undici-exchange.ts')
      const { gzipSync } = await import('node:zlib')
      const { createServer } = await import('node:http')
      const server = createServer((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('one')))
      server.listen(0, '127.0.0.1', () => {
        const timeouts = { connect: 9e3, headers: 9e3, silence: 9e3 }
        const request = { origin: 'http://127.0.0.1:' + server.address().port, path: '/', method: 'GET', headers: {}, timeouts }
        createExchange()(request, { head() {}, chunk: (bytes) => process.stdout.write(bytes), error: console.error, end() {
          console.log(process.emitWarning === warn)
          process.exit()
        } })
      })`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
    const [out, err] = await Promise.all([textOf(child.stdout), textOf(child.stderr)])

    expect([out, err]).toEqual(['onetrue\n', ''])
  })

  it('reuses connections', async () => {
    const sockets = new Set<unknown>()
    const { origin } = await serve((request, response) => {
      sockets.add(request.socket)
      response.end('ok')
    })
    for (let i = 0; i < 6; i++) {
      const sink = new Recorder()
      exchange(wire(origin), sink)
      await sink.ended
    }

    // Undici reuses a connection only after a moment.
    expect(sockets.size).toBeLessThanOrEqual(2)
  })

  it('reports a request that cannot be sent after it has returned', async () => {
    const sink = new Recorder()

    exchange(wire('http://127.0.0.1:1', { headers: { 'bad header': 'x' } }), sink)
    expect(sink.calls).toEqual([])
    await sink.ended

    expect(sink.failure).toMatchObject({ reason: 'refused', taken: 'no' })
  })
})

describe('the fetch exchange', () => {
  it('includes connecting in the headers timeout', async () => {
    const port = await serveTcp((socket) => socket.resume())
    const sink = new Recorder()

    const timeouts = { connect: 60_000, headers: 40, silence: 60_000 }
    createFetchExchange()(wire(`https://127.0.0.1:${port}`, { timeouts }), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ reason: 'headers_timeout', taken: 'maybe' })
  })
})

describe('the exchange of a platform', () => {
  it.each([
    ['node', 'undici-exchange.ts'],
    ['bun', 'fetch-exchange.ts'],
    ['deno', 'fetch-exchange.ts'],
    ['workerd', 'fetch-exchange.ts'],
    ['edge-light', 'fetch-exchange.ts'],
  ])('%s is %s', async (condition, file) => {
    const conditions = ['--conditions=rivulet-source', `--conditions=${condition}`]
    const program = "console.log(import.meta.resolve('#exchange'))"
    const child = spawn(process.execPath, [...conditions, '--input-type=module', '--eval', program])

    expect((await textOf(child.stdout)).trim().split('/').at(-1)).toBe(file)
  })
})

/** Writes `size` bytes as fast as the reader takes them. */
async function pour(
  response: Writable,
  size: number,
  onWritten: (bytes: number) => void = () => {},
): Promise<void> {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const chunks = function* () {
    for (let left = size; left > 0; left -= chunk.length) {
      onWritten(chunk.length)
      yield chunk
    }
  }
  await pipeline(chunks, response)
}
