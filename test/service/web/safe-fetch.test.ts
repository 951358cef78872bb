import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ResolveHost } from '../../../src/service/web/resolve-host.ts'
import { createWeb } from '../../../src/service/web/safe-fetch.ts'
import type { WebOptions, WebRequest } from '../../../src/service/web/safe-fetch.ts'
import { WebError } from '../../../src/service/web/web-error.ts'
import { serve } from '../../support/serve.ts'

const LIMITS = { timeout: 10_000, maxBytes: 100_000 }

/** Only this machine's usual address, so that its others are refused. */
const LOCAL: WebOptions = { isAllowed: (address) => address === '127.0.0.1' }

function web(options: WebOptions = LOCAL) {
  const created = createWeb(options)
  onTestFinished(() => created.close())
  return created
}

/** The kind of the failure of a request. */
async function failureOf(url: string, options?: WebOptions, request: Partial<WebRequest> = {}) {
  const error: unknown = await web(options)
    .fetch(url, { ...LIMITS, ...request })
    .then(
      () => undefined,
      (reason) => reason,
    )
  return error instanceof WebError ? error.kind : error
}

const resolvingTo = (...answers: string[][]) => {
  const resolve = vi.fn<ResolveHost>(() => {
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? []
    return Promise.resolve(answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
  })
  return { resolve }
}

describe('a request to an outside address', () => {
  it('resolves with a 304 without a body that states a content coding', async () => {
    const url = await serve((_, response) => response.writeHead(304, { 'content-encoding': 'gzip' }).end())

    const { status, body } = await web().fetch(url, LIMITS)

    expect([status, body.byteLength]).toEqual([304, 0])
  })

  it('rejects with the error of the check of a redirect, and does not follow it', async () => {
    const paths: string[] = []
    const url = await serve((request, response) => {
      paths.push(request.url ?? '')
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    const checked: string[] = []
    const checkRedirect = (target: URL) => {
      checked.push(target.pathname)
      return Promise.reject(new WebError('blocked_address', 'The redirect leaves the host'))
    }

    expect(await failureOf(url, LOCAL, { checkRedirect })).toBe('blocked_address')
    expect([paths, checked]).toEqual([['/'], ['/elsewhere']])
  })

  it('resolves with the response of any status, and its decoded body', async () => {
    const url = await serve((_, response) => {
      response.writeHead(404, { 'content-type': 'Text/HTML; charset=utf-8', 'content-encoding': 'gzip' })
      response.end(gzipSync('<p>gone</p>'))
    })

    const { status, mediaType, body, url: found } = await web().fetch(`${url}/a#b`, LIMITS)

    expect({ status, mediaType, found, text: Buffer.from(body).toString() }).toEqual({
      status: 404,
      mediaType: 'text/html',
      found: `${url}/a`,
      text: '<p>gone</p>',
    })
  })

  it.each([
    'http://127.0.0.1:8080/',
    'http://127.1:8080/',
    'http://2130706433:8080/',
    'http://0x7f.1:8080/',
    'http://0177.0.0.1:8080/',
    'http://127.0.0.1.:8080/',
    'http://127.0.0.1:8080/',
    'http://0:8080/',
    'http://[::1]:8080/',
    'http://[::]:8080/',
    'http://[::ffff:127.0.0.1]:8080/',
    'http://[64:ff9b::7f00:1]:8080/',
    'http://169.254.169.254/latest/meta-data/',
    'http://localhost:8080/',
    'http://localhost.:8080/',
    'http://LOCALHOST:8080/',
  ])('is refused for the address %s', async (url) => {
    expect(await failureOf(url, {})).toBe('blocked_address')
  })

  it.each([
    'ftp://example.org/',
    'file:///etc/passwd',
    'data:text/html,x',
    'http://user@example.org/',
    'http://:password@example.org/',
    'http://example.org:22/',
    'http://example.org:25/',
    'not a url',
  ])('is refused for the URL %s', async (url) => {
    expect(await failureOf(url, {})).toBe('invalid_url')
  })

  it('is refused when one of several addresses of the host is private', async () => {
    expect(await failureOf('http://host.example/', resolvingTo(['93.184.215.14', '10.0.0.1']))).toBe(
      'blocked_address',
    )
    expect(await failureOf('http://host.example/', resolvingTo(['2606:4700::1', '::1']))).toBe(
      'blocked_address',
    )
  })

  it('connects to the address that was checked, and checks each new connection', async () => {
    let requests = 0
    const url = await serve((request, response) => {
      requests += 1
      response.end(request.headers.host)
    })
    const { port } = new URL(url)
    const { resolve } = resolvingTo(['127.0.0.1'], ['127.0.0.2'])
    const { fetch } = web({ ...LOCAL, resolve })

    const { body } = await fetch(`http://rebinding.example:${port}/`, LIMITS)
    const second = fetch(`http://rebinding.example:${port}/`, LIMITS)

    await expect(second).rejects.toMatchObject({ kind: 'blocked_address' })
    expect(Buffer.from(body).toString()).toBe(`rebinding.example:${port}`)
    expect(resolve).toHaveBeenCalledTimes(2)
    expect(requests).toBe(1)
  })

  it('fails for a host without an address', async () => {
    expect(await failureOf('http://host.example/', resolvingTo([]))).toBe('fetch_error')
  })
})

describe('a redirect', () => {
  it('is followed, relative to its URL', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/a/b') response.writeHead(302, { location: '../c?d' }).end()
      else response.end(request.url)
    })

    const response = await web().fetch(`${url}/a/b`, LIMITS)

    expect(Buffer.from(response.body).toString()).toBe('/c?d')
    expect(response.url).toBe(`${url}/c?d`)
  })

  it.each([
    ['http://127.0.0.2/', 'blocked_address'],
    ['http://[::1]/', 'blocked_address'],
    ['//169.254.169.254/', 'blocked_address'],
    ['http://private.example/', 'blocked_address'],
    ['file:///etc/passwd', 'invalid_url'],
    ['http://user:password@example.org/', 'invalid_url'],
    ['http://', 'fetch_error'],
  ])('to %s is refused', async (location, kind) => {
    const url = await serve((_, response) => response.writeHead(301, { location }).end())

    expect(await failureOf(url, { ...LOCAL, ...resolvingTo(['10.1.2.3']) })).toBe(kind)
  })

  it('back to the first origin by another one is sent without the headers of the request', async () => {
    const received: unknown[] = []
    const first = await serve((request, response) => {
      received.push(request.headers['x-token'])
      if (request.url === '/back') response.end()
      else response.writeHead(302, { location: second }).end()
    })
    const second = await serve((_, response) => response.writeHead(302, { location: `${first}/back` }).end())
    await web().fetch(first, { ...LIMITS, headers: { 'x-token': 'secret' } })

    expect(received).toEqual(['secret', undefined])
  })

  it('to another origin is sent without the headers of the request', async () => {
    const received: (string | undefined)[] = []
    const listener = (target?: string) =>
      serve((request, response) => {
        received.push(request.headers['x-token']?.toString())
        if (target === undefined) response.end()
        else response.writeHead(307, { location: request.url === '/' ? '/again' : target }).end()
      })
    const other = await listener()
    const first = await listener(other)

    await web().fetch(first, { ...LIMITS, headers: { 'x-token': 'secret' } })

    expect(received).toEqual(['secret', 'secret', undefined])
  })

  it('of a POST is not followed', async () => {
    const url = await serve((_, response) => response.writeHead(307, { location: '/other' }).end())

    const { status } = await web().fetch(url, { ...LIMITS, method: 'POST', body: '{}' })

    expect(status).toBe(307)
  })

  it('of a chain that does not end is not followed further', async () => {
    let requests = 0
    const url = await serve((_, response) => {
      requests += 1
      response.writeHead(302, { location: `/${requests}` }).end()
    })

    expect(await failureOf(url, undefined, { maxRedirects: 3 })).toBe('too_many_redirects')
    expect(requests).toBe(4)
  })
})

describe('a response', () => {
  it.each([
    ['plain', undefined, Buffer.alloc(100_001)],
    ['a gzip bomb', 'gzip', gzipSync(Buffer.alloc(50_000_000))],
    ['a Brotli bomb', 'br', brotliCompressSync(Buffer.alloc(50_000_000))],
  ])('that is longer than the limit is refused: %s', async (_, coding, body) => {
    const url = await serve((__, response) => {
      response.writeHead(200, coding === undefined ? {} : { 'content-encoding': coding })
      response.end(body)
    })

    expect(await failureOf(url)).toBe('too_large')
  })

  it('without an end is cut at the limit', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200)
      const write = (): unknown =>
        response.destroyed ||
        (response.write(Buffer.alloc(10_000)) ? setImmediate(write) : response.once('drain', write))
      write()
    })

    expect(await failureOf(url)).toBe('too_large')
  })

  it.each([
    ['an unknown content coding', { 'content-encoding': 'zstd' }, 'x'],
    ['two content codings', { 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync('x'))],
    ['a body that is not in its content coding', { 'content-encoding': 'gzip' }, 'x'],
    ['a compressed body that is cut', { 'content-encoding': 'gzip' }, gzipSync('text').subarray(0, 15)],
  ])('with %s fails', async (_, headers, body) => {
    const url = await serve((__, response) => response.writeHead(200, headers).end(body))

    expect(await failureOf(url)).toBe('fetch_error')
  })

  it('that is cut fails', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('part', () => response.destroy())
    })

    expect(await failureOf(url)).toBe('fetch_error')
  })

  it('that is no HTTP fails', async () => {
    const server = createServer((socket) => socket.on('error', () => undefined).end('hello\r\n\r\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())

    expect(await failureOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).toBe('fetch_error')
  })

  it.each([undefined, 'application/pdf', 'text/html2'])('of the content type %s is refused', async (type) => {
    const url = await serve((_, response) => {
      response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end('x')
    })

    expect(await failureOf(url, undefined, { mediaTypes: ['text/html'] })).toBe('unsupported_content_type')
  })

  it.each(['headers', 'body'])('whose %s are late times out', async (part) => {
    const url = await serve((_, response) => {
      if (part === 'body') response.writeHead(200).write('part')
    })

    expect(await failureOf(url, undefined, { timeout: 100 })).toBe('timeout')
  })

  it('is given up when the request is aborted, with the reason', async () => {
    const reason = new Error('enough')
    const controller = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serve((_, response) => {
      response.on('close', closed.resolve)
      response.writeHead(200).write('part')
      controller.abort(reason)
    })

    expect(await failureOf(url, undefined, { signal: controller.signal })).toBe(reason)
    await closed.promise
  })

  it('is given up when the web is closed, and no other request is sent', async () => {
    const { fetch, close } = web()
    const url = await serve(() => close())

    await expect(fetch(url, LIMITS)).rejects.toMatchObject({ kind: 'fetch_error' })
    await expect(fetch(url, LIMITS)).rejects.toMatchObject({ kind: 'fetch_error' })
  })
})
