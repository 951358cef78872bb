import { errorResponse, validationErrorResponse } from './answers/problems.ts'
import type { JsonSchema } from '../../protocol/requests/json-schema.ts'
import type { AnyAnswer } from './answers/kinds.ts'
import type { Endpoint } from './endpoint.ts'
import { ENDPOINTS, WEBHOOKS } from './endpoints.ts'
import { Components, requestJsonSchema } from './json-schema.ts'

/** Settings of {@link openApiDocument}. */
export interface DocumentOptions {
  /** The name of the beta header. */
  readonly betaHeader: string
}

/** An OpenAPI document. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly paths: Readonly<Record<string, unknown>>
  readonly webhooks: Readonly<Record<string, unknown>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> } & JsonSchema
}

/** The version of the interface (§9). */
const VERSION = '0.1.2'

/** The OpenAPI 3.1 document of every endpoint, from the schemas that validate its requests; beyond the interface document. */
export function openApiDocument({ betaHeader }: DocumentOptions): OpenApiDocument & JsonSchema {
  const components = new Components()
  const operations = [...ENDPOINTS, documentEndpoint].map((endpoint) => ({
    path: documentPath(endpoint.path),
    method: endpoint.method.toLowerCase(),
    operation: operationOf(endpoint, components, betaHeader),
  }))
  const paths = Object.entries(Object.groupBy(operations, ({ path }) => path)).map(([path, entries = []]) => [
    path,
    Object.fromEntries(entries.map(({ method, operation }) => [method, operation])),
  ])
  const webhooks = Object.entries(WEBHOOKS).map(([type, schema]) => [
    type,
    webhookOf(type, schema, components),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Web research',
      version: VERSION,
      description:
        'Search, Extract, task runs, task groups, monitors, FindAll, chat completions and responses, as the embedded service of ' +
        'Rivulet implements them. ' +
        'Null for an optional field of a request means that it is absent.',
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(paths),
    webhooks: Object.fromEntries(webhooks),
    components: {
      schemas: Object.fromEntries(components.schemas),
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
    },
  }
}

/** The path of the document. */
export const DOCUMENT_PATH = '/openapi.json'

/** The endpoint of the document itself; beyond the interface document. */
const documentEndpoint: Endpoint = {
  method: 'GET',
  path: DOCUMENT_PATH,
  operationId: 'getOpenApiDocument',
  summary: 'Returns this document',
  area: 'Document',
  answer: { type: 'object', required: ['openapi'] },
}

/** A path with its parameters as OpenAPI writes them. */
export function documentPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}')
}

function operationOf(endpoint: Endpoint, components: Components, betaHeader: string): JsonSchema {
  const { operationId, summary, area, body } = endpoint
  const parameters = [
    ...pathParameters(endpoint),
    ...queryParameters(endpoint),
    ...betaParameters(endpoint, betaHeader),
  ]
  return {
    operationId,
    summary,
    tags: [area],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: body.isOptional !== true,
        content: jsonContent(components.request(body.name, body.schema, body.ignored)),
      },
    }),
    responses: responsesOf(endpoint, components),
  }
}

function pathParameters({ path }: Endpoint): JsonSchema[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Endpoint): JsonSchema[] {
  return Object.entries(query?.optional ?? {}).map(([name, shape]) => ({
    name,
    in: 'query',
    schema: requestJsonSchema(shape),
  }))
}

function betaParameters({ betas }: Endpoint, betaHeader: string): JsonSchema[] {
  if (betas === undefined) return []
  return [
    {
      name: betaHeader,
      in: 'header',
      description: 'Beta features, separated by commas',
      schema: { type: 'string', examples: betas },
    },
  ]
}

function responsesOf(endpoint: Endpoint, components: Components): JsonSchema {
  const { status = 200, answer, events } = endpoint
  const content = {
    ...(answer !== undefined && jsonContent(components.resolve(answer))),
    ...(events !== undefined && {
      'text/event-stream': {
        schema: components.resolve(events),
      },
    }),
  }
  const success = {
    description:
      events === undefined ? 'Success' : 'Success. Each message of the stream has data of the schema',
    ...(Object.keys(content).length > 0 && { content }),
  }
  const errors = Object.entries(errorsOf(endpoint)).map(([code, description]) => [
    code,
    {
      description,
      ...((code === '429' || code === '402' || code === '503') && {
        headers: { 'Retry-After': RETRY_AFTER },
      }),
      content: jsonContent(
        components.resolve(
          code === '422' && endpoint.hasIssues === true ? validationErrorResponse : errorResponse,
        ),
      ),
    },
  ])
  return { [status]: success, ...Object.fromEntries(errors) }
}

const RETRY_AFTER = {
  description: 'In how many seconds the request may be accepted',
  schema: { type: 'integer', minimum: 0 },
}

/** The statuses of errors, by their description. */
function errorsOf({ method, path, query, body, quota, errors }: Endpoint): JsonSchema {
  return {
    401: 'The API key is invalid or missing',
    ...(path.includes(':') && { 404: 'Not found' }),
    ...((body !== undefined || query !== undefined) && { 422: 'The request is not valid' }),
    ...(method === 'POST' && { 400: 'The request was cut', 413: 'The body is too long' }),
    ...(quota !== undefined && { 429: 'More requests than the quota allows' }),
    ...errors,
    500: 'The service failed',
  }
}

function webhookOf(type: string, schema: AnyAnswer, components: Components): JsonSchema {
  const header = (name: string, description: string, kind = 'string') => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: kind },
  })
  return {
    post: {
      summary: `The webhook ${type} (§6)`,
      security: [],
      parameters: [
        header('webhook-id', 'The same for each attempt of one webhook'),
        header('webhook-timestamp', 'Unix time in seconds', 'integer'),
        header('webhook-signature', 'Entries `v1,<base64>`, separated by spaces (§6.1)'),
      ],
      requestBody: { required: true, content: jsonContent(components.resolve(schema)) },
      responses: { '2XX': { description: 'Received. Any other status causes a retry' } },
    },
  }
}

function jsonContent(schema: unknown): JsonSchema {
  return { 'application/json': { schema } }
}
