import type { IncomingMessage, ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { deflateRawSync, gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RequestError } from '../../src/transport/errors.ts'
import { createExchange as createFetchExchange } from '../../src/transport/fetch-exchange.ts'
import { createRedactor } from '../../src/protocol/redactor.ts'
import { redactJson } from '../../src/transport/redact.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest } from '../../src/transport/transport.ts'
import { createExchange as createUndiciExchange } from '../../src/transport/undici-exchange.ts'
import { closedOrigin, serve, serveTcp } from './server.ts'

// With every character that an escape changes.
const apiKey = 'k+/9=&<">~\\x{Zq'
const token = 'tok-0123456789/abc'
const password = 'pass+word?word'
const cookie = 'session-98765432'
const authorization = `Bearer ${token}`
const headers = {
  authorization,
  'x-proxy': `Basic ${Buffer.from(`user:${password}`).toString('base64')}`,
  cookie: `a=b; sid=${cookie}`,
}
const secrets = [apiKey, token, password, cookie]
const get: ApiRequest = { method: 'GET', path: '/v1/x', headers, idempotent: true }

/** The encodings in which a peer may write a text. */
const ENCODINGS: readonly [string, (text: string) => string][] = [
  ['plain', (text) => text],
  ['in capitals', (text) => text.toUpperCase()],
  ['for a URL', (text) => encodeURIComponent(text)],
  ['for a URL, twice', (text) => encodeURIComponent(encodeURIComponent(text))],
  ['for a URL, each character', (text) => each(text, (code) => `%${code.toString(16).padStart(2, '0')}`)],
  ['as JSON', (text) => JSON.stringify(text).slice(1, -1)],
  ['as JSON, each character', (text) => each(text, (code) => `\\u${code.toString(16).padStart(4, '0')}`)],
  [
    'for HTML',
    (text) =>
      each(text, (code) => (/\W/.test(String.fromCharCode(code)) ? `&#${code};` : String.fromCharCode(code))),
  ],
  [
    'for HTML, by names',
    (text) =>
      text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
  ],
  ...[0, 1, 2].flatMap((before): [string, (text: string) => string][] => [
    [`in Base64 after ${before}`, (text) => Buffer.from(`${'~'.repeat(before)}${text}?`).toString('base64')],
    [
      `in Base64 for URLs after ${before}`,
      (text) => Buffer.from(`${'~'.repeat(before)}${text}?`).toString('base64url'),
    ],
  ]),
  ['in hexadecimal', (text) => Buffer.from(text).toString('hex')],
]

/** Each encoding with one of the secrets, and each secret plain. */
const ENCODED_SECRETS = [
  ...secrets,
  ...ENCODINGS.map(([, encode], index) => encode(secrets[index % secrets.length] ?? '')),
]

function each(text: string, write: (code: number) => string): string {
  return Array.from(text, (character) => write(character.charCodeAt(0))).join('')
}

/** The text, and everything that can be decoded from it. */
function* readings(text: string): Generator<string> {
  yield text
  const numbers = (pattern: RegExp, base: number) =>
    text.replaceAll(pattern, (_all, code: string) => String.fromCharCode(Number.parseInt(code, base)))
  yield numbers(/%(?:25)*([0-9a-f]{2})/gi, 16)
  yield numbers(/\\+u([0-9a-f]{4})/gi, 16)
  yield text.replaceAll(/\\(.)/g, '$1')
  yield numbers(/&#(\d+);/g, 10)
  yield text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
  for (const run of text.match(/[a-z0-9+/_-]{8,}/gi) ?? []) {
    for (let skipped = 0; skipped < 4; skipped++)
      yield Buffer.from(run.slice(skipped), 'base64').toString('latin1')
    yield Buffer.from(run, 'hex').toString('latin1')
  }
}

function secretsOf(text: string): readonly string[] {
  const read = [...readings(text)].map((reading) => reading.toLowerCase())
  return secrets.filter((secret) => read.some((reading) => reading.includes(secret.toLowerCase())))
}

/** Every text that can be reached from a value. */
function* textsOf(value: unknown, seen = new Set<unknown>()): Generator<string> {
  if (typeof value === 'string') yield value
  if (((typeof value !== 'object' || value === null) && typeof value !== 'function') || seen.has(value))
    return
  seen.add(value)
  if (value instanceof Uint8Array) yield Buffer.from(value).toString('latin1')
  for (const key of Reflect.ownKeys(value)) {
    yield String(key)
    yield* textsOf(Reflect.get(value, key), seen)
  }
}

/** The secrets that an error of the library holds anywhere. */
function leaks(error: unknown): readonly string[] {
  expect(error).toBeInstanceOf(RequestError)
  const shown = [
    ...textsOf(error),
    inspect(error, { depth: Infinity, showHidden: true, getters: true, maxStringLength: Infinity }),
    JSON.stringify(error),
    String(error),
  ]
  const all = [...new Set(shown)].join('\n')
  return secretsOf(all)
}

it('the check itself finds each secret in each encoding', () => {
  for (const secret of secrets)
    for (const [name, encode] of ENCODINGS)
      expect([name, ...secretsOf(`x ${encode(secret)} y`)]).toContain(secret)
})

describe.each([
  { name: 'undici', createExchange: createUndiciExchange },
  { name: 'fetch', createExchange: createFetchExchange },
])('a peer that repeats the request, over $name', ({ createExchange }) => {
  async function failures(origin: string): Promise<readonly unknown[]> {
    const transport = createTransport({ baseUrl: origin, apiKey, exchange: createExchange(), retries: 0 })
    const streamed = Promise.withResolvers<unknown>()
    const sink = { message() {}, retry() {}, end: () => streamed.resolve('ended'), error: streamed.resolve }
    transport.stream(get, sink)
    const requested = transport.request(get).then(
      () => 'answered',
      (error: unknown) => error,
    )
    return await Promise.all([requested, streamed.promise])
  }

  type Place = (text: string, response: ServerResponse, request: IncomingMessage) => unknown
  const error =
    (body: unknown): Place =>
    (_said, response) =>
      response.writeHead(422, { 'content-type': 'application/json' }).end(JSON.stringify(body))

  it.each<[string, Place]>([
    [
      'the message of an error',
      (text, ...rest) => error({ error: { ref_id: text, message: `bad ${text}` } })(text, ...rest),
    ],
    [
      'the detail of an error, its names too',
      (text, ...rest) =>
        error({
          error: { ref_id: 'r', message: 'bad', detail: { [text]: { [text]: [text, { a: text }] } } },
        })(text, ...rest),
    ],
    [
      'an issue',
      (text, ...rest) =>
        error({ detail: [{ loc: [text, 0], msg: text, type: text, input: { [text]: text } }] })(
          text,
          ...rest,
        ),
    ],
    ['a detail in words', (text, ...rest) => error({ detail: text })(text, ...rest)],
    [
      'a page',
      (text, response) => response.writeHead(502, { 'content-type': 'text/html' }).end(`<p>${text}</p>`),
    ],
    [
      'a page with the wrong content type',
      (text, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${text}</p> end`),
    ],
    [
      'a compressed page',
      (text, response) =>
        response
          .writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' })
          .end(gzipSync(`${text} end`)),
    ],
    [
      'malformed JSON',
      (text, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(`${text}{`),
    ],
    [
      'a body in another coding',
      (text, response) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'deflate' })
          .end(deflateRawSync(text)),
    ],
    [
      'a body that is not in its coding',
      (text, response) =>
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(text),
    ],
    [
      'a truncated body',
      (text, response) =>
        response
          .writeHead(200, { 'content-length': '9999', 'content-type': 'application/json' })
          .write(text, () => response.destroy()),
    ],
    [
      'a truncated error body',
      (text, response) =>
        response.writeHead(403, { 'content-length': '9999' }).write(text, () => response.destroy()),
    ],
  ])('keeps it out of the errors of %s', async (_what, place) => {
    for (const text of ENCODED_SECRETS) {
      const { origin } = await serve((request, response) => place(text, response, request))
      for (const failure of await failures(origin)) expect(leaks(failure)).toEqual([])
    }
  })

  // A header can hold only ASCII, so the server of these cases writes the bytes itself.
  it.each<[string, (text: string) => string]>([
    [
      'a content type',
      (text) => `HTTP/1.1 200 OK\r\ncontent-type: text/plain; ${text}\r\ncontent-length: 5\r\n\r\nhello`,
    ],
    [
      'a content coding',
      (text) =>
        `HTTP/1.1 200 OK\r\ncontent-encoding: ${text}\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nhello`,
    ],
    [
      'many content codings',
      (text) =>
        `HTTP/1.1 200 OK\r\ncontent-encoding: ${`${text},`.repeat(9)}\r\ncontent-length: 5\r\n\r\nhello`,
    ],
    ['a redirect', (text) => `HTTP/1.1 302 ${text}\r\nlocation: /${text}\r\ncontent-length: 0\r\n\r\n`],
    [
      'the time to retry',
      (text) => `HTTP/1.1 429 ${text}\r\nretry-after: ${text}\r\ndate: ${text}\r\ncontent-length: 0\r\n\r\n`,
    ],
    ['a response that is not HTTP', (text) => `${text}\r\n\r\n`],
    ['a malformed status line', (text) => `HTTP/1.1 ${text}\r\n\r\n`],
    ['a malformed header', (text) => `HTTP/1.1 200 OK\r\n${text}\r\n: ${text}\r\n\r\n`],
    [
      'a malformed chunk',
      (text) =>
        `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${text}\r\n`,
    ],
    ['two lengths', (text) => `HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: ${text}\r\n\r\nhello`],
  ])('keeps it out of the errors of %s', async (_what, answer) => {
    for (const text of ENCODED_SECRETS) {
      const port = await serveTcp((socket) => socket.once('data', () => socket.end(answer(text))))
      for (const failure of await failures(`http://127.0.0.1:${port}`)) expect(leaks(failure)).toEqual([])
    }
  })

  it('keeps it out of the error where nothing listens', async () => {
    for (const failure of await failures(await closedOrigin())) expect(leaks(failure)).toEqual([])
  })
})

describe('a token of several thousand characters', () => {
  it('does not change the type of an error', async () => {
    const { origin } = await serve((_request, response) => void response.writeHead(404).end('no such thing'))
    const long = { authorization: `Bearer ${'aB3-'.repeat(2_000)}` }
    const transport = createTransport({ baseUrl: origin, apiKey, headers: long, retries: 0 })

    await expect(transport.request({ method: 'GET', path: '/x', idempotent: true })).rejects.toMatchObject({
      status: 404,
    })
  })
})

describe('an error of a custom exchange or fetch', () => {
  it('is passed on without the secrets of the request', async () => {
    const leaking = Object.assign(
      new TypeError(`failed with ${apiKey}`, { cause: new AggregateError([new Error(token)], password) }),
      {
        code: 'ECONNRESET',
        request: { headers: { 'x-api-key': apiKey } },
        data: Buffer.from(apiKey),
        [token]: token,
      },
    )
    const transport = createTransport({
      baseUrl: 'https://research.example',
      apiKey,
      fetch: () => Promise.reject(leaking),
      retries: 0,
    })

    const error = await transport.request(get).catch((failure: unknown) => failure)

    expect(leaks(error)).toEqual([])
    expect(error).toMatchObject({ reason: 'broken', cause: { name: 'TypeError', code: 'ECONNRESET' } })
  })
})

describe('the redactor', () => {
  it('does not change text without a secret', () => {
    const redact = createRedactor(secrets)
    const ordinary = fc.string({ unit: fc.constantFrom(...'abc 012/+="%&\\<'), maxLength: 200 })
    const expected = (text: string) => (secretsOf(text).length === 0 ? text : redact(text))
    fc.assert(
      fc.property(ordinary, (text) => {
        expect(redact(text)).toBe(expected(text))
      }),
    )
  })

  it('removes any secret, at any position and in any encoding', () => {
    const text = fc.string({ unit: 'grapheme-ascii', maxLength: 20 })
    const any = fc.string({ unit: 'grapheme-ascii', minLength: 8, maxLength: 40 })
    fc.assert(
      fc.property(any, text, text, fc.constantFrom(...ENCODINGS), (secret, before, after, [, encode]) => {
        const leak = `${before} ${encode(secret)} ${after}`
        const left = createRedactor([secret])(leak)
        expect(left).toContain('(not shown)')
        expect([...readings(left)].some((reading) => reading.includes(secret))).toBe(false)
      }),
    )
  })

  it.each(ENCODINGS)('removes a secret as long as a token or a cookie: %s', (_how, encode) => {
    const secret = `eyJ%25&\\${'Zx9-'.repeat(3_000)}end`
    const redact = createRedactor([secret, secret.slice(5, 50)])

    // The first and last character of Base64 may contain bits of the bytes around it.
    expect(redact(`it was ${encode(secret)}, yes`)).toMatch(/^it was .{0,4}\(not shown\).{0,4}, yes$/)
  })

  it.each(ENCODINGS)('removes a truncated secret: %s', (_how, encode) => {
    const secret = 'rv-9f%8/a+2C&1d4e7b0c3aa65Zx9-QW7-last'
    const redact = createRedactor([secret])
    const text = encode(secret)

    for (let end = 0; end <= text.length; end++) {
      const left = redact(`it was ${text.slice(0, end)}`)
      for (const reading of readings(left))
        expect(reading.toLowerCase()).not.toContain(secret.slice(0, 12).toLowerCase())
    }
    for (const end of ['...', '"', '…', ' [cut] it was']) {
      const left = redact(`${encode(secret.slice(0, 30))}${end}`)
      expect(left).toMatch(/^.{0,4}\(not shown\)/)
      expect(left.endsWith(end.trim())).toBe(true)
    }
  })

  it('does not change a word that a secret begins with', () => {
    const redact = createRedactor(['research-prod-4f9a77'])

    expect(redact('There is no such research')).toBe('There is no such research')
  })

  it('removes secrets from numbers and keys of JSON, without setting a prototype', () => {
    const redact = createRedactor(['1234567890'])
    const value: unknown = JSON.parse('{"__proto__":{"a":1234567890},"1234567890":[12345678901,5,null,true]}')

    const redacted = redactJson(value, redact)

    expect(JSON.stringify(redacted)).toBe(
      '{"(not shown)":["(not shown)",5,null,true],"__proto__":{"a":"(not shown)"}}',
    )
    expect(Object.getPrototypeOf(redacted)).toBe(Object.prototype)
  })
})
