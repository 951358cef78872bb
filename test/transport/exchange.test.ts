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
  it('sends the request as it is and tells the response in order', async () => {
    const { origin } = await serve(async (request, response) => {
      const said = [request.method, request.url, request.headers['x-extra'], await bodyOf(request)]
      response.writeHead(201, { 'x-answer': 'yes' }).end(said.join(' '))
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

  it('tells an answer without a body', async () => {
    const { origin } = await serve((_request, response) => response.writeHead(204).end())
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'end'])
  })

  it('does not take an interim answer for the answer', async () => {
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

  it('says of a refused connection that nothing was taken', async () => {
    const sink = new Recorder()

    createExchange()(wire(await closedOrigin()), sink)
    expect(sink.calls).toEqual([])
    await sink.ended

    expect(sink.calls).toEqual(['error'])
    expect(sink.failure).toMatchObject({ failure: 'refused', taken: 'no', retryable: true })
    expect(sink.failure?.message).toContain('ECONNREFUSED')
  })

  it('says of a host without an address that nothing was taken', async () => {
    const sink = new Recorder()

    // A label of more than 63 characters has no address in any DNS, and nobody needs to be asked.
    createExchange()(wire(`http://${'x'.repeat(64)}.invalid`), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ failure: 'refused', taken: 'no' })
  })

  it('gives up on an answer that does not begin in time, and closes', async () => {
    const closed = Promise.withResolvers<void>()
    const { origin } = await serve((request) => request.socket.on('close', () => closed.resolve()))
    const sink = new Recorder()

    createExchange()(wire(origin, { timeouts: { connect: 5_000, headers: 40, silence: 5_000 } }), sink)
    await sink.ended
    await closed.promise

    expect(sink.failure).toMatchObject({ failure: 'headers-timeout', taken: 'maybe' })
    expect(sink.failure?.message).toContain('40 ms')
  })

  it('gives up on a body that falls silent, and closes', async () => {
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
    expect(sink.failure).toMatchObject({ failure: 'silence', taken: 'maybe' })
  })

  it('does not take it for silence that the process itself stood still', async () => {
    const { origin } = await serve((_request, response) => {
      response.write('one')
      sink.onChunk = () => {
        sink.onChunk = () => response.end()
        response.write('two')
        const until = performance.now() + 100
        while (performance.now() < until);
      }
    })
    const sink = new Recorder()

    createExchange()(wire(origin, { timeouts: { connect: 5_000, headers: 5_000, silence: 50 } }), sink)
    await sink.ended

    expect(sink.failure).toBeUndefined()
    expect(sink.text).toBe('onetwo')
  })

  it('counts no silence while the reader holds the flow, and begins anew after it', async () => {
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

    expect(sink.failure).toMatchObject({ failure: 'silence' })
  })

  it('tells a body that was cut as a broken connection', async () => {
    const { origin } = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('some', () => request.socket.destroy())
    })
    const sink = new Recorder()

    createExchange()(wire(origin), sink)
    await sink.ended

    expect(sink.calls.at(-1)).toBe('error')
    expect(sink.failure).toMatchObject({ failure: 'broken', taken: 'maybe' })
    expect(sink.failure?.cause).toBeInstanceOf(Error)
  })

  it('tells a chunked body that was ended by a close as a broken connection', async () => {
    const port = await serveTcp((socket) => {
      socket.once('data', () =>
        socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nsome\r\n'),
      )
    })
    const sink = new Recorder()

    createExchange()(wire(`http://127.0.0.1:${port}`), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ failure: 'broken', taken: 'maybe' })
  })

  it('says maybe where a kept connection dies under a request that was written', async () => {
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

    expect(second.failure).toMatchObject({ failure: 'broken', taken: 'maybe' })
    expect(requests).toBe(2)
  })

  it('destroys the socket on abort and says nothing more', async () => {
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

  it('says nothing more when it is aborted from within a chunk', async () => {
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

  it('sends nothing when it is aborted at once', async () => {
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
    expect(sink.failure).toMatchObject({ failure: 'broken', cause: bug })
  })

  it.each(['end', 'error'] as const)(
    'goes on with other requests where a sink throws in %s',
    async (where) => {
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
    },
  )

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

    // Still as long as it takes other requests to come and go.
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

  it('keeps a pause that came before the response', async () => {
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

  it('follows no redirect', async () => {
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

  it('passes on what a compressed body has said so far', async () => {
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

  it('holds a compressed body too while it is paused', async () => {
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

  it('takes an empty body for empty, whatever coding it announces', async () => {
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

  it('gives up a connection that does not stand yet when it is aborted', async () => {
    const connected = Promise.withResolvers<Socket>()
    // TLS is asked for and never answered.
    const port = await serveTcp((socket) => connected.resolve(socket.resume()))
    const sink = new Recorder()
    const flow = exchange(wire(`https://127.0.0.1:${port}`), sink)
    const socket = await connected.promise

    flow.abort()
    await once(socket, 'close')

    expect(sink.calls).toEqual([])
  })

  it('gives up a connection that does not stand in time', async () => {
    const connected = Promise.withResolvers<Socket>()
    const port = await serveTcp((socket) => connected.resolve(socket.resume()))
    const sink = new Recorder()

    const timeouts = { connect: 60, headers: 60_000, silence: 60_000 }
    exchange(wire(`https://127.0.0.1:${port}`, { timeouts }), sink)
    const socket = await connected.promise
    await Promise.all([sink.ended, once(socket, 'close')])

    expect(sink.failure).toMatchObject({ failure: 'connect-timeout', taken: 'no' })
  })

  it('tells what a compressed body had said before the connection broke', async () => {
    const { origin } = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      const said = gzipSync('one', { finishFlush: constants.Z_SYNC_FLUSH })
      response.write(said, () => response.destroy())
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended

    expect(sink.calls).toEqual(['head', 'chunk', 'error'])
    expect(sink.text).toBe('one')
    expect(sink.failure).toMatchObject({ failure: 'broken' })
  })

  it('tells a compressed body that ends too early as a broken connection', async () => {
    const { origin } = await serve((_request, response) => {
      const whole = gzipSync('some text that is long enough to be cut')
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(whole.subarray(0, whole.length - 12))
    })
    const sink = new Recorder()

    exchange(wire(origin), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ failure: 'broken' })
  })

  it('names a content coding that it does not know', async () => {
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
  ])('refuses %s that is announced as %s', async (_what, coding, body) => {
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
    ['zeroes after it', 'gzip', Buffer.concat([gzipSync('onetwo'), Buffer.alloc(99)])],
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

  it('closes where more comes after the end of a compressed body, without end', async () => {
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
    'takes an empty body in chunks for empty, where it is announced as %s',
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

  it('reads an error that is compressed, and the status of one that cannot be decoded', async () => {
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

  it('reads no more of a compressed body than its reader takes', async () => {
    const size = 64 * 1024 * 1024
    let written = 0
    const { origin } = await serve((request, response) => {
      if (request.url === '/tick') return response.end()
      response.writeHead(200, { 'content-encoding': 'gzip' })
      // Stored, not compressed: what is held back of it is as much as what would be decoded.
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

  it('decodes no more of a body that swells than its reader takes before it aborts', async () => {
    const closed = Promise.withResolvers<void>()
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
    const { origin } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    })
    const sink = new Recorder()
    const flow = exchange(wire(origin), sink)
    sink.onChunk = () => {
      if (sink.bytes > 1_000_000) flow.abort()
    }
    await closed.promise

    expect(sink.bytes).toBeLessThan(1_200_000)
    expect(sink.calls).toEqual(['head', 'chunk'])
  })

  it('prints no warning, and leaves warnings to the program', async () => {
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

  it('uses connections again', async () => {
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

    // Undici lets a connection rest for a moment before it uses it again.
    expect(sockets.size).toBeLessThanOrEqual(2)
  })

  it('tells a request that cannot be sent after it has returned', async () => {
    const sink = new Recorder()

    exchange(wire('http://127.0.0.1:1', { headers: { 'bad header': 'x' } }), sink)
    expect(sink.calls).toEqual([])
    await sink.ended

    expect(sink.failure).toMatchObject({ failure: 'refused', taken: 'no' })
  })
})

describe('the fetch exchange', () => {
  it('counts connecting into the time for the headers', async () => {
    const port = await serveTcp((socket) => socket.resume())
    const sink = new Recorder()

    const timeouts = { connect: 60_000, headers: 40, silence: 60_000 }
    createFetchExchange()(wire(`https://127.0.0.1:${port}`, { timeouts }), sink)
    await sink.ended

    expect(sink.failure).toMatchObject({ failure: 'headers-timeout', taken: 'maybe' })
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
