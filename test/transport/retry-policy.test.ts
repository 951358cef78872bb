import { describe, expect, it } from 'vitest'
import { ArgumentError } from '../../src/protocol/argument-error.ts'
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  NotFoundError,
  PaymentRequiredError,
  PermissionError,
  ProtocolError,
  RateLimitError,
  ServerError,
  ValidationError,
} from '../../src/transport/errors.ts'
import { mayRetry, apiErrorOf } from '../../src/transport/retry-policy.ts'

const request = { method: 'POST', path: '/v1/x?a=1' }

/** The error of a response with this status and body, for a request with the key `hunter2`. */
const refuse = (status: number, text = '') =>
  apiErrorOf(
    { request, now: () => 0, redact: (one) => one.replaceAll('hunter2', '***') },
    status,
    () => undefined,
    text,
  )

describe('apiErrorOf', () => {
  it.each([
    [400, ApiError, false, 'no'],
    [401, AuthenticationError, false, 'no'],
    [402, PaymentRequiredError, false, 'no'],
    [403, PermissionError, false, 'no'],
    [404, NotFoundError, false, 'no'],
    [408, ApiError, true, 'maybe'],
    [409, ConflictError, false, 'no'],
    [413, ApiError, false, 'no'],
    [422, ValidationError, false, 'no'],
    [429, RateLimitError, true, 'no'],
    [500, ServerError, true, 'maybe'],
    [501, ServerError, false, 'maybe'],
    [502, ServerError, true, 'maybe'],
    [503, ServerError, true, 'maybe'],
    [504, ServerError, true, 'maybe'],
    [529, ServerError, true, 'maybe'],
  ] as const)('maps a %i', (status, type, retryable, taken) => {
    const error = refuse(status)

    expect(error).toBeInstanceOf(type)
    expect(error).toMatchObject({
      name: type.name,
      status,
      retryable,
      taken,
      method: 'POST',
      path: '/v1/x?a=1',
    })
    expect(error.message).toBe(`POST /v1/x?a=1: ${status}`)
  })

  it('keeps the fields of an ErrorResponse', () => {
    const body = { type: 'error', error: { ref_id: 'r-1', message: 'no such monitor', detail: { id: 'm' } } }

    const error = refuse(404, JSON.stringify(body))

    expect(error).toMatchObject({ ref_id: 'r-1', detail: { id: 'm' }, issues: [] })
    expect(error.message).toBe('POST /v1/x?a=1: 404 no such monitor (ref_id r-1)')
  })

  it('keeps the message of an ErrorResponse without a reference', () => {
    const error = refuse(500, '{"error":{"message":"oh"}}')

    expect(error.ref_id).toBeUndefined()
    expect(error.message).toBe('POST /v1/x?a=1: 500 oh')
  })

  it('keeps the issues of a detail list, and drops other entries', () => {
    const issue = { loc: ['body', 'inputs', 0], msg: 'field required', type: 'missing' }

    const error = refuse(422, JSON.stringify({ detail: [issue, 'odd', null] }))

    expect(error.issues).toEqual([issue])
    expect(error.message).toBe('POST /v1/x?a=1: 422 body.inputs.0: field required')
  })

  it.each([
    ['a page of a proxy', '<html>\n  <h1>Bad gateway</h1>', '<html> <h1>Bad gateway</h1>'],
    ['a list', '[1]', '[1]'],
    ['a detail of text', '{"detail":"Not Found"}', 'Not Found'],
    ['truncated JSON', '{"error":{"mess', '{"error":{"mess'],
    ['an error that is not an object', '{"error":"oh"}', '{"error":"oh"}'],
  ])('quotes %s', (_kind, text, quoted) => {
    const error = refuse(502, text)

    expect(error.message).toBe(`POST /v1/x?a=1: 502 ${quoted}`)
    expect(error.ref_id).toBeUndefined()
  })

  it("shows the key neither in a quotation nor in the service's message, in any spelling", () => {
    const page = refuse(502, 'Bad key: hunter2')
    const body = refuse(
      401,
      String.raw`{"error":{"ref_id":"1","message":"bad key hunter\u0032","detail":{"key":["hunter2"]}}}`,
    )

    expect(page.message).toContain('Bad key: ***')
    expect(body).toMatchObject({ detail: { key: ['***'] }, message: expect.stringContaining('bad key ***') })
  })

  it('quotes only the beginning', () => {
    const error = refuse(502, 'x'.repeat(100_000))

    expect(error.message.length).toBeLessThan(300)
  })
})

describe('mayRetry', () => {
  it.each([
    ['a refused connection', new ConnectionError('refused', 'x', request), true, true],
    ['a connection that took too long', new ConnectionError('connect_timeout', 'x', request), true, true],
    ['a broken connection', new ConnectionError('broken', 'x', request), true, false],
    ['an idle timeout', new ConnectionError('silence', 'x', request), true, false],
    ['a headers timeout', new ConnectionError('headers_timeout', 'x', request), true, false],
    ['a response that is not JSON', new ProtocolError('x', request), true, false],
    ['a response that is too large', new ProtocolError('x', request, { retryable: false }), false, false],
    ['429', refuse(429), true, true],
    ['503 of a proxy', refuse(503), true, false],
    [
      '503 of the service',
      refuse(503, '{"type":"error","error":{"ref_id":"r","message":"busy"}}'),
      true,
      true,
    ],
    ['500', refuse(500), true, false],
    ['408', refuse(408), true, false],
    ['422', refuse(422), false, false],
    ['an argument', new ArgumentError('a', 'b', 'c'), false, false],
    ['anything else', { retryable: true, taken: 'no' }, false, false],
  ])('after %s: %#', (_what, error, idempotent, other) => {
    expect([mayRetry(error, true), mayRetry(error, false)]).toEqual([idempotent, other])
  })
})
