import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it, vi } from 'vitest'
import type { Routes } from '../../../src/service/app.ts'
import { MCP_PATH } from '../../../src/service/mcp/route.ts'
import { DOCUMENT_PATH, documentPath, openApiDocument } from '../../../src/service/openapi/document.ts'
import { ENDPOINTS, WEBHOOKS } from '../../../src/service/openapi/endpoints.ts'
import { running } from '../running.ts'

/** The routes of the services of this file. */
const apps = vi.hoisted((): Routes[] => [])
vi.mock(import('../../../src/service/app.ts'), async (original) => {
  const { createApp } = await original()
  return {
    createApp: (options) => {
      const app = createApp(options)
      apps.push(app)
      return app
    },
  }
})

const document = openApiDocument({ betaHeader: 'service-beta' })

describe('the table of endpoints', () => {
  it('has each route of the service, and no other', async () => {
    await running()
    const routes = apps.at(-1)?.routes.filter(({ method }) => method !== 'ALL') ?? []
    // Middleware of one path is listed as a route too.
    const served = [...new Set(routes.map(({ method, path }) => `${method} ${path}`))]
    const described = ENDPOINTS.map(({ method, path }) => `${method} ${path}`)

    const others = [`GET ${DOCUMENT_PATH}`, `POST ${MCP_PATH}`]
    expect([...described, ...others].toSorted()).toEqual(served.toSorted())
  })

  it('names each operation once', () => {
    const names = ENDPOINTS.map(({ operationId }) => operationId)
    expect(names).toHaveLength(new Set(names).size)
  })
})

describe('GET /openapi.json', () => {
  it('returns the document', async () => {
    const { get } = await running()
    const answer = await get<unknown>(DOCUMENT_PATH)

    expect(answer.status).toBe(200)
    expect(answer.body).toEqual(JSON.parse(JSON.stringify(document)))
  })

  it('requires the key, as every request does', async () => {
    const { send } = await running()
    expect((await send(DOCUMENT_PATH)).status).toBe(401)
  })
})

describe('the OpenAPI document', () => {
  it('is valid by the schema of OpenAPI 3.1', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(structuredClone(document))

    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(validator.version).toBe('3.1')
  })

  it('has every endpoint and every webhook', () => {
    for (const { method, path } of ENDPOINTS)
      expect(document.paths).toHaveProperty([documentPath(path), method.toLowerCase(), 'operationId'])
    expect(Object.keys(document.webhooks)).toEqual(Object.keys(WEBHOOKS))
  })

  it('refers only to components that it has', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, name = '']) => name,
    )
    const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`)

    expect(new Set(references)).toEqual(new Set(names))
  })

  it('derives the requests from the schemas that validate them', () => {
    expect(document.components.schemas).toMatchObject({
      SearchRequest: {
        required: ['search_queries'],
        properties: { search_queries: { minItems: 1, maxItems: 50, items: { maxLength: 5_000 } } },
      },
      AddRunsRequest: { properties: { inputs: { maxItems: 1_000 } } },
    })
    expect(document.paths).toHaveProperty(
      ['/v1/monitors/{monitor_id}/events', 'get', 'parameters'],
      expect.arrayContaining([
        { name: 'monitor_id', in: 'path', required: true, schema: { type: 'string' } },
        { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100 } },
      ]),
    )
  })

  it('lists the forms of schemas, whose type may be absent', () => {
    const { schemas } = document.components
    const json = { properties: { type: { const: 'json', default: 'json' } }, required: ['json_schema'] }
    const text = { properties: { type: { const: 'text', default: 'text' } } }
    const auto = { properties: { type: { const: 'auto', default: 'auto' } } }
    const formsOf = (forms: object) => ({ anyOf: [{ type: 'string' }, { anyOf: forms }] })

    expect(schemas).toMatchObject({
      CreateRunRequest: {
        properties: {
          task_spec: {
            properties: { output_schema: formsOf([json, text, auto]), input_schema: formsOf([json, text]) },
          },
        },
      },
    })
  })

  it('has the 422 of task groups for their endpoints only', () => {
    const refused = (path: string) => [
      path,
      'post',
      'responses',
      '422',
      'content',
      'application/json',
      'schema',
      '$ref',
    ]
    expect(document.paths).toHaveProperty(
      refused('/v1/tasks/groups/{taskgroup_id}/runs'),
      '#/components/schemas/ValidationErrorResponse',
    )
    expect(document.paths).toHaveProperty(refused('/v1/search'), '#/components/schemas/ErrorResponse')
  })

  it('names the key, the beta header and Retry-After', () => {
    const { paths, components } = openApiDocument({ betaHeader: 'acme-beta' })
    const run = ['/v1/tasks/runs', 'post']

    expect(components).toHaveProperty('securitySchemes.apiKey', {
      type: 'apiKey',
      in: 'header',
      name: 'x-api-key',
    })
    expect(paths).toHaveProperty([...run, 'parameters', '0', 'name'], 'acme-beta')
    expect(paths).toHaveProperty([...run, 'responses', '429', 'headers', 'Retry-After'])
  })
})
