import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import * as monitors from '../../../src/protocol/requests/monitors.ts'
import * as search from '../../../src/protocol/requests/search.ts'
import * as tasks from '../../../src/protocol/requests/tasks.ts'
import { bodySchema, querySchema } from '../../../src/service/http/request-schema.ts'

const requests: [string, z.ZodType][] = [
  ['search', bodySchema(search.searchRequest)],
  ['beta search', bodySchema(search.searchBetaRequest)],
  ['creating a monitor', bodySchema(monitors.createMonitorRequest)],
  ['adding runs', bodySchema(tasks.addRunsRequest)],
  ['creating a run', bodySchema(tasks.createRunRequest)],
  ['creating a group', bodySchema(tasks.createGroupRequest)],
]

describe('the JSON Schema of a request', () => {
  it.each(requests)('can be derived: %s', (_, schema) => {
    expect(() => z.toJSONSchema(schema)).not.toThrow()
  })

  it('has the fields, what is required, and the limits of the service', () => {
    expect(z.toJSONSchema(bodySchema(search.searchRequest))).toMatchObject({
      type: 'object',
      required: ['search_queries'],
      properties: {
        search_queries: {
          type: 'array',
          minItems: 1,
          items: { type: 'string', minLength: 1, maxLength: 5_000 },
        },
        mode: { type: 'string', enum: ['turbo', 'fast', 'basic', 'advanced'] },
        max_chars_total: { type: 'integer', minimum: 1 },
      },
    })
    expect(z.toJSONSchema(bodySchema(tasks.createRunRequest))).toMatchObject({
      required: ['input', 'processor'],
      properties: { webhook: { properties: { url: { type: 'string', format: 'uri' } } } },
    })
  })
})

describe('a string or an object', () => {
  it.each([
    [5, 'Expected a non-empty string or an object'],
    [{ type: 'xml' }, "type: Invalid discriminator value. Expected 'json' | 'text' | 'auto'"],
    [{ type: 'json' }, 'json_schema: Invalid input: expected record, received undefined'],
  ])('is refused with what is wrong in it: %j', (output_schema, message) => {
    const { error } = bodySchema(tasks.createRunRequest).safeParse({
      input: 'x',
      processor: 'base',
      task_spec: { output_schema },
    })
    expect(error?.issues).toMatchObject([{ path: ['task_spec', 'output_schema'], message }])
  })
})

describe('a query', () => {
  const taken = (query: Readonly<Record<string, string[]>>) =>
    querySchema(monitors.listMonitorsQuery).safeParse(query)

  it('is read from strings, the first of those that may not be repeated', () => {
    const query = { limit: ['7', '8'], type: ['snapshot', 'event_stream'], other: ['x'] }

    expect(taken(query).data).toEqual({ limit: 7, type: ['snapshot', 'event_stream'] })
  })

  it.each(['0', '10001', '1.5', '-1', '1e3', '', 'x', '0x10', '9'.repeat(16)])(
    'has no limit of %j',
    (limit) => {
      const { error } = taken({ limit: [limit] })
      expect(error?.issues.map(({ message }) => message)).toEqual(['Expected an integer from 1 to 10000'])
    },
  )
})
