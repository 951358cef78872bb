import type { IncomingMessage, ServerResponse } from 'node:http'
import { createClient } from 'rivulet'
import type { ClientOptions, Diagnostic, ResearchClient } from 'rivulet'
import { bodyOf } from '../transport/server.ts'
import { openStream, serve } from './serve.ts'

/** What a server does with one request. */
export type Reply = (response: ServerResponse, request: IncomingMessage) => void

/** A server that handles each request with the next reply, and a client of it. */
export interface AnswerServer {
  readonly client: ResearchClient
  /** The bodies of the requests. */
  readonly bodies: readonly unknown[]
  readonly diagnostics: readonly Diagnostic[]
}

/** Starts a server with these replies. The last one is for all further requests too. */
export async function answerServer(
  replies: readonly Reply[],
  settings: ClientOptions = {},
): Promise<AnswerServer> {
  const bodies: unknown[] = []
  const baseUrl = await serve(async (request, response) => {
    bodies.push(JSON.parse(await bodyOf(request)))
    replies[Math.min(bodies.length, replies.length) - 1]?.(response, request)
  })
  const client = createClient({ baseUrl, apiKey: 'key-of-a-test', initialDelay: 0, ...settings })
  const diagnostics: Diagnostic[] = []
  client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
  return { client, bodies, diagnostics }
}

/** Sends these texts as `data:` lines, and ends the stream. */
export function streaming(...data: readonly string[]): Reply {
  return (response) => {
    openStream(response)
    response.end(framed(data))
  }
}

/** Sends these texts as `data:` lines, and destroys the connection. */
export function cutting(...data: readonly string[]): Reply {
  return (response) => {
    openStream(response)
    response.write(framed(data), () => response.destroy())
  }
}

/** Texts as server-sent events without a name. */
export function framed(data: readonly string[]): string {
  return data.map((text) => `data: ${text}\n\n`).join('')
}
