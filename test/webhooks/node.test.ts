import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createWebhookReceiver, memoryInbox, nodeListener } from 'rivulet/webhooks'
import type { MemoryInbox, WebhookDelivery, WebhookReceiverOptions, WebhookToSign } from 'rivulet/webhooks'
import { firstValueFrom, map } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../support/serve.ts'
import { sign } from '../support/sign.ts'

const SECRET = 'the account secret'
const BODY = '{ "type":"task_run.status",\n "data":{"note":"na\u00efve ✓"} }'

interface Endpoint {
  readonly url: string
  readonly port: number
  readonly deliveries: readonly WebhookDelivery[]
  /** Resolves with the first delivery. */
  readonly delivered: Promise<WebhookDelivery>
  /** Resolves with the code of the first refusal. */
  readonly refused: Promise<string>
  /** Resolves once the server has its first request. */
  readonly requested: Promise<void>
}

/** A receiver behind a real server. */
async function endpoint(options: Partial<WebhookReceiverOptions> = {}): Promise<Endpoint> {
  const receiver = createWebhookReceiver({ secrets: SECRET, ...options })
  const deliveries: WebhookDelivery[] = []
  receiver.deliveries.subscribe((delivery) => deliveries.push(delivery))
  const delivered = firstValueFrom(receiver.deliveries)
  const refused = firstValueFrom(receiver.refusals.pipe(map(({ code }) => code)))
  // Most tests await one of them; the other completes without a value when the receiver is closed.
  for (const promise of [delivered, refused]) promise.catch(() => undefined)
  const requested = Promise.withResolvers<void>()
  const listener = nodeListener(receiver)
  const url = await serve((incoming, outgoing) => {
    requested.resolve()
    listener(incoming, outgoing)
  })
  onTestFinished(() => receiver.close())
  return {
    url,
    port: Number(new URL(url).port),
    deliveries,
    delivered,
    refused,
    requested: requested.promise,
  }
}

function signed(webhook: Partial<WebhookToSign> = {}): Record<string, string> {
  return sign({ body: BODY, secrets: SECRET, ...webhook })
}

/** The start of a request on the wire. */
function head(headers: Readonly<Record<string, string>>, line = 'POST /hook HTTP/1.1'): string {
  const lines = Object.entries({ host: 'receiver', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return `${[line, ...lines].join('\r\n')}\r\n\r\n`
}

/** A raw connection and the text that it has received. */
async function dial(
  port: number,
): Promise<{ socket: Socket; received: () => string; closed: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  // A server may close the connection with a reset.
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  onTestFinished(() => {
    socket.destroy()
  })
  await once(socket, 'connect')
  return { socket, received: () => text, closed }
}

/** Sends these bytes over a raw connection and resolves with the status line. */
async function statusLine(port: number, bytes: string | Uint8Array): Promise<string> {
  const { socket, received } = await dial(port)
  socket.write(bytes)
  while (!received().includes('\r\n')) {
    await once(socket, 'data')
  }
  return received().slice(0, received().indexOf('\r\n'))
}

describe('nodeListener', () => {
  it('receives a webhook, its body byte for byte', async () => {
    const { url, delivered } = await endpoint()

    const response = await fetch(url, { method: 'POST', headers: signed({ id: 'msg_1' }), body: BODY })

    expect(response.status).toBe(204)
    expect(await delivered).toEqual({
      id: 'msg_1',
      timestamp: expect.any(Number),
      payload: JSON.parse(BODY),
    })
  })

  it('writes the response before it emits the delivery', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const listener = nodeListener(receiver)
    const seen = Promise.withResolvers<boolean>()
    const url = await serve((incoming, outgoing) => {
      receiver.deliveries.subscribe(() => seen.resolve(outgoing.writableEnded))
      listener(incoming, outgoing)
    })

    await fetch(url, { method: 'POST', headers: signed(), body: BODY })

    expect(await seen.promise).toBe(true)
  })

  it('receives a body in chunks split at any byte', async () => {
    const { port, deliveries, delivered } = await endpoint()
    const chunks = Array.from(Buffer.from(BODY), (byte) =>
      Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]),
    )

    const status = await statusLine(
      port,
      Buffer.concat([
        Buffer.from(head({ ...signed(), 'transfer-encoding': 'chunked' })),
        ...chunks,
        Buffer.from('0\r\n\r\n'),
      ]),
    )
    await delivered

    expect(status).toBe('HTTP/1.1 204 No Content')
    expect(deliveries.map(({ payload }) => payload)).toEqual([JSON.parse(BODY)])
  })

  it('answers a refusal with its status, its headers and its code', async () => {
    const { url } = await endpoint()

    const response = await fetch(url)

    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST')
    expect(await response.json()).toEqual({ code: 'method_not_allowed', message: expect.any(String) })
  })

  it('refuses a body with one changed byte', async () => {
    const { url, deliveries } = await endpoint()

    const response = await fetch(url, { method: 'POST', headers: signed(), body: BODY.replace('✓', '✔') })

    expect(response.status).toBe(401)
    expect(deliveries).toEqual([])
  })

  it('refuses an empty body', async () => {
    const { url } = await endpoint()

    const unsigned = await fetch(url, { method: 'POST', headers: signed() })
    const properlySigned = await fetch(url, { method: 'POST', headers: signed({ body: '' }) })

    expect([unsigned.status, properlySigned.status]).toEqual([401, 422])
  })

  it('accepts a signature that was split over two header lines', async () => {
    const { port } = await endpoint()
    const { 'webhook-signature': good = '', ...others } = signed()

    const status = await statusLine(
      port,
      head({
        ...others,
        'content-length': String(Buffer.byteLength(BODY)),
        'Webhook-Signature': `v1,${'A'.repeat(43)}=`,
        'webhook-signature': good,
      }) + BODY,
    )

    expect(status).toBe('HTTP/1.1 204 No Content')
  })

  it('refuses two ids', async () => {
    const { port, deliveries } = await endpoint()
    const headers = {
      ...signed({ id: 'a' }),
      'Webhook-Id': 'b',
      'content-length': String(Buffer.byteLength(BODY)),
    }

    const status = await statusLine(port, head(headers) + BODY)

    expect(status).toBe('HTTP/1.1 400 Bad Request')
    expect(deliveries).toEqual([])
  })

  it('copies no header of the request into the response', async () => {
    const { port } = await endpoint()
    const { socket, received, closed } = await dial(port)

    socket.write(
      head({
        ...signed(),
        'webhook-id': 'a\r\nx-injected: yes',
        connection: 'close',
        'content-length': '2',
      }) + '{}',
    )
    await closed

    expect(received()).toMatch(/^HTTP\/1\.1 401 /)
    expect(received()).not.toContain('x-injected')
  })

  it('accepts a request line that is not a URL', async () => {
    const { port } = await endpoint()
    const headers = { ...signed(), 'content-length': String(Buffer.byteLength(BODY)) }

    expect(await statusLine(port, head(headers, 'POST // HTTP/1.1') + BODY)).toBe('HTTP/1.1 204 No Content')
  })

  it('refuses a method that fetch does not know', async () => {
    const { port } = await endpoint()

    expect(await statusLine(port, head({}, 'TRACE /hook HTTP/1.1'))).toBe('HTTP/1.1 405 Method Not Allowed')
  })

  it('refuses two content types', async () => {
    const { port } = await endpoint()
    const headers = { ...signed(), 'Content-Type': 'text/plain', 'content-length': '0' }

    expect(await statusLine(port, head(headers))).toBe('HTTP/1.1 415 Unsupported Media Type')
  })

  it('accepts any of the current secrets, and no other', async () => {
    const { url } = await endpoint({ secrets: ['new', 'old'] })
    const send = async (secrets: string | readonly string[]) =>
      (await fetch(url, { method: 'POST', headers: signed({ secrets }), body: BODY })).status

    expect([await send('new'), await send('old'), await send(['retired', 'old'])]).toEqual([204, 204, 204])
    expect(await send('retired')).toBe(401)
  })

  it('refuses text that is not UTF-8, also one that ends within a character, and accepts the next', async () => {
    const { url, deliveries, delivered } = await endpoint()
    const send = async (body: Buffer<ArrayBuffer>) =>
      (await fetch(url, { method: 'POST', headers: signed({ body }), body })).status

    const statuses = [
      await send(Buffer.from('{"note":"caf\u00e9"}', 'latin1')),
      await send(Buffer.from('{"note":"✓').subarray(0, -1)),
      await send(Buffer.from(BODY)),
    ]
    await delivered

    expect(statuses).toEqual([422, 422, 204])
    expect(deliveries.map(({ payload }) => payload)).toEqual([JSON.parse(BODY)])
  })

  it('answers pipelined requests in order, and receives the valid ones', async () => {
    const { port, deliveries } = await endpoint({ maxBodyBytes: 1_000 })
    const { socket, received } = await dial(port)
    const post = (headers: Readonly<Record<string, string>>, body = BODY) =>
      head({ ...headers, 'content-length': String(Buffer.byteLength(body)) }) + body

    socket.write(
      [
        post(signed({ id: 'a' })),
        post(signed({ secrets: 'forged' })),
        post({ ...signed(), 'content-type': 'text/plain' }),
        post(signed(), 'x'.repeat(1_001)),
        post(signed({ id: 'b' })),
        post(signed({ id: 'a' })),
      ].join(''),
    )
    const statuses = () =>
      Array.from(received().matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => Number(status))
    while (statuses().length < 6) {
      await once(socket, 'data')
    }
    await nextTurn()

    expect(statuses()).toEqual([204, 401, 415, 413, 204, 204])
    expect(deliveries.map(({ id }) => id)).toEqual(['a', 'b'])
  })

  it('answers Expect: 100-continue', async () => {
    const { port, delivered } = await endpoint()
    const { socket, received } = await dial(port)

    socket.write(
      head({ ...signed(), expect: '100-continue', 'content-length': String(Buffer.byteLength(BODY)) }),
    )
    while (!received().includes('\r\n\r\n')) {
      await once(socket, 'data')
    }
    const goOn = received()
    socket.write(BODY)
    await delivered

    expect(goOn).toMatch(/^HTTP\/1\.1 100 /)
  })

  it('receives a body that middleware has paused', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const listener = nodeListener(receiver)
    const url = await serve((incoming, outgoing) => {
      incoming.pause()
      listener(incoming, outgoing)
    })

    const response = await fetch(url, { method: 'POST', headers: signed(), body: BODY })

    expect(response.status).toBe(204)
  })

  it('survives a signature header of 10,000 entries', async () => {
    const { port, url, delivered } = await endpoint()
    const entries = `v1,${'A'.repeat(43)}= `.repeat(10_000)

    const status = await statusLine(port, head({ ...signed(), 'webhook-signature': entries }))
    const next = await fetch(url, { method: 'POST', headers: signed({ id: 'next' }), body: BODY })

    expect(status).toBe('HTTP/1.1 431 Request Header Fields Too Large')
    expect(next.status).toBe(204)
    expect((await delivered).id).toBe('next')
  })

  it.each([
    ['was already read', (incoming: IncomingMessage, next: () => void) => incoming.resume().on('end', next)],
    [
      'has an encoding',
      (incoming: IncomingMessage, next: () => void) => {
        incoming.setEncoding('utf8')
        next()
      },
    ],
  ])('throws to a framework when the body %s', async (_what, parse) => {
    const listener = nodeListener(createWebhookReceiver({ secrets: SECRET }))
    const thrown = Promise.withResolvers<unknown>()
    const url = await serve((incoming, outgoing) => {
      parse(incoming, () => {
        try {
          listener(incoming, outgoing)
        } catch (error) {
          thrown.resolve(error)
          outgoing.writeHead(500).end()
        }
      })
    })

    await fetch(url, { method: 'POST', headers: signed(), body: BODY })

    expect(await thrown.promise).toEqual(
      expect.objectContaining({
        code: 'argument',
        message: expect.stringContaining('before any body parser'),
      }),
    )
  })
})

describe('nodeListener with a custom handler', () => {
  it('passes it the request unchanged, and sends its response', async () => {
    const handle = async (request: Request) =>
      new Response(
        `${request.method} ${request.url} ${request.headers.get('x-test')} ${await request.text()}`,
        {
          status: 418,
          headers: { 'x-answer': 'yes' },
        },
      )
    const url = await serve(nodeListener(handle))

    const response = await fetch(`${url}/hook?a=1`, {
      method: 'POST',
      headers: { 'x-test': 'ü' },
      body: BODY,
    })

    expect([response.status, response.headers.get('x-answer')]).toEqual([418, 'yes'])
    expect(await response.text()).toBe(`POST ${url}/hook?a=1 ü ${BODY}`)
  })

  it('calls it when it wraps a receiver', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const statuses: number[] = []
    const handle = async (request: Request) => {
      const response = await receiver.handle(request)
      statuses.push(response.status)
      return response
    }
    const url = await serve(nodeListener(handle))

    const good = await fetch(url, { method: 'POST', headers: signed(), body: BODY })
    const forged = await fetch(url, { method: 'POST', headers: signed({ secrets: 'forged' }), body: BODY })

    expect([good.status, forged.status]).toEqual([204, 401])
    expect(statuses).toEqual([204, 401])
  })

  it('answers immediately when it does not read the body', async () => {
    const url = await serve(nodeListener(async () => new Response(null, { status: 401 })))

    const status = await statusLine(Number(new URL(url).port), head({ 'content-length': '100' }))

    expect(status).toBe('HTTP/1.1 401 Unauthorized')
  })

  it('answers 500 when it rejects', async () => {
    const url = await serve(nodeListener(() => Promise.reject(new Error('no'))))

    expect((await fetch(url)).status).toBe(500)
  })

  it.each(['POST // HTTP/1.1', 'TRACE /hook HTTP/1.1'])(
    'answers 400 to what a Request cannot represent: %s',
    async (line) => {
      const url = await serve(nodeListener(async () => new Response('never')))

      expect(await statusLine(Number(new URL(url).port), head({}, line))).toBe('HTTP/1.1 400 Bad Request')
    },
  )
})

describe('a faulty sender', () => {
  it('that disconnects within the body leaves nothing behind', async () => {
    const { port, url, deliveries, delivered, refused, requested } = await endpoint()
    const { socket } = await dial(port)
    socket.write(head({ ...signed(), 'content-length': String(Buffer.byteLength(BODY)) }) + BODY.slice(0, 10))
    await requested

    socket.destroy()
    const code = await refused
    const next = await fetch(url, { method: 'POST', headers: signed({ id: 'next' }), body: BODY })
    await delivered

    expect(code).toBe('incomplete_body')
    expect(next.status).toBe(204)
    expect(deliveries.map(({ id }) => id)).toEqual(['next'])
  })

  it('that disconnects within a chunked body leaves nothing behind', async () => {
    const { port, deliveries, refused, requested } = await endpoint()
    const { socket } = await dial(port)
    const length = Buffer.byteLength(BODY).toString(16)
    // The whole body, without its last chunk.
    socket.write(`${head({ ...signed(), 'transfer-encoding': 'chunked' })}${length}\r\n${BODY}\r\n`)
    await requested

    socket.destroy()

    expect(await refused).toBe('incomplete_body')
    expect(deliveries).toEqual([])
  })

  it('that sends malformed chunks is refused', async () => {
    const { port, deliveries, refused } = await endpoint()
    const { socket, received, closed } = await dial(port)

    socket.write(`${head({ ...signed(), 'transfer-encoding': 'chunked' })}nonsense\r\n`)
    await closed

    expect(await refused).toBe('incomplete_body')
    expect(received()).not.toContain('204')
    expect(deliveries).toEqual([])
  })

  it('that disconnects before its request is handled is refused', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const refused = firstValueFrom(receiver.refusals)
    const listener = nodeListener(receiver)
    const requested = Promise.withResolvers<void>()
    const url = await serve((incoming, outgoing) => {
      incoming.once('close', () => listener(incoming, outgoing))
      requested.resolve()
    })
    const { socket } = await dial(Number(new URL(url).port))
    socket.write(head({ ...signed(), 'content-length': '100' }))
    await requested.promise

    socket.destroy()

    expect((await refused).code).toBe('incomplete_body')
  })

  it('that disconnects before its response still has its delivery stored, and affects no other', async () => {
    const memory = memoryInbox()
    const commit = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const inbox: MemoryInbox = {
      ...memory,
      async put(delivery) {
        asked.resolve()
        await commit.promise
        return memory.put(delivery)
      },
    }
    const receiver = createWebhookReceiver({ secrets: SECRET, inbox })
    const delivered = firstValueFrom(receiver.deliveries)
    const listener = nodeListener(receiver)
    const gone = Promise.withResolvers<void>()
    const url = await serve((incoming, outgoing) => {
      outgoing.once('close', gone.resolve)
      listener(incoming, outgoing)
    })
    const { socket } = await dial(Number(new URL(url).port))
    const length = String(Buffer.byteLength(BODY))
    socket.write(head({ ...signed({ id: 'left_alone' }), 'content-length': length }) + BODY)
    await asked.promise

    socket.destroy()
    await gone.promise
    commit.resolve()
    const next = await fetch(url, { method: 'POST', headers: signed(), body: BODY })

    expect((await delivered).id).toBe('left_alone')
    expect(next.status).toBe(204)
  })

  it('that is refused before its body arrives keeps its connection when it sends the rest', async () => {
    const { port, delivered } = await endpoint()
    const { socket, received } = await dial(port)
    const length = String(Buffer.byteLength(BODY))
    socket.write(
      head({ ...signed(), 'content-type': 'text/plain', 'content-length': length }) + BODY.slice(0, 10),
    )
    while (!received().includes('\r\n\r\n')) {
      await once(socket, 'data')
    }

    socket.write(BODY.slice(10) + head({ ...signed({ id: 'next' }), 'content-length': length }) + BODY)

    expect((await delivered).id).toBe('next')
    expect(received()).toMatch(/^HTTP\/1\.1 415 /)
  })

  it('that ends its side within the body is refused', async () => {
    const { port, deliveries } = await endpoint()
    const { socket, received, closed } = await dial(port)

    socket.end(head({ ...signed(), 'content-length': String(Buffer.byteLength(BODY)) }) + BODY.slice(0, 10))
    await closed

    expect(received()).not.toContain('204')
    expect(deliveries).toEqual([])
  })

  it('that exceeds the limit with a chunked body gets a 413 while it still sends, then is disconnected', async () => {
    const { port, deliveries } = await endpoint({ maxBodyBytes: 1_000 })
    const { socket, received, closed } = await dial(port)
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`

    socket.write(head({ ...signed(), 'transfer-encoding': 'chunked' }) + chunk.repeat(3))
    await closed

    expect(received()).toMatch(/^HTTP\/1\.1 413 /)
    expect(received()).toContain('body_too_large')
    expect(deliveries).toEqual([])
  })

  it('that sends more than its content-length is read up to that length', async () => {
    const { port, deliveries } = await endpoint()

    const status = await statusLine(port, head({ ...signed(), 'content-length': '2' }) + BODY)

    // 400 if the server's parser reads the surplus before the response is written.
    expect(status).toMatch(/^HTTP\/1\.1 40[01] /)
    expect(deliveries).toEqual([])
  })

  it.each([1_001, 50_000, 2_000_000])(
    'with a body of %i bytes, above the limit, keeps its connection',
    async (size) => {
      const { port, deliveries, delivered } = await endpoint({ maxBodyBytes: 1_000 })
      const { socket, received } = await dial(port)
      const large = 'x'.repeat(size)
      const headers = signed()

      socket.write(head({ ...headers, 'content-length': String(large.length) }) + large)
      socket.write(head({ ...headers, 'content-length': String(Buffer.byteLength(BODY)) }) + BODY)
      while (!received().includes('204 No Content')) {
        await once(socket, 'data')
      }
      await delivered

      expect(received()).toMatch(/^HTTP\/1\.1 413 /)
      expect(deliveries).toHaveLength(1)
    },
  )

  it.each([1_001, 50_000, 2_000_000])(
    'with a chunked body of %i bytes, above the limit, keeps its connection',
    async (size) => {
      const { port, deliveries, delivered } = await endpoint({ maxBodyBytes: 1_000 })
      const { socket, received } = await dial(port)
      const chunks = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`

      socket.write(head({ ...signed(), 'transfer-encoding': 'chunked' }) + chunks)
      socket.write(head({ ...signed(), 'content-length': String(Buffer.byteLength(BODY)) }) + BODY)
      while (!received().includes('204 No Content')) {
        await once(socket, 'data')
      }
      await delivered

      expect(received()).toMatch(/^HTTP\/1\.1 413 /)
      expect(deliveries).toHaveLength(1)
    },
  )

  it('gets a 413 while it sends, even if the connection ends with the response', async () => {
    const { url } = await endpoint({ maxBodyBytes: 1_000 })
    const headers = { ...signed(), connection: 'close', 'content-length': '3000000' }

    const status = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = httpRequest(url, { method: 'POST', headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      outgoing.on('error', reject)
      let pieces = 30
      const sendOn = () => {
        outgoing.write(Buffer.alloc(100_000, 'x'))
        pieces -= 1
        if (pieces > 0) setImmediate(sendOn)
        else outgoing.end()
      }
      sendOn()
    })

    expect(status).toBe(413)
  })

  it('gets a 413 when it reads only after its upload', async () => {
    const { url } = await endpoint({ maxBodyBytes: 1_000 })
    const headers = { ...signed(), 'content-length': '3000000' }

    const status = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = httpRequest(url, { method: 'POST', headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      outgoing.on('error', reject)
      outgoing.end(Buffer.alloc(3_000_000, 'x'))
    })

    expect(status).toBe(413)
  })
})
