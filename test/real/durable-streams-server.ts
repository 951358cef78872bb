import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { nodeListener } from 'rivulet/gateway'
import { onTestFinished } from 'vitest'
import { Authority } from '../../src/gateway/access/authority.ts'
import { LogStream } from '../../src/gateway/durable-streams/log-stream.ts'
import { append } from '../log/append.ts'

/** A page that the conformance tests name. */
const ORIGIN = 'https://example.com'

/** A stream of the conformance tests: a log of its own, whose entries have the messages as their data. */
interface TestStream {
  readonly contentType: string
  readonly isJson: boolean
  readonly store: LogStore
  readonly log: EventLog
  readonly reads: LogStream
}

/**
 * A server of Durable Streams whose reads are those of a gateway. The conformance tests also write, which a gateway does not let
 * clients do: a PUT makes a log here, and a POST appends to it. A gateway's messages are entries, of which the tests get the
 * data: as JSON, or as bytes where a stream is not JSON. All else of a response is the gateway's.
 */
export async function streamServer(longPoll: number): Promise<string> {
  const streams = new Map<string, TestStream>()
  const closing = new AbortController()
  const authority = new Authority({
    log: await openLog(memoryStore()),
    tokens: { secret: 's'.repeat(32) },
    views: [],
    path: '',
    origins: [ORIGIN],
    maxConnections: 1_000,
  })
  let events = 0
  const write = async ({ store, isJson }: TestStream, body: Buffer): Promise<void> => {
    const messages = messagesOf(body, isJson)
    await append(
      store,
      messages.map((data): ResearchEvent => {
        events += 1
        return {
          id: `${events}`,
          source: '/test',
          type: 'unknown',
          time: null,
          data,
          received: new Date().toISOString(),
          via: 'stream',
        }
      }),
    )
  }
  const create = async (request: Request, path: string): Promise<Response> => {
    const contentType = request.headers.get('content-type') ?? 'application/octet-stream'
    const store = memoryStore()
    const log = await openLog(store)
    const reads = new LogStream(log, { closing: closing.signal, longPoll })
    const isJson = contentType.startsWith('application/json')
    const stream = { contentType, isJson, store, log, reads }
    streams.set(path, stream)
    await write(stream, Buffer.from(await request.arrayBuffer()))
    return written(stream, 201)
  }
  const read = (request: Request, { reads }: TestStream) => {
    const access = authority.accessOf({ sub: 'test', types: ['unknown'], sources: ['*'] })
    return reads.respond(request, access, {
      live: () => authority.admit(access),
      read: () => authority.admitRead(access),
    })
  }
  const written = async (stream: TestStream, status: number): Promise<Response> => {
    const { headers } = await read(new Request('http://localhost/', { method: 'HEAD' }), stream)
    return new Response(null, { status, headers })
  }
  const respond = async (request: Request): Promise<Response> => {
    const path = new URL(request.url).pathname
    const stream = streams.get(path)
    if (request.method === 'PUT') return stream === undefined ? create(request, path) : written(stream, 200)
    if (stream === undefined) return new Response(null, { status: 404 })
    if (request.method !== 'POST') return plain(await read(request, stream), stream)
    await write(stream, Buffer.from(await request.arrayBuffer()))
    return written(stream, 204)
  }
  const server = createServer(nodeListener((request) => authority.protect(request, () => respond(request))))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    closing.abort()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await authority.close()
    for (const { log } of streams.values()) await log.close()
  })
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

/** The messages in the body of a write: those of an array, or its bytes as text of one byte a character. */
function messagesOf(body: Buffer, isJson: boolean): readonly unknown[] {
  if (body.length === 0) return []
  const value: unknown = isJson ? JSON.parse(body.toString()) : body.toString('latin1')
  return Array.isArray(value) ? value : [value]
}

/** A response with messages instead of the entries that have them. */
async function plain(response: Response, stream: TestStream): Promise<Response> {
  const { status } = response
  const headers = new Headers(response.headers)
  const type = headers.get('content-type')
  if (type === 'application/json' && response.ok) headers.set('content-type', stream.contentType)
  if (!response.ok || response.body === null) return new Response(response.body, { status, headers })
  if (type === 'application/json') {
    return new Response(dataOf(await response.text(), stream), { status, headers })
  }
  return new Response(
    response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(plainEvents(stream))
      .pipeThrough(new TextEncoderStream()),
    { status, headers },
  )
}

/** The data of entries: an array as JSON, or their bytes. */
function dataOf(json: string, { isJson }: TestStream): Buffer<ArrayBuffer> {
  const entries: readonly Entry[] = JSON.parse(json)
  const data = entries.map((entry) => entry.data)
  return isJson ? Buffer.from(JSON.stringify(data)) : Buffer.from(data.join(''), 'latin1')
}

/** Server-sent events with messages instead of entries. */
function plainEvents(stream: TestStream): TransformStream<string, string> {
  let rest = ''
  return new TransformStream({
    transform(chunk, controller) {
      const events = `${rest}${chunk}`.split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const [, json] = /^event: data\ndata:(.*)$/.exec(event) ?? []
        const lines =
          json === undefined
            ? []
            : dataOf(json, stream)
                .toString()
                .split(/\r\n|\r|\n/)
        const text =
          json === undefined ? event : ['event: data', ...lines.map((line) => `data:${line}`)].join('\n')
        controller.enqueue(`${text}\n\n`)
      }
    },
  })
}
