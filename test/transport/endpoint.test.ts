import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ArgumentError } from '../../src/protocol/argument-error.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest, TransportSettings } from '../../src/transport/transport.ts'

const settings: TransportSettings = { baseUrl: 'https://research.example', apiKey: 'key-0123456789' }
const get: ApiRequest = { method: 'GET', path: '/v1/x', idempotent: true }

function thrownBy(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  return undefined
}

describe('settings of a transport', () => {
  it.each([
    'https://research.example',
    'https://research.example:8443/prefix/',
    'http://127.0.0.1:8080',
    'http://127.1.2.3',
    'http://[::1]:80',
    'http://localhost:3000/api',
    'http://app.localhost',
  ])('accept the base URL %s', (baseUrl) => {
    expect(() => createTransport({ ...settings, baseUrl })).not.toThrow()
  })

  it.each([
    ['', 'http or https'],
    ['research.example', 'http or https'],
    ['ftp://research.example', 'http or https'],
    ['file:///etc/passwd', 'http or https'],
    ['https://hunter2@research.example', 'credentials'],
    ['https://user:hunter2@research.example', 'credentials'],
    ['https://research.example?key=hunter2', 'query'],
    ['https://research.example#hunter2', 'fragment'],
    ['http://research.example', 'https'],
    ['http://127.0.0.1.example', 'https'],
    ['http://localhost.example', 'https'],
    ['http://10.0.0.1', 'https'],
  ])('refuse the base URL %s without repeating it', (baseUrl, expected) => {
    const error = thrownBy(() => createTransport({ ...settings, baseUrl }))

    expect(error).toBeInstanceOf(ArgumentError)
    expect(error).toMatchObject({ argument: 'baseUrl', message: expect.stringContaining(expected) })
    expect(inspect(error).split('\n')[0]).not.toContain('hunter2')
    expect(error).not.toMatchObject({ value: baseUrl })
  })

  it('accept plain http to another host with allowInsecure', () => {
    const baseUrl = 'http://research.example'

    expect(() => createTransport({ ...settings, baseUrl, allowInsecure: true })).not.toThrow()
  })

  it.each(['', ' ', 'hunter2\n', 'hunter 2', 'hunter2ä', 'hunter2\0'])(
    'refuse the key %j without repeating it',
    (apiKey) => {
      const error = thrownBy(() => createTransport({ ...settings, apiKey }))

      expect(error).toBeInstanceOf(ArgumentError)
      expect(error).toMatchObject({ argument: 'apiKey', value: '(not shown)' })
      expect(String(error)).not.toContain('hunter2')
    },
  )

  it.each<[string, Partial<TransportSettings>]>([
    ['headers', { headers: { 'X-API-Key': 'other' } }],
    ['headers', { headers: { host: 'other' } }],
    ['headers', { headers: { 'bad name': 'x' } }],
    ['headers.x-a', { headers: { 'x-a': 'line\r\nx-api-key: other' } }],
    ['betaHeader', { betaHeader: '' }],
    ['betaHeader', { betaHeader: 'x-api-key' }],
    ['retries', { retries: -1 }],
    ['retries', { retries: 1.5 }],
    ['maxBodyBytes', { maxBodyBytes: 0 }],
    ['maxEventLength', { maxEventLength: 0 }],
    ['timeouts.connect', { timeouts: { connect: 0 } }],
    ['timeouts.headers', { timeouts: { headers: -1 } }],
    ['timeouts.silence', { timeouts: { silence: Number.NaN } }],
    ['backoff.initialDelay', { backoff: { initialDelay: -1 } }],
    ['backoff.maxDelay', { backoff: { maxDelay: Infinity } }],
  ])('refuse an invalid %s', (argument, wrong) => {
    const error = thrownBy(() => createTransport({ ...settings, ...wrong }))

    expect(error).toBeInstanceOf(ArgumentError)
    expect(error).toMatchObject({ argument })
    expect(String(error)).not.toContain('other')
  })

  it('are not visible in the transport', () => {
    const transport = createTransport({ ...settings, headers: { authorization: 'hunter2' } })

    expect(inspect(transport, { depth: 10, showHidden: true })).not.toMatch(/key-0123456789|hunter2/)
  })
})

describe('an invalid request', () => {
  const transport = createTransport({
    ...settings,
    exchange: () => expect.unreachable('something was sent'),
  })
  const sink = { message() {}, retry() {}, end() {}, error() {} }
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle

  it.each<[string, Partial<ApiRequest>]>([
    ['path', { path: 'v1/x' }],
    ['path', { path: '/v1/x?a=1' }],
    ['path', { path: '/v1/x#a' }],
    ['path', { path: '/v1/a b' }],
    ['path', { path: '/v1/ä' }],
    ['path', { path: '/v1\\x' }],
    ['path', { path: '/v1/x\r\nx-api-key: other' }],
    ['body', { body: cycle }],
    ['body', { body: 1n }],
    ['headers', { headers: { 'x-api-key': 'other' } }],
    ['headers.x-a', { headers: { 'x-a': 'ä' } }],
    ['betas', { betas: ['a,b'] }],
    ['timeouts.headers', { timeouts: { headers: 0 } }],
  ])('is refused at the call for its %s', (argument, wrong) => {
    const request = { ...get, ...wrong }

    const errors = [
      thrownBy(() => transport.request(request)),
      thrownBy(() => transport.stream(request, sink)),
    ]

    for (const error of errors) {
      expect(error).toBeInstanceOf(ArgumentError)
      expect(error).toMatchObject({ argument })
    }
  })
})
