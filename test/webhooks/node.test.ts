import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createWebhookReceiver, nodeListener, signWebhook } from 'rivulet/webhooks'
import type { WebhookDelivery, WebhookReceiverOptions, WebhookToSign } from 'rivulet/webhooks'
import { firstValueFrom, map } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../support/serve.ts'

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
  // Most tests wait for one of them; the other ends without a value when the receiver is closed.
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
  return signWebhook({ body: BODY, secrets: SECRET, ...webhook })
}

/** The start of a request as it goes over the wire. */
function head(headers: Readonly<Record<string, string>>, line = 'POST /hook HTTP/1.1'): string {
  const lines = Object.entries({ host: 'receiver', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return `${[line, ...lines].join('\r\n')}\r\n\r\n`
}

/** A bare connection, with what it has received so far. */
async function dial(
  port: number,
): Promise<{ socket: Socket; received: () => string; closed: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  // A server that has enough may reset the connection: that is one way to close it.
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  onTestFinished(() => {
    socket.destroy()
  })
  await once(socket, 'connect')
  return { socket, received: () => text, closed }
}

/** Sends these bytes over a bare connection and resolves with the status line once one comes. */
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

  it('has written the answer before a subscriber sees the delivery', async () => {
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

  it('receives a body in chunks cut at any byte', async () => {
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

  it('refuses a body with one byte changed on its way', async () => {
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

  it('lets no header of the request into the answer', async () => {
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

  it('answers a request line that is no URL', async () => {
    const { port } = await endpoint()

    expect(await statusLine(port, head({}, 'POST // HTTP/1.1'))).toBe('HTTP/1.1 400 Bad Request')
  })

  it('answers a method that the web does not know', async () => {
    const { port } = await endpoint()

    expect(await statusLine(port, head({}, 'TRACE /hook HTTP/1.1'))).toBe('HTTP/1.1 400 Bad Request')
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

  it('tells a framework when the body was read before', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const listener = nodeListener(receiver)
    const thrown = Promise.withResolvers<unknown>()
    const url = await serve((incoming: IncomingMessage, outgoing) => {
      incoming.resume().on('end', () => {
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
      expect.objectContaining({ message: expect.stringContaining('ahead of') }),
    )
  })

  it('answers 500 when a handler of your own rejects', async () => {
    const url = await serve(nodeListener({ handle: () => Promise.reject(new Error('no')) }))

    expect((await fetch(url)).status).toBe(500)
  })
})

describe('a sender that goes wrong', () => {
  it('and breaks off within the body leaves nothing behind', async () => {
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

  it('and ends its side within the body is refused', async () => {
    const { port, deliveries } = await endpoint()
    const { socket, received, closed } = await dial(port)

    socket.end(head({ ...signed(), 'content-length': String(Buffer.byteLength(BODY)) }) + BODY.slice(0, 10))
    await closed

    expect(received()).not.toContain('204')
    expect(deliveries).toEqual([])
  })

  it('and sends a chunked body beyond the limit is answered 413 while it still sends, then cut off', async () => {
    const { port, deliveries } = await endpoint({ maxBodyBytes: 1_000 })
    const { socket, received, closed } = await dial(port)
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`

    socket.write(head({ ...signed(), 'transfer-encoding': 'chunked' }) + chunk.repeat(3))
    await closed

    expect(received()).toMatch(/^HTTP\/1\.1 413 /)
    expect(received()).toContain('body_too_large')
    expect(deliveries).toEqual([])
  })

  it('and announces less than it sends is held to what it announced', async () => {
    const { port, deliveries } = await endpoint()

    const status = await statusLine(port, head({ ...signed(), 'content-length': '2' }) + BODY)

    // 400 where the server's parser meets the surplus before the answer is written.
    expect(status).toMatch(/^HTTP\/1\.1 40[01] /)
    expect(deliveries).toEqual([])
  })

  it.each([1_001, 50_000, 2_000_000])(
    'with a body of %i bytes, too many, keeps its connection',
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

  it('is told 413 when it waits for its upload to end', async () => {
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
