import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../support/serve.ts'
import { sign } from '../support/sign.ts'

const SECRET = 'the account secret'
const KIB = 1024
const encoder = new TextEncoder()

/** A body whose chunks the test sends. */
function pipe() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const cancelled = Promise.withResolvers<void>()
  const stream = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given
    },
    cancel: () => cancelled.resolve(),
  })
  return {
    stream,
    send: (text: string) => controller?.enqueue(encoder.encode(text)),
    end: () => controller?.close(),
    fail: () => controller?.error(new Error('the source failed')),
    cancelled: cancelled.promise,
  }
}

/** Answers every request with this body. */
function answering(body: BodyInit | null, headers?: HeadersInit) {
  return nodeListener(async () => new Response(body, { headers }))
}

async function get(url: string): Promise<IncomingMessage> {
  const outgoing = httpRequest(url).end()
  onTestFinished(() => void outgoing.destroy())
  const [response] = await once(outgoing, 'response')
  return response
}

async function dial(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

describe('nodeListener and a Response whose body is a stream', () => {
  it('sends each chunk when it arrives, before the end', async () => {
    const body = pipe()
    const response = await fetch(await answered(body, 'data: 1\n\n'))
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()

    const first = await reader?.read()
    body.send('data: 2\n\n')
    const second = await reader?.read()
    body.end()
    const end = await reader?.read()

    expect([first?.value, second?.value, end?.done]).toEqual(['data: 1\n\n', 'data: 2\n\n', true])
    expect(response.headers.get('content-length')).toBeNull()
  })

  it('cancels the stream when the client disconnects', async () => {
    const body = pipe()
    const response = await get(await answered(body, 'data: 1\n\n'))

    response.destroy()

    await expect(body.cancelled).resolves.toBeUndefined()
  })

  it('cancels the stream when the connection closes before an earlier response has been sent', async () => {
    const body = pipe()
    body.send('data: 1\n\n')
    const asked = Promise.withResolvers<void>()
    const never = Promise.withResolvers<Response>()
    const handle = async (request: Request) => {
      if (request.url.endsWith('/first')) return never.promise
      asked.resolve()
      return new Response(body.stream)
    }
    const socket = await dial(await serve(nodeListener(handle)))
    socket.write('GET /first HTTP/1.1\r\nhost: a\r\n\r\nGET /second HTTP/1.1\r\nhost: a\r\n\r\n')
    await asked.promise

    socket.destroy()

    await expect(body.cancelled).resolves.toBeUndefined()
  })

  it('reads the stream only as fast as the socket', async () => {
    const chunk = new Uint8Array(64 * KIB)
    let left = 400
    let waiting = 0
    const answers: ServerResponse[] = []
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          waiting = Math.max(waiting, ...answers.map(({ writableLength }) => writableLength))
          controller.enqueue(chunk)
          left -= 1
          if (left === 0) controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    const listener = answering(stream)
    const url = await serve((incoming, outgoing) => {
      answers.push(outgoing)
      listener(incoming, outgoing)
    })
    const response = await get(url)
    response.pause()
    // The buffers of the sockets hold some of it.
    while (!answers.some(({ writableNeedDrain }) => writableNeedDrain)) await nextTurn()

    let received = 0
    for await (const bytes of response) received += bytes.length

    expect(received).toBe(400 * chunk.byteLength)
    expect(waiting).toBeLessThan(4 * chunk.byteLength)
  })

  it('destroys the connection when the stream fails, so that the response is visibly incomplete', async () => {
    const body = pipe()
    const response = await get(await answered(body, 'data: 1\n\n'))
    const failed = once(response, 'error')
    response.resume()

    body.fail()

    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
  })

  it('destroys the connection when the stream fails whose first chunks a client does not read', async () => {
    const body = pipe()
    const large = 'x'.repeat(16 * 1024 * KIB)
    body.send(large)
    body.send(large)
    const listener = answering(body.stream)
    const answers: ServerResponse[] = []
    const url = await serve((incoming, outgoing) => {
      answers.push(outgoing)
      listener(incoming, outgoing)
    })
    const response = await get(url)
    response.on('error', () => undefined).pause()
    while (!answers.some(({ writableNeedDrain }) => writableNeedDrain)) await nextTurn()
    const closed = Promise.all(answers.map((each) => once(each, 'close')))

    body.fail()

    await expect(closed).resolves.toEqual([[]])
  })

  it('answers 500 when the stream fails before its first chunk', async () => {
    const body = pipe()
    body.fail()

    expect((await fetch(await serve(answering(body.stream)))).status).toBe(500)
  })

  it.each(['', 'whole'])('sends a body of one chunk with its length: "%s"', async (text) => {
    const response = await fetch(await serve(answering(text)))

    expect(response.headers.get('content-length')).toBe(String(text.length))
    expect(await response.text()).toBe(text)
  })
})

describe('nodeListener', () => {
  it("aborts the request's signal when the client is gone before the response", async () => {
    const asked = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    const url = await serve(
      nodeListener(async ({ signal }) => {
        signal.addEventListener('abort', () => gone.resolve())
        asked.resolve()
        await gone.promise
        return new Response()
      }),
    )
    const outgoing = httpRequest(url)
      .on('error', () => undefined)
      .end()
    await asked.promise

    outgoing.destroy()

    await expect(gone.promise).resolves.toBeUndefined()
  })

  it('keeps cookies in separate headers', async () => {
    const headers = new Headers({ 'x-other': 'yes' })
    headers.append('set-cookie', 'a=1')
    headers.append('set-cookie', 'b=2')

    const response = await fetch(await serve(answering(null, headers)))

    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.headers.get('x-other')).toBe('yes')
  })

  it('has the whole URL of a request whose prefix a framework has cut off', async () => {
    const listener = nodeListener(async ({ url }) => new Response(url))
    const url = await serve((request, response) => {
      const whole = request.url ?? ''
      listener(Object.assign(request, { url: '/stream?a=1', originalUrl: whole }), response)
    })

    expect(await (await fetch(`${url}/api/live/stream?a=1`)).text()).toBe(`${url}/api/live/stream?a=1`)
  })

  it('calls the respond of a wrapper around a receiver', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const requests: string[] = []
    const url = await serve(
      nodeListener({
        respond(request) {
          requests.push(`${request.method} ${request.header('x-test')}`)
          return receiver.respond(request)
        },
      }),
    )

    const response = await fetch(url, {
      method: 'POST',
      headers: { ...sign({ body: '{}', secrets: SECRET }), 'x-test': 'yes' },
      body: '{}',
    })

    expect([response.status, requests]).toEqual([204, ['POST yes']])
  })

  it.each([undefined, null, {}, { handle: async () => new Response() }])(
    'refuses %j, which is no receiver and no function',
    (handler) => {
      // @ts-expect-error The types permit none of them.
      expect(() => nodeListener(handler)).toThrow('handler must be a receiver, or a function')
    },
  )
})

/** The address of a server that answers with this body, which starts with this text. */
async function answered({ stream, send }: ReturnType<typeof pipe>, text: string): Promise<string> {
  send(text)
  return serve(answering(stream))
}
