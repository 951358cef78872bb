import type { HttpBindings } from '@hono/node-server'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Routes } from '../../src/service/app.ts'
import type { Faults } from '../../src/service/faults/faults.ts'
import { MCP_PATH } from '../../src/service/mcp/route.ts'
import { documentPath, openApiDocument } from '../../src/service/openapi/document.ts'
import { ENDPOINTS } from '../../src/service/openapi/endpoints.ts'
import type { Poster } from '../../src/service/webhooks/poster.ts'

/** A response, or a message of a stream, as it was sent. */
export interface SentAnswer {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly status: number
  readonly contentType: string
  /** JSON text. */
  readonly text: string
  /** The header `Retry-After`; absent: the response has none. */
  readonly retryAfter?: string
}

/** A webhook, as it was sent. */
export interface SentWebhook {
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
}

const JSON_TYPE = 'application/json'
const STREAM_TYPE = 'text/event-stream'

const document = openApiDocument({ betaHeader: 'service-beta' })
const paths = ENDPOINTS.map(({ method, path }) => ({
  method,
  path,
  pattern: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`),
}))
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema({ $id: 'document', components: closed(document.components) })
const validators = new Map<string, ValidateFunction>()

/** A schema that refuses properties that it does not name. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const parts = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, closed(part)]))
  const isClosed = 'properties' in schema && !('additionalProperties' in schema)
  return isClosed ? { ...parts, additionalProperties: false } : parts
}

/** How a response deviates from the OpenAPI document; undefined if it does not. */
export function deviationOf(answer: SentAnswer): string | undefined {
  const { method, path, status, contentType, text } = answer
  const name = `${method} ${path} ${status} ${contentType}`
  const pointer = schemaPointer(answer)
  if (pointer === undefined) return `${name} is not in the document: ${text.slice(0, 500)}`
  const wrongHeader = retryAfterDeviation(answer)
  if (wrongHeader !== undefined) return `${name} ${wrongHeader}`
  if (pointer === '') return text === '' ? undefined : `${name} has a body: ${text.slice(0, 500)}`
  return bodyDeviation(name, pointer, text)
}

/** How a webhook deviates from the OpenAPI document; undefined if it does not. */
export function webhookDeviationOf({ headers, body }: SentWebhook): string | undefined {
  const type: unknown = at(parsed(body), 'type')
  const name = `webhook ${String(type)}`
  const steps = ['webhooks', String(type), 'post']
  const operation = at(document, ...steps)
  if (operation === undefined) return `${name} is not in the document: ${body.slice(0, 500)}`
  const parameters: unknown = at(operation, 'parameters')
  for (const [index, parameter] of Object.entries(Object(parameters))) {
    const header = String(at(parameter, 'name'))
    const value = headers[header]
    const isInteger = at(parameter, 'schema', 'type') === 'integer'
    const validate = validatorAt([...steps, 'parameters', index, 'schema'].join('\n'))
    if (!validate(isInteger && value !== undefined ? Number(value) : value)) {
      return `${name}: the header ${header} ${ajv.errorsText(validate.errors)}: ${value}`
    }
  }
  const pointer = [...steps, 'requestBody', 'content', JSON_TYPE, 'schema'].join('\n')
  return bodyDeviation(name, pointer, body)
}

function bodyDeviation(name: string, pointer: string, text: string): string | undefined {
  const value = parsed(text)
  if (value === undefined) return `${name} is not JSON: ${text.slice(0, 500)}`
  const validate = validatorAt(pointer)
  if (validate(value)) return undefined
  return `${name}: ${ajv.errorsText(validate.errors)}: ${text.slice(0, 500)}`
}

/** The value of a JSON text; undefined if it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The service sends `Retry-After` exactly where the document declares it. */
function retryAfterDeviation({ method, path, status, retryAfter }: SentAnswer): string | undefined {
  const row = rowOf(method, path)
  if (row === undefined) return retryAfter === undefined ? undefined : 'has an undeclared Retry-After'
  const steps = ['paths', documentPath(row.path), method.toLowerCase(), 'responses', String(status)]
  const schema = [...steps, 'headers', 'Retry-After', 'schema']
  if (at(document, ...schema) === undefined) {
    return retryAfter === undefined ? undefined : `has an undeclared Retry-After: ${retryAfter}`
  }
  if (retryAfter === undefined) return 'has no Retry-After'
  const validate = validatorAt(schema.join('\n'))
  return validate(Number(retryAfter)) ? undefined : `has a wrong Retry-After: ${retryAfter}`
}

function rowOf(method: string, path: string) {
  return paths.find((entry) => entry.method === method && entry.pattern.test(path))
}

/** Where the document has the schema of a response; '' for one without a body, undefined where it has none. */
function schemaPointer({ method, path, status, contentType }: SentAnswer): string | undefined {
  const row = rowOf(method, path)
  // Requests without a route are refused.
  if (row === undefined) return [401, 404, 405, 413].includes(status) ? ERROR : undefined
  const responses = at(
    document.paths,
    documentPath(row.path),
    method.toLowerCase(),
    'responses',
    String(status),
  )
  if (responses === undefined) return undefined
  const content = at(responses, 'content')
  if (content === undefined) return ''
  if (at(content, contentType) === undefined) return undefined
  const steps = ['paths', documentPath(row.path), method.toLowerCase(), 'responses', String(status)]
  return [...steps, 'content', contentType, 'schema'].join('\n')
}

const ERROR = 'components\nschemas\nErrorResponse'

function validatorAt(pointer: string): ValidateFunction {
  const known = validators.get(pointer)
  if (known !== undefined) return known
  const schema = closed(at(document, ...pointer.split('\n')))
  // References are to the components of the document.
  const text = JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')
  const validate = ajv.compile(JSON.parse(text))
  validators.set(pointer, validate)
  return validate
}

function at(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((part, name) => Object(part)[name], value)
}

/**
 * The application, which reports each response and each message of a stream that deviates from the OpenAPI document. Those of a
 * service with armed faults are excepted.
 */
export function heldToDocument(app: Routes, faults: Faults, report: (deviation: string) => void): Routes {
  const { fetch } = app
  app.fetch = (request, bindings, context) => {
    if (bindings !== undefined && 'outgoing' in bindings) observe(bindings, faults, report)
    return fetch(request, bindings, context)
  }
  return app
}

/** The poster, which reports each webhook that deviates from the OpenAPI document. */
export function posterHeldToDocument(poster: Poster, report: (deviation: string) => void): Poster {
  return {
    ...poster,
    post(url, headers, body) {
      // A test of the poster alone sends no webhook.
      const deviation = 'webhook-id' in headers ? webhookDeviationOf({ headers, body }) : undefined
      if (deviation !== undefined) report(deviation)
      return poster.post(url, headers, body)
    },
  }
}

function observe(
  { incoming, outgoing }: HttpBindings,
  faults: Faults,
  report: (deviation: string) => void,
): void {
  const { method = '', url = '' } = incoming
  const [path = ''] = url.split('?')
  // Its answers are those of another protocol.
  if (path === MCP_PATH) return
  const struck = () => JSON.stringify(faults.struck)
  const before = struck()
  let isFaulty = faults.armed.length > 0
  let contentType = ''
  let retryAfter: string | undefined
  let text = ''
  const decoder = new TextDecoder()

  const check = (part: string) => {
    isFaulty ||= faults.armed.length > 0 || struck() !== before
    if (isFaulty) return
    const deviation = deviationOf({
      method,
      path,
      status: outgoing.statusCode,
      contentType,
      text: part,
      ...(retryAfter !== undefined && { retryAfter }),
    })
    if (deviation !== undefined) report(deviation)
  }
  const take = (chunk: unknown) => {
    if (typeof chunk === 'string') text += chunk
    else if (chunk instanceof Uint8Array) text += decoder.decode(chunk, { stream: true })
    if (contentType !== STREAM_TYPE) return
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = block.split('\n').filter((line) => line.startsWith('data: '))
      // The end of a stream of chat completions is no JSON.
      if (data.length > 0 && data[0] !== 'data: [DONE]') check(data.map((line) => line.slice(6)).join('\n'))
    }
  }
  wrap(outgoing, 'writeHead', (args) => {
    const headers = args.find((argument) => typeof argument === 'object' && argument !== null)
    contentType = headerOf(headers, 'content-type')?.split(';')[0] ?? contentType
    retryAfter = headerOf(headers, 'retry-after') ?? retryAfter
  })
  wrap(outgoing, 'write', ([chunk]) => take(chunk))
  wrap(outgoing, 'end', ([chunk]) => {
    contentType ||= String(outgoing.getHeader('content-type') ?? '').split(';')[0] ?? ''
    take(chunk)
    if (contentType !== STREAM_TYPE && method !== 'HEAD') check(text)
  })
}

/** A header as `writeHead` has it. */
function headerOf(headers: unknown, header: string): string | undefined {
  const entries: unknown[] = Array.isArray(headers) ? pairs(headers) : Object.entries(Object(headers))
  for (const [name, value] of entries.filter(Array.isArray)) {
    if (String(name).toLowerCase() === header) return String(value)
  }
  return undefined
}

function pairs(list: readonly unknown[]): unknown[] {
  if (Array.isArray(list[0])) return [...list]
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1]]] : []))
}

/** Calls the listener before each call of a method. */
function wrap(
  outgoing: HttpBindings['outgoing'],
  name: 'writeHead' | 'write' | 'end',
  listener: (args: readonly unknown[]) => void,
): void {
  const method = outgoing[name]
  Object.assign(outgoing, {
    [name]: (...args: unknown[]) => {
      listener(args)
      return Reflect.apply(method, outgoing, args)
    },
  })
}

export { JSON_TYPE, STREAM_TYPE }
