import { isObject } from '../../protocol/json.ts'
import type { McpToolCall } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { McpServer, RunInput } from '../../protocol/task.ts'
import { identifier } from '../identifier.ts'
import type { Processor, ProcessorTask } from '../processor/processor.ts'
import type { Web } from '../web/safe-fetch.ts'
import { McpSession, type Tool } from './mcp-session.ts'
import { redactor } from './redactor.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Settings of {@link withToolServers}. */
export interface ToolServersOptions {
  readonly web: Web
  /** How long all requests to one server may take together, in ms of real time. Default 10 s. */
  readonly timeout?: number
}

const TIMEOUT = 10_000
/** Maximum size of a response, in bytes. */
const MAX_BYTES = 1_000_000
/** Maximum length of a question to a tool, in characters. */
const MAX_QUESTION = 1_000
/** Maximum length of a tool's content in the output, in characters. */
const MAX_CONTENT = 10_000
/** Maximum length of an error, in characters. */
const MAX_ERROR = 500
/** Maximum length of a tool's name in the output, in characters. */
const MAX_NAME = 200
/** The arguments that a question can be given as: a string, or a list of strings. */
const QUERY: ReadonlySet<string> = new Set(['query', 'q', 'question'])
const QUERIES: ReadonlySet<string> = new Set(['queries', 'search_queries'])
/** Headers that the HTTP client sets. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['host', 'content-length', 'connection', 'accept-encoding'])

/**
 * A processor that also calls the tool servers of a run (§2.8), before the run's own work. It initializes each server, lists its
 * tools, and calls one: the first allowed tool whose only required argument is a string named `query`, `q` or `question`, or a list
 * of strings named `queries` or `search_queries`, and that is not annotated as writing. It is called with the run's input. The result of a
 * tool is reported in `mcp_tool_calls`, and has no influence on the answer. A run that is executed again after a restart calls the tools
 * again.
 *
 * A server that cannot be reached, or whose tool fails, has a call with an `error`; its `tool_name` is the failed method of the
 * protocol if no tool was chosen. A server without such a tool has a warning.
 *
 * The headers of a server are sent to its URL only (§5), and are removed from its results.
 */
export function withToolServers(
  processor: Processor,
  { web, timeout = TIMEOUT }: ToolServersOptions,
): Processor {
  return {
    async run(task, signal) {
      const servers = task.input.mcp_servers ?? []
      if (servers.length === 0) return await processor.run(task, signal)
      const tried = await Promise.all(
        servers.map((server) => tryServer(server, { task, web, timeout, signal })),
      )
      signal.throwIfAborted()
      const { output, warnings = [] } = await processor.run(task, signal)
      const all = [...warnings, ...tried.flatMap(({ warnings: own = [] }) => own)]
      return {
        output: { ...output, mcp_tool_calls: tried.flatMap(({ call }) => call ?? []) },
        ...(all.length > 0 && { warnings: all }),
      }
    },
  }
}

interface Attempt {
  readonly task: ProcessorTask
  readonly web: Web
  readonly timeout: number
  readonly signal: AbortSignal
}

/** The result of trying a server. */
interface Tried {
  readonly call?: McpToolCall
  readonly warnings?: readonly Warning[]
}

/** Rejects when the signal is aborted, and never otherwise. */
async function tryServer(server: McpServer, attempt: Attempt): Promise<Tried> {
  const { task, signal } = attempt
  const redacted = redactor(Object.values(server.headers ?? {}))
  const say = (text: string) => task.report({ message: { kind: 'tool_call', text } })
  const session = new McpSession(posting(server, attempt))
  const question = questionOf(task.input)
  let step = { tool_name: 'initialize', arguments: '{}' }
  const called = (outcome: Pick<McpToolCall, 'content' | 'error'>): Tried => ({
    call: { tool_call_id: identifier('mcp'), server_name: server.name, ...step, ...outcome },
  })
  try {
    say(`Ask the tool server ${server.name} for its tools`)
    await session.initialize()
    step = { ...step, tool_name: 'tools/list' }
    const found = queryTool(await session.tools(), server.allowed_tools, question)
    if (found === undefined) {
      return {
        warnings: [warning(`The tool server ${server.name} has no allowed tool that takes only a query`)],
      }
    }
    step = {
      tool_name: cutText(redacted(found.name), MAX_NAME),
      arguments: JSON.stringify(found.input),
    }
    say(`Call the tool ${step.tool_name} of the server ${server.name}`)
    const content = await session.call(found.name, found.input)
    return called({ content: cutText(redacted(content), MAX_CONTENT) })
  } catch (error) {
    signal.throwIfAborted()
    const message = cutText(redacted(error instanceof Error ? error.message : String(error)), MAX_ERROR)
    say(`The tool server ${server.name} failed: ${message}`)
    return called({ error: message })
  }
}

/** Posts messages to the server, until its timeout. */
function posting(server: McpServer, { web, timeout, signal }: Attempt) {
  const given = Object.entries(server.headers ?? {})
    .map(([name, value]): [string, string] => [name.toLowerCase(), value])
    .filter(([name]) => !OWN_HEADERS.has(name))
  const end = performance.now() + timeout
  return (body: string, headers: Readonly<Record<string, string>>) =>
    web.fetch(server.url, {
      method: 'POST',
      headers: {
        ...Object.fromEntries(given),
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body,
      timeout: Math.max(1, Math.ceil(end - performance.now())),
      maxBytes: MAX_BYTES,
      signal,
    })
}

/** The first allowed tool that can be asked a question, and its input. */
function queryTool(tools: readonly Tool[], allowed: readonly string[] | undefined, question: string) {
  for (const { name, inputSchema, annotations } of tools) {
    if (allowed?.includes(name) === false || annotations['readOnlyHint'] === false) continue
    const properties = isObject(inputSchema['properties']) ? inputSchema['properties'] : {}
    const required = Array.isArray(inputSchema['required'])
      ? inputSchema['required']
      : Object.keys(properties)
    const [argument, ...others]: unknown[] = required
    if (typeof argument !== 'string' || others.length > 0) continue
    const schema = properties[argument]
    if (QUERY.has(argument) && isOfType(schema, 'string')) return { name, input: { [argument]: question } }
    const isList = isObject(schema) && isOfType(schema, 'array') && isOfType(schema['items'], 'string')
    if (QUERIES.has(argument) && isList) return { name, input: { [argument]: [question] } }
  }
  return undefined
}

function isOfType(schema: unknown, type: string): boolean {
  return isObject(schema) && schema['type'] === type
}

function questionOf({ input }: RunInput): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input)
  return cutText(text, MAX_QUESTION)
}

function warning(message: string): Warning {
  return { type: 'input_validation_warning', message, detail: { parameter: 'mcp_servers' } }
}
