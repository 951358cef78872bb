import {
  type CallToolResult,
  createMcpHandler,
  localhostAllowedOrigins,
  McpServer,
  originValidationResponse,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext,
  type StandardSchemaWithJSON,
} from '@modelcontextprotocol/server'
import { ArgumentError } from '../protocol/argument-error.ts'
import { isObject } from '../protocol/json.ts'
import type { JsonSchema, Limits } from '../protocol/requests/json-schema.ts'
import { markedResult, markedText, NOTICE, shortened } from './marked-result.ts'
import type { ReadableResource } from './research-resources.ts'
import type { Tool, ToolCall } from './tool.ts'

/** Settings of {@link ToolServer}. */
export interface ToolServerOptions {
  readonly tools: readonly Tool[]
  readonly resources: readonly ReadableResource[]
  /** The limits of the service that the tools call, if they are known. */
  readonly limits?: Limits
  /** The JSON Schema of each tool's result, by its name, if the service promises one. */
  readonly results?: Readonly<Record<string, JsonSchema>>
}

/** Maximum number of calls of tools, and reads of resources, under way. */
const MAX_CALLS = 256
/** Maximum number of streams that wait for changes of the list of tools, which does not change. */
const MAX_SUBSCRIPTIONS = 64
/** Maximum length of an error, and of a message of progress, in characters. */
const MAX_ERROR = 1_000
const MAX_MESSAGE = 200
/** The least that progress grows by, in percent: the protocol asks for growth with each message. */
const LEAST_PROGRESS = 1 / 1024

/** Tools and resources over the Model Context Protocol. */
export class ToolServer {
  readonly #tools
  readonly #resources: readonly ReadableResource[]
  readonly #http
  readonly #closing = new AbortController()
  #calls = 0

  constructor({ tools, resources, limits, results = {} }: ToolServerOptions) {
    this.#resources = resources
    this.#tools = tools.map((tool) => {
      const { title, description, isReadOnly } = tool
      const output = results[tool.name]
      const config = {
        title,
        description,
        inputSchema: declared(tool.input(limits)),
        ...(output !== undefined && { outputSchema: declared(output) }),
        annotations: { readOnlyHint: isReadOnly, destructiveHint: false, openWorldHint: true },
      }
      return { tool, config }
    })
    this.#http = createMcpHandler(() => this.connection(), { maxSubscriptions: MAX_SUBSCRIPTIONS })
  }

  /** A server for one connection, or one request. */
  connection(): McpServer {
    const server = new McpServer({ name: 'rivulet', version: '1' }, { instructions: NOTICE })
    for (const { tool, config } of this.#tools) {
      server.registerTool(tool.name, config, (given, context) => this.#call(tool, given, context))
    }
    for (const resource of this.#resources) {
      const { template, name, description } = resource
      const config = { description, mimeType: 'text/plain' }
      server.registerResource(
        name,
        new ResourceTemplate(template, { list: undefined }),
        config,
        (uri, variables, context) =>
          this.#read(resource, uri.href, String(Object.values(variables)[0]), context),
      )
    }
    return server
  }

  /**
   * Answers a request of Streamable HTTP. Refuses pages of other origins, whose requests a browser sends to this machine too.
   *
   * @param body The parsed body, if it was read already.
   */
  async handle(request: Request, body?: unknown): Promise<Response> {
    const refused = originValidationResponse(request, localhostAllowedOrigins())
    return refused ?? (await this.#http.fetch(request, { parsedBody: body }))
  }

  /** Aborts all calls. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the tool server is closing'))
    await this.#http.close()
  }

  async #call(
    tool: Tool,
    given: Readonly<Record<string, unknown>>,
    context: ServerContext,
  ): Promise<CallToolResult> {
    try {
      const { value, next } = await this.#bounded(context, (signal) =>
        tool.run(given, { signal, report: reporter(context) }),
      )
      const { text, structured } = markedResult(value, next)
      return { content: [{ type: 'text', text }], structuredContent: structured }
    } catch (error) {
      return { content: [{ type: 'text', text: messageOf(error) }], isError: true }
    }
  }

  async #read(
    resource: ReadableResource,
    uri: string,
    encoded: string,
    context: ServerContext,
  ): Promise<ReadResourceResult> {
    let text: string | undefined
    try {
      const id = decoded(encoded)
      text = await this.#bounded(context, (signal) => resource.read(id, signal))
    } catch (error) {
      const isMissing = isObject(error) && error['status'] === 404
      if (!isMissing) throw new ProtocolError(codeOf(error), messageOf(error))
    }
    if (text === undefined) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, mimeType: 'text/plain', text }] }
  }

  /** Does the work of a call, unless too many are under way. */
  async #bounded<T>({ mcpReq }: ServerContext, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#calls >= MAX_CALLS) {
      throw new ProtocolError(
        ProtocolErrorCode.InternalError,
        'Too many calls are under way: try again later',
      )
    }
    this.#calls += 1
    try {
      return await work(AbortSignal.any([mcpReq.signal, this.#closing.signal]))
    } finally {
      this.#calls -= 1
    }
  }
}

/** A schema for clients to read. The tools check their arguments, and a service its results. */
function declared(schema: JsonSchema): StandardSchemaWithJSON<Readonly<Record<string, unknown>>> {
  const toJson = () => ({ ...schema })
  return {
    '~standard': {
      version: 1,
      vendor: 'rivulet',
      jsonSchema: { input: toJson, output: toJson },
      validate: (value) => (isObject(value) ? { value } : { issues: [{ message: 'Expected an object' }] }),
    },
  }
}

function decoded(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw new ArgumentError('uri', 'a percent-encoded URI', encoded)
  }
}

function codeOf(error: unknown): ProtocolErrorCode {
  return error instanceof ArgumentError ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
}

/** The message of an error for a model. It is data, like a result, unless the text is the server's own. */
function messageOf(error: unknown): string {
  const message = shortened(error instanceof Error ? error.message : String(error), MAX_ERROR)
  return error instanceof ArgumentError || error instanceof ProtocolError ? message : markedText(message)
}

/** Sends progress to a client that asks for it. */
function reporter({ mcpReq }: ServerContext): ToolCall['report'] {
  const { progressToken } = mcpReq['_meta'] ?? {}
  if (progressToken === undefined) return undefined
  let progress = 0
  return (fraction, message) => {
    progress = Math.max(fraction * 100, progress + LEAST_PROGRESS)
    const params = { progressToken, progress, total: 100, message: shortened(message, MAX_MESSAGE) }
    // A client that is gone is noticed by its signal.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
}
