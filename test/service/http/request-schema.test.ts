import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import * as monitors from '../../../src/protocol/requests/monitors.ts'
import * as search from '../../../src/protocol/requests/search.ts'
import * as tasks from '../../../src/protocol/requests/tasks.ts'
import { createMonitorBody } from '../../../src/service/monitors/request.ts'
import { bodySchema, querySchema } from '../../../src/service/http/request-schema.ts'

const requests: [string, z.ZodType][] = [
  ['search', bodySchema(search.searchRequest)],
  ['beta search', bodySchema(search.searchBetaRequest)],
  ['creating a monitor', createMonitorBody],
  ['adding runs', bodySchema(tasks.addRunsRequest)],
  ['creating a run', bodySchema(tasks.createRunRequest)],
  ['creating a group', bodySchema(tasks.createGroupRequest)],
  ['adding runs, query', querySchema(tasks.addRunsQuery)],
  ['result of a run, query', querySchema(tasks.runResultQuery)],
  ['events of a group, query', querySchema(tasks.groupEventsQuery)],
  ['runs of a group, query', querySchema(tasks.groupRunsQuery)],
  ['monitors, query', querySchema(monitors.listMonitorsQuery)],
  ['events of a monitor, query', querySchema(monitors.monitorEventsQuery)],
]

describe('the JSON Schema of a request', () => {
  describe.each(['input', 'output'] as const)('as %s', (io) => {
    it.each(requests)('can be derived: %s', (_, schema) => {
      expect(() => z.toJSONSchema(schema, { io })).not.toThrow()
    })

    it('has the limits of lists and objects, and what they consist of', () => {
      expect(z.toJSONSchema(bodySchema(tasks.addRunsRequest), { io })).toMatchObject({
        required: ['inputs'],
        properties: {
          inputs: {
            type: 'array',
            maxItems: 1_000,
            items: {
              required: ['input'],
              properties: {
                metadata: { type: 'object', maxProperties: 100 },
                mcp_servers: {
                  maxItems: 20,
                  items: {
                    properties: {
                      url: { type: 'string', format: 'uri', maxLength: 2_048 },
                      headers: {
                        type: 'object',
                        maxProperties: 50,
                        propertyNames: { maxLength: 512 },
                        additionalProperties: { type: 'string', maxLength: 8_192 },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      })
    })
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
    [{ type: 'json' }, 'as json, json_schema: Field required'],
    [{}, 'as json, json_schema: Field required'],
    [
      { type: 'json', json_schema: 5 },
      'as json, json_schema: Invalid input: expected record, received number',
    ],
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

  it('may have a list with commas', () => {
    expect(taken({ status: ['active,cancelled'], type: ['snapshot', 'event_stream,snapshot'] }).data).toEqual(
      {
        status: ['active', 'cancelled'],
        type: ['snapshot', 'event_stream', 'snapshot'],
      },
    )
    expect(taken({ status: ['active,paused'] }).success).toBe(false)
  })

  it.each(['0', '10001', '1.5', '-1', '1e3', '', 'x', '0x10', '9'.repeat(16), '9'.repeat(400)])(
    'has no limit of %j',
    (limit) => {
      const { error } = taken({ limit: [limit] })
      expect(error?.issues.map(({ message }) => message)).toEqual(['Expected an integer from 1 to 10000'])
    },
  )
})

describe('a query with a literal number', () => {
  const isAccepted = (schema: z.ZodType, query: object) => schema.safeParse(query).success
  const limit = querySchema(monitors.monitorEventsQuery)
  const timeout = querySchema(tasks.groupEventsQuery)
  const wait = querySchema(tasks.runResultQuery)

  it.each([
    ['1', true, true],
    ['007', true, true],
    ['1.0', false, true],
    ['20.000', false, true],
    ['0', false, true],
    ['0.5', false, true],
    ['0.0005', false, false],
    ['.5', false, false],
    ['1.', false, false],
    ['+1', false, false],
    ['-1', false, false],
    ['1e2', false, false],
    [' 1', false, false],
    ['1 ', false, false],
    ['0x1', false, false],
    ['', false, false],
    ['٣', false, false],
    ['999999999.999', false, true],
    ['1000000000', false, false],
    ['9'.repeat(16), false, false],
  ])('%j is an integer: %s, a time: %s', (text, isInteger, isTime) => {
    expect(isAccepted(limit, { limit: [text] })).toBe(isInteger)
    expect(isAccepted(timeout, { timeout: [text] })).toBe(isTime)
    expect(isAccepted(wait, { timeout: [text] })).toBe(isTime)
  })
})
