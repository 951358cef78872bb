import { describe, expect, it } from 'vitest'
import type * as z from 'zod'
import * as monitors from '../../../src/protocol/requests/monitors.ts'
import * as tasks from '../../../src/protocol/requests/tasks.ts'
import { bodySchema, querySchema } from '../../../src/service/http/request-schema.ts'

describe('a string or an object', () => {
  it.each([
    [5, 'Expected a non-empty string or an object'],
    [{ type: 'xml' }, "type: Invalid discriminator value. Expected 'json' | 'text' | 'auto'"],
    [{ type: 'json' }, 'as json, json_schema: Field required'],
    [{ type: null, json_schema: null }, undefined],
    [{}, undefined],
    [{ json_schema: 5 }, 'as json, json_schema: Invalid input: expected record, received number'],
    [{ json_shema: {} }, 'type: Field required'],
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
    expect(error?.issues.map((issue) => [issue.path, issue.message])).toEqual(
      message === undefined ? undefined : [[['task_spec', 'output_schema'], message]],
    )
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
