import { describe, expect, it } from 'vitest'
import { FIND_ALL_BETA } from '../../../src/protocol/betas.ts'
import type { Shape } from '../../../src/protocol/requests/schema.ts'
import { MAX_BODY } from '../../../src/service/http/body.ts'
import { ENDPOINTS } from '../../../src/service/openapi/endpoints.ts'
import { running } from '../running.ts'

// Each response is also validated against the OpenAPI document, which has no 500 without a ref_id.

const HOSTILE = [
  `'; DROP TABLE task_runs; --`,
  `" OR 1=1 --`,
  `tides" NEAR/0 (* AND title:x`,
  `*) OR rowid MATCH "`,
  '../../etc/passwd\u0000',
]
const TRAVERSALS = [
  '..%2f..%2fetc%2fpasswd',
  '%252e%252e',
  '%00',
  `'%20OR%20'1'='1`,
  '%F0%9F',
  'a'.repeat(4_000),
]

const routes = ENDPOINTS.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const)
const withBody = routes.filter(([, { body }]) => body !== undefined)
const withIds = routes.filter(([, { path }]) => path.includes(':'))
/** Beta features that every request of an area may need. */
const headers = { 'service-beta': FIND_ALL_BETA }
const at = (path: string, id = 'any') => path.replaceAll(/:\w+/g, id)

/** A request whose strings are all hostile. */
function hostile(shape: Shape, text: string): unknown {
  switch (shape.kind) {
    case 'text':
      return text
    case 'number':
      return shape.isMinExcluded === true ? shape.min + 1 : shape.min
    case 'boolean':
      return true
    case 'unknown':
      return text
    case 'choice':
      return shape.values[0]
    case 'list':
      return [hostile(shape.item, text)]
    case 'record':
      return { [text.slice(0, 10)]: text }
    case 'json':
      return { [text]: text }
    case 'either':
      return hostile(shape.simple.kind === 'text' ? shape.simple : shape.other, text)
    case 'nullable':
    case 'defaulted':
      return hostile(shape.value, text)
    case 'object':
      return Object.fromEntries(
        Object.entries({ ...shape.required, ...shape.optional }).map(([name, part]) => [
          name,
          hostile(part, text),
        ]),
      )
    case 'variants': {
      const [first] = Object.entries(shape.variants)
      return first === undefined ? {} : { type: first[0], ...Object(hostile(first[1], text)) }
    }
  }
}

describe.each(routes)('%s', (_, { method, path }) => {
  it('without a key, or with a bearer token only, is a 401', async () => {
    const { service, send } = await running()
    const bearer = { method, headers: { authorization: `Bearer ${service.apiKey}` } }
    const answers = await Promise.all([send(at(path), { method }), send(at(path), bearer)])

    expect(answers.map(({ status }) => status)).toEqual([401, 401])
  })
})

describe.each(withBody)('%s', (_, { path, body }) => {
  it('refuses a body that is too large or too deep', async () => {
    const { post } = await running()
    const deep = `{"a":${'['.repeat(300)}${']'.repeat(300)}}`
    const large = /\/groups\/[^/]+\/runs$/.test(path) ? 100 * 1024 * 1024 : MAX_BODY + 1
    // Bytes, since the encoding of a text of this length takes longer than all else.
    const spaces = Buffer.alloc(large, ' ')
    const answers = [await post(at(path), deep, headers), await post(at(path), spaces, headers)]

    // A request for an unknown id may be refused for that.
    expect([
      [422, 413],
      [404, 413],
    ]).toContainEqual(answers.map(({ status }) => status))
  })

  it.each(HOSTILE)('takes syntax of SQL and of the index as text: %j', async (text) => {
    const { post } = await running({ quotas: false })
    const whole = body === undefined ? {} : hostile(body.schema, text)
    const requests = [
      whole,
      // With the required fields alone, most requests are valid.
      ...(body?.schema.kind === 'object'
        ? [hostile({ ...body.schema, optional: {} }, text), hostile({ ...body.schema, required: {} }, text)]
        : []),
    ]
    for (const request of requests) {
      const { status } = await post(at(path), request, headers)
      expect([200, 201, 202, 404, 422]).toContain(status)
    }
  })
})

describe.each(withIds)('%s', (_, { method, path }) => {
  it.each(TRAVERSALS)('has no id %s', async (id) => {
    const { service, send } = await running()
    const { status } = await send(at(path, id), {
      method,
      headers: { ...headers, 'x-api-key': service.apiKey },
    })

    expect([404, 405]).toContain(status)
  })
})
