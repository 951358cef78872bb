import { describe, expect, it } from 'vitest'
import * as s from '../../../src/protocol/requests/kinds.ts'
import { checkRequest } from '../../../src/protocol/requests/check.ts'
import { addRunsRequest } from '../../../src/protocol/requests/tasks.ts'

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

  it.each([
    [{ ...server, headers: 'Bearer secret' }],
    [{ ...server, headers: { authorization: ['Bearer secret'] } }],
    [{ ...server, url: 'https://me:secret@tools.example' }],
  ])('shows no credential for a tool server: %#', (mcpServer) => {
    const message = messageOf({ input: 'x', mcp_servers: [mcpServer] })
    expect(message).toMatch(/^inputs\[0\]\.mcp_servers\[0\]\.(headers|headers\.authorization|url) must be /)
    expect(message).not.toContain('secret@')
    expect(message).not.toContain('Bearer')
  })
})
