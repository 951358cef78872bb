import { describe, expect, it } from 'vitest'
import { chatRequest } from '../../../src/protocol/requests/chat.ts'
import { jsonSchemaOf } from '../../../src/protocol/requests/json-schema.ts'
import * as s from '../../../src/protocol/requests/kinds.ts'
import { createMonitorRequest } from '../../../src/protocol/requests/monitors.ts'
import { searchRequest } from '../../../src/protocol/requests/search.ts'
import { addRunsRequest, createRunRequest } from '../../../src/protocol/requests/tasks.ts'
import { LIMITS } from '../../../src/service/http/request-limits.ts'

describe('the JSON Schema of a request', () => {
  it('has the fields, what is required, and what a text must be', () => {
    expect(jsonSchemaOf(searchRequest)).toMatchObject({
      type: 'object',
      required: ['search_queries'],
      properties: {
        search_queries: { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
        mode: { type: 'string', enum: ['turbo', 'fast', 'basic', 'advanced'] },
        max_chars_total: { type: 'integer', minimum: 1 },
        advanced_settings: {
          properties: {
            source_policy: { properties: { after_date: { description: 'a date, YYYY-MM-DD' } } },
            fetch_policy: { properties: { timeout_seconds: { type: 'number', exclusiveMinimum: 0 } } },
          },
        },
      },
    })
    expect(jsonSchemaOf(createRunRequest)).toMatchObject({ required: ['input', 'processor'] })
  })

  it('has no limit of a service, unless it is given', () => {
    expect(jsonSchemaOf(searchRequest.required['search_queries'] ?? s.unknown)).toEqual({
      type: 'array',
      minItems: 1,
      items: { type: 'string', minLength: 1 },
    })
    expect(jsonSchemaOf(addRunsRequest, LIMITS)).toMatchObject({
      properties: {
        inputs: {
          maxItems: 1_000,
          items: {
            properties: {
              metadata: { type: 'object', maxProperties: 100 },
              mcp_servers: {
                maxItems: 20,
                items: {
                  required: ['url', 'name'],
                  properties: {
                    type: { default: 'url' },
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

  it('has what is discriminated by JSON or by a type, which is required unless it has a default', () => {
    expect(jsonSchemaOf(createMonitorRequest)).toMatchObject({
      anyOf: [
        { required: ['type', 'frequency', 'settings'], properties: { type: { const: 'event_stream' } } },
        { required: ['type', 'frequency', 'settings'], properties: { type: { const: 'snapshot' } } },
      ],
    })
    expect(jsonSchemaOf(createRunRequest)).toMatchObject({
      properties: {
        task_spec: {
          properties: {
            output_schema: {
              anyOf: [{ type: 'string' }, { anyOf: [{ required: ['json_schema'] }, {}, {}] }],
            },
          },
        },
      },
    })
    expect(jsonSchemaOf(chatRequest)).toMatchObject({
      properties: { messages: { items: { required: ['role', 'content'] } } },
    })
    expect(jsonSchemaOf(s.orNull(s.flag))).toEqual({ anyOf: [{ type: 'boolean' }, { type: 'null' }] })
  })
})
