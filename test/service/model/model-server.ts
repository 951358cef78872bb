import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { serve } from '../../support/serve.ts'

/** A request as a model server received it. */
interface ModelRequest {
  readonly headers: IncomingHttpHeaders
  readonly body: {
    readonly model: string
    readonly messages: readonly { readonly role: string; readonly content: string }[]
    readonly response_format?: unknown
  }
}

/** How a model answers one request: with a reply, or by writing the response itself. */
export type ModelBehaviour =
  | string
  | object
  | ((response: ServerResponse, request: ModelRequest) => void | Promise<void>)

/** One event of a streamed completion. */
export const part = (content: string, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`

export function openAnswer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders()
}

/** Streams a reply in pieces, as a model writes it. */
export function streamReply(response: ServerResponse, reply: string): void {
  openAnswer(response)
  for (const [piece] of reply.matchAll(/[\s\S]{1,7}/gu)) response.write(part(piece))
  response.end(`${part('', 'stop')}data: [DONE]\n\n`)
}

/** Starts a server of an OpenAI-compatible interface. Behaviours are used in order, and the last one from then on. */
export async function modelServer(...behaviours: readonly [ModelBehaviour, ...ModelBehaviour[]]) {
  const received: ModelRequest[] = []
  const url = await serve(async (request, response) => {
    // The test's own server: what it gets is what the service sends.
    const body = (await json(request)) as ModelRequest['body']
    const one = { headers: request.headers, body }
    const behaviour = behaviours[Math.min(received.length, behaviours.length - 1)]
    received.push(one)
    if (request.url !== '/v1/chat/completions') response.writeHead(404).end()
    else if (typeof behaviour === 'function') await behaviour(response, one)
    else streamReply(response, typeof behaviour === 'string' ? behaviour : JSON.stringify(behaviour))
  })
  return { url: `${url}/v1`, received }
}
