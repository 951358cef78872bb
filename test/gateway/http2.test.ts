import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createGateway, nodeListener } from 'rivulet/gateway'
import { memoryStore, openLog } from 'rivulet/log'
import { describe, expect, it, onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { ClientModel, Stream } from './client.ts'
import { SECRET, setItem, VIEWS } from './fixture.ts'
import type { FetchHandler } from '../../src/http/fetch-handler.ts'

/** Starts an HTTP/2 server, and connects to it. */
async function connected(handler: FetchHandler): Promise<ClientHttp2Session> {
  const server = createServer(nodeListener(handler))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(async () => {
    session.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return session
}

/** Sends a request. Resolves with the headers of its response. */
async function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string,
): Promise<{ readonly stream: ClientHttp2Stream; readonly response: Headers; readonly status: number }> {
  const stream = session.request({ ':method': 'POST', ':path': '/live/stream', ...headers })
  stream.on('error', () => undefined)
  stream.end(body)
  const [given] = await once(stream, 'response')
  const response = new Headers()
  for (const [name, value] of Object.entries<unknown>(given)) {
    if (name.startsWith(':')) continue
    for (const each of Array.isArray(value) ? value : [value]) response.append(name, String(each))
  }
  return { stream, response, status: Number(given[':status']) }
}

/** The stream of a gateway within a stream of HTTP/2. */
const liveStream = (stream: ClientHttp2Stream) =>
  new Stream(
    new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          stream.on('data', (chunk: Uint8Array) => controller.enqueue(chunk))
          stream.on('end', () => controller.close())
        },
      }),
    ),
    new ClientModel(),
  )

async function gatewayOverHttp2() {
  const store = memoryStore()
  const log = await openLog(store)
  const gateway = createGateway({ log, views: VIEWS, tokens: { secret: SECRET }, maxConnections: 3 })
  onTestFinished(async () => {
    await gateway.close()
    await log.close()
  })
  const session = await connected(gateway)
  const token = await gateway.grant({ sub: 'u', views: ['items', 'everything'], sources: ['*'] })
  const open = (views: readonly unknown[]) =>
    ask(
      session,
      { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      JSON.stringify({ views }),
    )
  return { store, gateway, session, open }
}

describe('a gateway over HTTP/2', () => {
  it('serves several streams over one connection', async () => {
    const { store, open } = await gatewayOverHttp2()
    const first = await open([{ view: 'everything' }])
    const second = await open([{ view: 'items', params: { list: 'a' } }])
    const [all, some] = [liveStream(first.stream), liveStream(second.stream)]
    await all.until('current')
    await some.until('current')

    await append(store, [setItem('a', 'x', '1'), setItem('b', 'x', '2')])
    await all.untilRows((model) => Object.keys(model.rows('everything')).length === 2)
    await some.untilRows((model) => Object.keys(model.rows('items?list=a')).length === 1)

    expect([first.status, first.response.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(some.model.rows('items?list=a')).toEqual({ 'a/x': { value: '1', times: 1 } })
  })

  it('ends what belongs to a stream that the client resets, and keeps the others', async () => {
    const { store, open } = await gatewayOverHttp2()
    const others = await open([{ view: 'everything' }])
    const live = liveStream(others.stream)
    await live.until('current')
    // More than a subject may have at the same time.
    for (let n = 0; n < 6; n++) {
      const { stream, status } = await open([{ view: 'everything' }])
      expect(status).toBe(200)
      await once(stream, 'data')
      stream.close(8)
      await once(stream, 'close')
    }

    await append(store, [setItem('a', 'x', '1')])
    await live.untilRows((model) => model.rows('everything')['a/x'] !== undefined)
  })

  it('ends its streams when it is closed', async () => {
    const { gateway, open } = await gatewayOverHttp2()
    const { stream } = await open([{ view: 'everything' }])
    const live = liveStream(stream)
    await live.until('current')

    await gateway.close()

    expect((await live.until('close')).data).toEqual({ reason: 'shutdown' })
    await once(stream, 'close')
  })
})

describe('nodeListener over HTTP/2', () => {
  it('gives the request its host, its headers and its body', async () => {
    const session = await connected(async (request) =>
      Response.json({
        url: new URL(request.url).pathname,
        host: new URL(request.url).hostname,
        cookie: request.headers.get('cookie'),
        names: [...request.headers.keys()].filter((name) => name.startsWith(':')),
        body: await request.text(),
      }),
    )
    const { stream } = await ask(session, { ':path': '/a?b', cookie: 'c=1' }, 'the body')
    const text = (await stream.setEncoding('utf8').toArray()).join('')

    expect(JSON.parse(text)).toEqual({
      url: '/a',
      host: '127.0.0.1',
      cookie: 'c=1',
      names: [],
      body: 'the body',
    })
  })

  it('leaves out the headers of a connection, which HTTP/2 refuses, and keeps cookies apart', async () => {
    const session = await connected(async () => {
      const headers = new Headers({
        connection: 'close',
        'keep-alive': 'timeout=5',
        'transfer-encoding': 'chunked',
      })
      headers.append('set-cookie', 'a=1')
      headers.append('set-cookie', 'b=2')
      headers.set('x-other', 'yes')
      return new Response('text', { status: 201, headers })
    })
    const { stream, response, status } = await ask(session, {})
    const text = (await stream.setEncoding('utf8').toArray()).join('')

    expect([status, text]).toEqual([201, 'text'])
    expect(response.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.get('x-other')).toBe('yes')
    for (const name of ['connection', 'keep-alive', 'transfer-encoding'])
      expect(response.has(name)).toBe(false)
  })

  it('answers with 500 where the handler fails, and aborts the signal of a request that is reset', async () => {
    const asked = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    const session = await connected(async ({ url, signal }) => {
      if (url.endsWith('/fails')) throw new Error('it fails')
      signal.addEventListener('abort', () => gone.resolve())
      asked.resolve()
      await gone.promise
      return new Response()
    })
    const { status } = await ask(session, { ':path': '/fails' })
    const stream = session.request({ ':path': '/waits' }).on('error', () => undefined)
    await asked.promise
    stream.close(8)

    await expect(gone.promise).resolves.toBeUndefined()
    expect(status).toBe(500)
  })
})
