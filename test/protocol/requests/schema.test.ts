import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import * as s from '../../../src/protocol/requests/kinds.ts'
import { checkRequest } from '../../../src/protocol/requests/check.ts'
import { createMonitorRequest } from '../../../src/protocol/requests/monitors.ts'
import type { Shape } from '../../../src/protocol/requests/schema.ts'
import { searchRequest } from '../../../src/protocol/requests/search.ts'
import { addRunsRequest, createRunRequest } from '../../../src/protocol/requests/tasks.ts'

interface Thing {
  readonly name: string
  readonly size?: number
  readonly color?: 'red' | 'green'
  readonly parts?: readonly { readonly id: string; readonly weight?: number }[]
}
type Answer = { readonly type: 'yes' } | { readonly type: 'no'; readonly reason?: string }

const name = s.text()
const size = s.integer(1)
const color = s.oneOf(['red', 'green'])
const parts = s.list(
  s.object<{ readonly id: string; readonly weight?: number }>({ id: s.text() }, { weight: s.integer(0) }),
  'choices',
)

// Each line below an expected error is one that `tsc` must refuse: it fails when there is no error.
describe('a schema', () => {
  it('compiles only with the exact fields of its interface', () => {
    s.object<Thing>({ name }, { size, color, parts })
    // @ts-expect-error: a field is missing that the interface has
    s.object<Thing>({ name }, { size, color })
    // @ts-expect-error: a field that the interface does not have
    s.object<Thing>({ name }, { size, color, parts, more: s.text() })
    // @ts-expect-error: a required field is missing
    s.object<Thing>({}, { size, color, parts })
    // @ts-expect-error: a required field among the optional ones
    s.object<Thing>({}, { name, size, color, parts })
    // @ts-expect-error: an optional field among the required ones
    s.object<Thing>({ name, size }, { color, parts })
    // @ts-expect-error: another type
    s.object<Thing>({ name }, { size: s.text(), color, parts })
    // @ts-expect-error: too few values
    s.object<Thing>({ name }, { size, color: s.oneOf(['red']), parts })
    // @ts-expect-error: too many values
    s.object<Thing>({ name }, { size, color: s.oneOf(['red', 'green', 'blue']), parts })
    // @ts-expect-error: a field within an entry is missing
    s.object<Thing>({ name }, { size, color, parts: s.list(s.object({ id: s.text() }, {}), 'choices') })
    s.options<{ readonly a?: string }>({ a: s.text() }, { names: ['a'], expected: 'an a' })
    // @ts-expect-error: a name that is no field
    s.options<{ readonly a?: string }>({ a: s.text() }, { names: ['b'], expected: 'an a' })
    // @ts-expect-error: not all fields are optional
    s.options<Thing>({ size, color, parts })
    s.variants<Answer>({ yes: s.options({}), no: s.options({ reason: s.text() }) })
    // @ts-expect-error: a variant is missing
    s.variants<Answer>({ yes: s.options({}) })
    // @ts-expect-error: a field of a variant is missing
    s.variants<Answer>({ yes: s.options({}), no: s.options({}) })
    expect.assertions(0)
  })

  it('accepts fields that it does not name', () => {
    const schema = s.object<Thing>({ name }, { size, color, parts })
    expect(() => checkRequest(schema, { name: 'x', other: 1 })).not.toThrow()
  })
})

describe('the check of a request', () => {
  const messageOf = (input: object) => {
    try {
      checkRequest(addRunsRequest, { inputs: [input] })
    } catch (error) {
      return error instanceof Error ? error.message : undefined
    }
    return undefined
  }
  const server = { type: 'url', url: 'https://tools.example', name: 'tools' }

  it.each([
    [{ input: ' ' }, 'inputs[0].input must be a non-empty string, got " "'],
    [{ input: 5 }, 'inputs[0].input must be a non-empty string or an object, got 5'],
    [{ input: 'x', enable_events: 'yes' }, 'inputs[0].enable_events must be a boolean, got "yes"'],
    [
      { input: 'x', task_spec: { output_schema: { type: 'xml' } } },
      'inputs[0].task_spec.output_schema.type must be one of json, text, auto, got "xml"',
    ],
    [
      { input: 'x', source_policy: { include_domains: ['.edu', 'a b'] } },
      'inputs[0].source_policy.include_domains[1] must be a domain such as example.org, or a suffix such as .edu, got "a b"',
    ],
  ])('names the field of %j, the expected and the given value', (input, message) => {
    expect(messageOf(input)).toBe(message)
  })

  describe('shows no credential', () => {
    const secret = 'Bearer sesame'
    const headers = { authorization: secret }
    const hook = 'https://hooks.example/sesame'
    const full = { ...server, headers }
    const run = { input: 'x', mcp_servers: [full], webhook: { url: hook, event_types: [] } }
    const servers = (mcp_servers: unknown) => ({ inputs: [{ input: 'x', mcp_servers }] })
    const webhook = (of: unknown) => ({ inputs: [{ input: 'x', webhook: of }] })
    const monitor = { type: 'event_stream', frequency: '1d', settings: { query: 'q' } }
    const server0 = 'inputs[0].mcp_servers[0]'

    it.each<[string, Shape, unknown]>([
      ['request', addRunsRequest, secret],
      ['request', addRunsRequest, [run]],
      ['inputs', addRunsRequest, { inputs: run }],
      ['inputs', addRunsRequest, { inputs: secret }],
      ['inputs[0]', addRunsRequest, { inputs: [secret] }],
      ['inputs[0]', addRunsRequest, { inputs: [[run]] }],
      ['inputs[0].mcp_servers', addRunsRequest, servers(full)],
      ['inputs[0].mcp_servers', addRunsRequest, servers(secret)],
      [server0, addRunsRequest, servers([secret])],
      [server0, addRunsRequest, servers([[full]])],
      [`${server0}.type`, addRunsRequest, servers([{ ...full, type: 'sse' }])],
      [`${server0}.name`, addRunsRequest, servers([{ ...full, name: '' }])],
      [`${server0}.url`, addRunsRequest, servers([{ ...full, url: 'https://me:sesame@tools.example' }])],
      [`${server0}.url`, addRunsRequest, servers([{ ...full, url: { href: secret } }])],
      [`${server0}.headers`, addRunsRequest, servers([{ ...full, headers: secret }])],
      [`${server0}.headers`, addRunsRequest, servers([{ ...full, headers: [['authorization', secret]] }])],
      [
        `${server0}.headers`,
        addRunsRequest,
        servers([{ ...full, headers: new Map(Object.entries(headers)) }]),
      ],
      [
        `${server0}.headers.authorization`,
        addRunsRequest,
        servers([{ ...full, headers: { authorization: [secret] } }]),
      ],
      ['inputs[0].webhook', addRunsRequest, webhook(hook)],
      ['inputs[0].webhook', addRunsRequest, webhook([hook])],
      ['inputs[0].webhook.url', addRunsRequest, webhook({ url: [hook], event_types: [] })],
      ['inputs[0].webhook.event_types', addRunsRequest, webhook({ url: hook })],
      ['request', createRunRequest, [run]],
      ['request', createMonitorRequest, hook],
      ['type', createMonitorRequest, { ...monitor, type: 'x', webhook: { url: hook } }],
      ['frequency', createMonitorRequest, { ...monitor, frequency: 5, webhook: { url: hook } }],
      ['webhook', createMonitorRequest, { ...monitor, webhook: hook }],
      ['webhook.event_types', createMonitorRequest, { ...monitor, webhook: { url: hook } }],
    ])('if %s is invalid: %#', (argument, schema, request) => {
      const error = errorOf(schema, request)

      expect(error).toMatchObject({ name: 'ArgumentError', argument })
      expect(inspect(error, { depth: null })).not.toContain('sesame')
    })

    it.each<[string, Shape, unknown, unknown]>([
      ['inputs[0].task_spec', addRunsRequest, { inputs: [{ input: 'x', task_spec: 'a spec' }] }, 'a spec'],
      ['inputs[0].source_policy', addRunsRequest, { inputs: [{ input: 'x', source_policy: ['a'] }] }, ['a']],
      ['default_task_spec', addRunsRequest, { inputs: [run], default_task_spec: 5 }, 5],
      ['settings', createMonitorRequest, { ...monitor, settings: 'tides' }, 'tides'],
      ['request', searchRequest, 'tides', 'tides'],
      ['inputs', addRunsRequest, {}, undefined],
    ])('and shows the value of %s, which cannot hold one', (argument, schema, request, value) => {
      expect(errorOf(schema, request)).toMatchObject({ argument, value })
    })
  })
})

function errorOf(schema: Shape, request: unknown): unknown {
  try {
    checkRequest(schema, request)
  } catch (error) {
    return error
  }
  return undefined
}
