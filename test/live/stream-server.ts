import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { LIVE_PROTOCOL } from '../../src/protocol/live.ts'
import type { LiveFrames, ViewRequest } from '../../src/protocol/live.ts'
import { serve } from '../support/serve.ts'

/** One stream of a client, written by a test. */
export class StreamConnection {
  readonly views: readonly ViewRequest[]
  readonly token: string
  isClosed = false
  readonly #response: ServerResponse

  constructor(views: readonly ViewRequest[], token: string, response: ServerResponse) {
    this.views = views
    this.token = token
    this.#response = response
    response.on('close', () => (this.isClosed = true))
    response.on('error', () => {})
  }

  open(open: Partial<LiveFrames['open']> = {}): this {
    return this.send('open', { protocol: LIVE_PROTOCOL, expires: 0, heartbeat: 15_000, now: 0, ...open })
  }

  send<Kind extends keyof LiveFrames>(kind: Kind, data: LiveFrames[Kind]): this {
    return this.write(frameText(kind, data))
  }

  write(text: string | Uint8Array): this {
    this.#response.write(text)
    return this
  }

  end(): void {
    this.#response.end()
  }

  /** Cuts the connection. */
  cut(): void {
    this.#response.destroy()
  }
}

export function frameText(kind: string, data: unknown): string {
  return `event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`
}

export interface StreamServer {
  readonly url: string
  /** The streams so far. */
  readonly streams: readonly StreamConnection[]
  /** How many requests came, refused ones too. */
  readonly requests: number
  /** The stream with this number, from 0. */
  stream(index: number): Promise<StreamConnection>
}

/** Answers a request in place of a stream. Returns whether it did. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => boolean

/** A server that speaks the protocol as a test wants. */
export async function streamServer({
  onStream = () => {},
  answer = () => false,
}: { onStream?: (stream: StreamConnection) => void; answer?: Answer } = {}): Promise<StreamServer> {
  const streams: StreamConnection[] = []
  const waiting = new Set<() => void>()
  let requests = 0
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    requests++
    if (answer(request, response)) return
    if (request.url !== '/live/stream' || request.method !== 'POST') {
      response.writeHead(404).end()
      return
    }
    const { views } = (await json(request)) as { views: ViewRequest[] }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    const stream = new StreamConnection(views, request.headers.authorization ?? '', response)
    streams.push(stream)
    onStream(stream)
    for (const wake of waiting) wake()
  }
  const origin = await serve((request, response) => {
    listener(request, response).catch(() => response.destroy())
  })
  return {
    url: `${origin}/live`,
    streams,
    get requests() {
      return requests
    },
    async stream(index) {
      for (;;) {
        const stream = streams[index]
        if (stream !== undefined) return stream
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake)
            resolve()
          }
          waiting.add(wake)
        })
      }
    },
  }
}
