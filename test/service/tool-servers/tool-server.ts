import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { answer, serve } from '../../support/serve.ts'

/** A request that a tool server received. */
interface Received {
  readonly method: string
  readonly params: Record<string, unknown> | undefined
  readonly headers: IncomingHttpHeaders
}

/** How a tool server responds to a method: with a result, or by itself. */
export type Behaviour = Readonly<
  Record<string, unknown | ((response: ServerResponse, id: unknown, request: IncomingMessage) => void)>
>

/** A tool that can be asked a question. */
export const SEARCH = {
  name: 'search',
  inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
}

/** Starts a tool server over Streamable HTTP. */
export async function toolServer(behaviour: Behaviour = {}) {
  const received: Received[] = []
  const results: Behaviour = {
    initialize: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'x', version: '1' } },
    'notifications/initialized': (response: ServerResponse) => response.writeHead(202).end(),
    'tools/list': { tools: [SEARCH] },
    'tools/call': { content: [{ type: 'text', text: 'It is 42.' }] },
    ...behaviour,
  }
  const url = await serve(async (request, response) => {
    const { id, method, params } = JSON.parse(await text(request))
    received.push({ method, params, headers: request.headers })
    const result = results[method]
    if (typeof result === 'function') result(response, id, request)
    else answer(response, { jsonrpc: '2.0', id, result })
  })
  return { url: `${url}/mcp`, received }
}
