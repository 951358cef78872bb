import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createWebhookReceiver, memoryInbox, nodeListener } from 'rivulet/webhooks'
import type { WebhookDelivery, WebhookReceiver, WebhookReceiverOptions } from 'rivulet/webhooks'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../support/serve.ts'
import { sign } from '../support/sign.ts'

const SECRET = 'the account secret'
const MIB = 1024 * 1024

function webhook(size = 10): { readonly body: string; readonly headers: Record<string, string> } {
  const body = JSON.stringify({ type: 'task_run.status', note: 'x'.repeat(size) })
  const headers = { ...sign({ body, secrets: SECRET }), 'content-length': String(body.length) }
  return { body, headers }
}

/** A body whose chunks the test sends, and a record of how it was read. */
function pipe() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const reader = { pulled: false, cancelled: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
      },
      pull() {
        reader.pulled = true
      },
      cancel() {
        reader.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return {
    stream,
    reader,
    send: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
  }
}

function requestOf(headers: Readonly<Record<string, string>>, body: BodyInit | null): Request {
  // `duplex` is required for a streamed body and missing in the DOM's types.
  const init = { method: 'POST', headers, body, duplex: 'half' }
  return new Request('http://127.0.0.1/hook', init)
}

function receiverWith(options: Partial<WebhookReceiverOptions> = {}): WebhookReceiver {
  return createWebhookReceiver({ secrets: SECRET, ...options })
}

async function codeOf(response: Response): Promise<unknown> {
  const text = await response.text()
  return text === '' ? undefined : JSON.parse(text).code
}

function head(headers: Readonly<Record<string, string>>, method = 'POST'): string {
  const lines = Object.entries({ host: 'receiver', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return `${[`${method} /hook HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`
}

interface Connection {
  readonly socket: Socket
  /** Everything received. */
  readonly received: () => string
  /** Resolves with the status of the first response. */
  readonly status: Promise<string>
}

async function dial(url: string): Promise<Connection> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const answered = Promise.withResolvers<string>()
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    if (text.includes('\r\n\r\n')) answered.resolve(text.split(' ', 2)[1] ?? '')
  })
  // A server that has refused enough resets the connection.
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return { socket, received: () => text, status: answered.promise }
}

describe('a request that its headers are enough to refuse', () => {
  const { headers } = webhook()
  const full = memoryInbox({ maxPending: 1 })
  beforeAll(async () => {
    await full.put({ id: 'waits', timestamp: 1, payload: {} })
  })
  interface Case {
    readonly what: string
    readonly code: string
    readonly changes?: Readonly<Record<string, string>>
    readonly options?: Partial<WebhookReceiverOptions>
  }
  const cases: readonly Case[] = [
    {
      what: 'another content type',
      code: 'unsupported_media_type',
      changes: { 'content-type': 'text/plain' },
    },
    { what: 'an empty signature', code: 'missing_header', changes: { 'webhook-signature': '' } },
    { what: 'a malformed id', code: 'malformed_header', changes: { 'webhook-id': 'a b' } },
    { what: 'a malformed timestamp', code: 'malformed_header', changes: { 'webhook-timestamp': 'soon' } },
    {
      what: 'a signature of no known version',
      code: 'bad_signature',
      changes: { 'webhook-signature': `v2,${'A'.repeat(43)}=` },
    },
    {
      what: 'a signature that is too short',
      code: 'bad_signature',
      changes: { 'webhook-signature': 'v1,AAAA' },
    },
    {
      what: '33 signatures',
      code: 'bad_signature',
      changes: { 'webhook-signature': `v1,${'A'.repeat(43)}= `.repeat(33).trim() },
    },
    {
      what: 'a stale timestamp',
      code: 'timestamp_out_of_tolerance',
      changes: { 'webhook-timestamp': '1760000000' },
    },
    {
      what: 'a declared length beyond the limit',
      code: 'body_too_large',
      changes: { 'content-length': String(4 * MIB + 1) },
    },
    { what: 'a full inbox', code: 'inbox_full', options: { inbox: full } },
  ]

  it.each(cases)('is refused before its body is read: $what', async ({ code, changes, options }) => {
    const body = pipe()

    const response = await receiverWith(options).handle(requestOf({ ...headers, ...changes }, body.stream))

    expect(await codeOf(response)).toBe(code)
    expect(body.reader.pulled).toBe(false)
  })

  it.each<Case>(cases)(
    'is refused over a socket that sends no body: $what',
    async ({ code, changes, options }) => {
      const url = await serve(nodeListener(receiverWith(options)))
      const { socket, received, status } = await dial(url)

      socket.write(head({ ...headers, ...changes }))
      await status

      expect(received()).toContain(`"code":"${code}"`)
    },
  )

  it('is not a duplicate that arrives while the inbox is full', async () => {
    const inbox = memoryInbox({ maxPending: 1 })
    const receiver = receiverWith({ inbox })
    const { body, headers: first } = webhook()
    const other = webhook()
    await receiver.handle(requestOf(first, body))

    const again = await receiver.handle(requestOf(first, body))
    const next = await receiver.handle(requestOf(other.headers, other.body))

    expect([again.status, next.status]).toEqual([204, 503])
  })
})

describe('the bodies of all requests', () => {
  it('take no more than maxBytesInFlight: a request above it gets a 503 with a Retry-After', async () => {
    const limits = { maxBodyBytes: 1_000, maxBytesInFlight: 1_000, bodyTimeout: 7_500 }
    const receiver = receiverWith(limits)
    const slow = webhook(800)
    const body = pipe()
    const answer = receiver.handle(requestOf(slow.headers, body.stream))
    body.send(slow.body.slice(0, 600))
    await nextTurn()
    const large = webhook(500)
    const small = webhook(100)

    const refused = await receiver.handle(requestOf(large.headers, large.body))
    const accepted = await receiver.handle(requestOf(small.headers, small.body))
    body.send(slow.body.slice(600))
    body.end()

    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '8'])
    expect(await codeOf(refused)).toBe('overloaded')
    expect(accepted.status).toBe(204)
    expect((await answer).status).toBe(204)
  })

  it('are counted by received bytes, not by their declared lengths', async () => {
    const receiver = receiverWith({ maxBodyBytes: 1_000, maxBytesInFlight: 1_000 })
    const { headers } = webhook()
    const { 'content-length': _, ...undeclared } = headers
    const bodies = [pipe(), pipe()]
    const answers = bodies.map(({ stream }) => receiver.handle(requestOf(undeclared, stream)))
    for (const body of bodies) body.send('x'.repeat(600))

    const code = await codeOf(await Promise.race(answers))
    await nextTurn()

    expect(code).toBe('overloaded')
    expect(bodies.map(({ reader }) => reader.cancelled).toSorted()).toEqual([false, true])
  })

  it.each([
    '204',
    'bad_signature',
    'malformed_json',
    'incomplete_body',
    'body_too_large',
    'unavailable',
  ] as const)('release their memory when they end with %s', async (end) => {
    const receiver = receiverWith({ maxBodyBytes: 1_000, maxBytesInFlight: 1_000 })
    const { body, headers } = webhook(900)
    const { 'content-length': _, ...undeclared } = headers
    const send = {
      '204': () => requestOf(headers, body),
      bad_signature: () => requestOf(headers, body.replace('x', 'y')),
      malformed_json: () => {
        const text = 'x'.repeat(900)
        return requestOf({ ...sign({ body: text, secrets: SECRET }) }, text)
      },
      incomplete_body: () => {
        const cut = new ReadableStream<Uint8Array>({
          start(controller) {
            controller.enqueue(new Uint8Array(900))
          },
          pull(controller) {
            controller.error(new Error('cut'))
          },
        })
        return requestOf(headers, cut)
      },
      body_too_large: () => requestOf(undeclared, 'x'.repeat(1_001)),
      unavailable: () => {
        const read = requestOf(headers, body)
        void read.text()
        return read
      },
    }[end]

    const codes: unknown[] = []
    for (let i = 0; i < 3; i++) {
      const response = await receiver.handle(send())
      codes.push((await codeOf(response)) ?? String(response.status))
    }
    const other = webhook(900)

    expect(codes).toEqual([end, end, end])
    expect((await receiver.handle(requestOf(other.headers, other.body))).status).toBe(204)
  })

  it('keep their memory reserved until they are stored', async () => {
    const commit = Promise.withResolvers<void>()
    const memory = memoryInbox()
    const inbox = {
      ...memory,
      put: async (delivery: WebhookDelivery) => {
        await commit.promise
        return memory.put(delivery)
      },
    }
    const receiver = receiverWith({ inbox, maxBodyBytes: 1_000, maxBytesInFlight: 1_000 })
    const first = webhook(600)
    const second = webhook(600)

    const stored = receiver.handle(requestOf(first.headers, first.body))
    await nextTurn()
    const meanwhile = await receiver.handle(requestOf(second.headers, second.body))
    commit.resolve()
    await stored
    const afterwards = await receiver.handle(requestOf(second.headers, second.body))

    expect([meanwhile.status, afterwards.status]).toEqual([503, 204])
  })
})

describe('a body that does not arrive', () => {
  it('is answered 408 after bodyTimeout, is not read any further and releases its memory', async () => {
    const receiver = receiverWith({ maxBodyBytes: 1_000, maxBytesInFlight: 1_000, bodyTimeout: 20 })
    const { body, headers } = webhook(900)
    const slow = pipe()

    const answer = receiver.handle(requestOf(headers, slow.stream))
    slow.send(body.slice(0, 900))
    const response = await answer
    await nextTurn()

    expect([response.status, await codeOf(response)]).toEqual([408, 'body_timeout'])
    expect(slow.reader.cancelled).toBe(true)
    expect((await receiver.handle(requestOf(headers, body))).status).toBe(204)
  })

  it('is answered 408 over a socket, even if it keeps sending single bytes', async () => {
    const url = await serve(nodeListener(receiverWith({ bodyTimeout: 50 })))
    const { headers } = webhook()
    const { socket, received, status } = await dial(url)

    socket.write(head({ ...headers, 'content-length': String(4 * MIB) }))
    const dripping = setInterval(() => socket.write('x'), 5)
    onTestFinished(() => clearInterval(dripping))
    await status

    expect(received()).toContain('"code":"body_timeout"')
  })

  it('has no timeout after it is complete', async () => {
    const commit = Promise.withResolvers<void>()
    const inbox = { ...memoryInbox(), put: () => commit.promise.then(() => 'stored' as const) }
    const receiver = receiverWith({ inbox, bodyTimeout: 1 })
    const { body, headers } = webhook()

    const answer = receiver.handle(requestOf(headers, body))
    setTimeout(commit.resolve, 20)

    expect((await answer).status).toBe(204)
  })
})

describe('300 connections that send most of a large body, and then wait', () => {
  /** Bytes of live array buffers. V8 sweeps in the background, so dead ones still count after one collection. */
  async function heldBytes(): Promise<number> {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    let held = Infinity
    for (let i = 0; i < 5; i++) {
      await nextTurn()
      collect()
      held = Math.min(held, process.memoryUsage().arrayBuffers)
    }
    return held
  }

  /** A receiver behind a server, and its refusals. */
  async function endpoint(options: Partial<WebhookReceiverOptions>) {
    const receiver = receiverWith(options)
    const listener = nodeListener(receiver)
    const refusals: string[] = []
    receiver.refusals.subscribe(({ code }) => refusals.push(code))
    /** The server's sockets, by the ports of their clients. */
    const ends = new Map<number | undefined, Socket>()
    const url = await serve((incoming, outgoing) => {
      ends.set(incoming.socket.remotePort, incoming.socket)
      listener(incoming, outgoing)
    })
    return { url, refusals, ends }
  }

  /** Resolves with the connections when each is answered or its sent part is read. */
  async function attack(
    { url, ends }: Awaited<ReturnType<typeof endpoint>>,
    headers: Readonly<Record<string, string>>,
  ): Promise<Connection[]> {
    const part = Buffer.from(head({ ...headers, 'content-length': String(4 * MIB) }) + 'x'.repeat(MIB / 2))
    const connections = await Promise.all(Array.from({ length: 300 }, () => dial(url)))
    for (const { socket } of connections) socket.write(part)
    const isDone = ({ socket, received }: Connection) =>
      received() !== '' || ends.get(socket.localPort)?.bytesRead === part.length
    while (!connections.every(isDone)) await nextTurn()
    return connections
  }

  it('take no more memory than the limit, and release it when they close', async () => {
    const server = await endpoint({ maxBytesInFlight: 16 * MIB, bodyTimeout: 60_000 })
    const { body, headers } = webhook()
    const before = await heldBytes()

    const connections = await attack(server, headers)
    const held = (await heldBytes()) - before
    const waiting = connections.filter(({ received }) => received() === '')
    const refused = connections.filter(({ received }) => received().includes('"overloaded"'))
    for (const { socket } of waiting) socket.destroy()
    while (!server.refusals.includes('incomplete_body')) await nextTurn()
    const next = await fetch(server.url, { method: 'POST', headers, body })

    // Plus the read buffers of the sockets: 64 KiB for each of 300. All bodies together are 150 MiB.
    expect(held).toBeLessThan(48 * MIB)
    expect(waiting.length).toBeGreaterThan(0)
    expect(waiting.length).toBeLessThanOrEqual(32)
    expect(refused.length).toBe(300 - waiting.length)
    expect(next.status).toBe(204)
  })

  it('take no memory when their timestamps are stale', async () => {
    const server = await endpoint({})
    const before = await heldBytes()

    const connections = await attack(server, { ...webhook().headers, 'webhook-timestamp': '1760000000' })

    expect((await heldBytes()) - before).toBeLessThan(48 * MIB)
    expect(connections.every(({ received }) => received().includes('timestamp_out_of_tolerance'))).toBe(true)
  })
})
