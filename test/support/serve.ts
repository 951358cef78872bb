import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** Starts an HTTP server on a free loopback port, closed with its sockets when the test ends. Resolves to its URL. */
export async function serve(listener: RequestListener, onConnection?: () => void): Promise<string> {
  const server = createServer(listener)
  if (onConnection !== undefined) server.on('connection', onConnection)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

/** Responds with JSON. */
export function answer(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** The query of a request. */
export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URL(request.url ?? '/', 'http://localhost').searchParams
}

/** Encodes a server-sent event as the service does. */
export function sse(event: { readonly type: string; readonly event_id?: string }): string {
  return `${event.event_id === undefined ? '' : `id: ${event.event_id}\n`}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Starts an event stream. */
export function openStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
}
