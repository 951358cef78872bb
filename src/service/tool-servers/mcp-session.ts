import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { isObject, isText } from '../../protocol/json.ts'
import type { WebResponse } from '../web/safe-fetch.ts'

/** The version of the Model Context Protocol that the client offers. */
const PROTOCOL_VERSION = '2025-06-18'
/** The texts that a server may use as the id of a session. */
const SESSION_ID = /^[\x21-\x7E]{1,1000}$/

/** A tool of a server, as the server describes it. */
export interface Tool {
  readonly name: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Posts a message to a server. */
export type PostMessage = (body: string, headers: Readonly<Record<string, string>>) => Promise<WebResponse>

/**
 * A session with a tool server over Streamable HTTP, the transport of the Model Context Protocol. Every method rejects when
 * the server is not reached, refuses the request or sends a malformed response.
 */
export class McpSession {
  readonly #post: PostMessage
  /** The version and the session, which every request after the first one names. */
  #headers: Readonly<Record<string, string>> = {}
  #requests = 0

  constructor(post: PostMessage) {
    this.#post = post
  }

  async initialize(): Promise<void> {
    const { result, headers } = await this.#request('initialize', {
      protocolVersion: PROTOCOL_VERSION,
      capabilities: {},
      clientInfo: { name: 'rivulet', version: '1' },
    })
    const session = headers['mcp-session-id'] ?? ''
    const version = result['protocolVersion']
    this.#headers = {
      ...(SESSION_ID.test(session) && { 'mcp-session-id': session }),
      ...(isText(version) && SESSION_ID.test(version) && { 'mcp-protocol-version': version }),
    }
    checkStatus(await this.#send({ method: 'notifications/initialized' }))
  }

  /** The server's first page of tools. */
  async tools(): Promise<Tool[]> {
    const { result } = await this.#request('tools/list', {})
    const { tools } = result
    if (!Array.isArray(tools)) throw new Error('The server sent no list of tools')
    return tools.flatMap((tool: unknown) => {
      if (!isObject(tool) || !isText(tool['name'])) return []
      const { name, inputSchema, annotations } = tool
      return [{ name, inputSchema: objectOf(inputSchema), annotations: objectOf(annotations) }]
    })
  }

  /** Calls a tool, and resolves with its text. Other content is named by its type. Rejects when the tool has failed. */
  async call(name: string, input: Readonly<Record<string, unknown>>): Promise<string> {
    const { result } = await this.#request('tools/call', { name, arguments: input })
    const { content, isError } = result
    if (!Array.isArray(content)) throw new Error('The tool sent no content')
    const text = content.map(contentText).join('\n')
    if (isError === true) throw new Error(`The tool failed: ${text}`)
    return text
  }

  async #request(method: string, params: Readonly<Record<string, unknown>>) {
    const id = (this.#requests += 1)
    const response = await this.#send({ id, method, params })
    checkStatus(response)
    const message = messagesOf(response).find((candidate) => isObject(candidate) && candidate['id'] === id)
    if (!isObject(message)) throw new Error(`The server sent no response to ${method}`)
    const { result, error } = message
    if (isObject(error)) {
      const reason = isText(error['message']) ? error['message'] : 'no message'
      throw new Error(`The server answered ${method} with an error: ${reason}`)
    }
    if (!isObject(result)) throw new Error(`The server sent no result of ${method}`)
    return { result, headers: response.headers }
  }

  #send(message: Readonly<Record<string, unknown>>): Promise<WebResponse> {
    return this.#post(JSON.stringify({ jsonrpc: '2.0', ...message }), this.#headers)
  }
}

function checkStatus({ status }: WebResponse): void {
  // Redirects of a POST are not followed.
  if (status < 200 || status > 299) throw new Error(`The server responded with the status ${status}`)
}

/** The messages of a response: one as JSON, or several as server-sent events. */
function messagesOf({ mediaType, body }: WebResponse): unknown[] {
  const text = new TextDecoder().decode(body)
  if (mediaType !== 'text/event-stream') return [parsed(text)]
  const messages: unknown[] = []
  const onEvent = ({ data }: EventSourceMessage) => {
    // A server may send an event with an id alone, from which a client could resume.
    if (data !== '') messages.push(parsed(data))
  }
  createParser({ onEvent }).feed(`${text}\n\n`)
  return messages
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error of JSON.parse quotes the text.
    throw new Error('The server sent malformed JSON')
  }
}

function contentText(part: unknown): string {
  if (!isObject(part)) return ''
  return isText(part['text']) ? part['text'] : `[${isText(part['type']) ? part['type'] : 'unknown'}]`
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}
