import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { of } from 'rxjs'
import type { Observable } from 'rxjs'
import type { Entry, EventLog, LogJob } from 'rivulet/log'
import { memoryStore, openLog } from 'rivulet/log'
import { deliver } from 'rivulet/operators'
import type { EventOf, ResearchEvent } from 'rivulet'
import { ArgumentError } from 'rivulet'
import { httpSink, SinkError, verifySignature } from 'rivulet/webhooks'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { append } from '../log/append.ts'
import { bareRun, change, fullRun } from '../operators/events.ts'
import { Receiver } from '../rules/notify/requests.ts'
import type { Received } from '../rules/notify/requests.ts'
import { portOf } from '../support/cut-wire.ts'
import { ImpatientScheduler } from '../support/impatient-scheduler.ts'

type HttpSinkOptions = Parameters<typeof httpSink>[0]

const PATH = '/hooks/T0/secret-path?key=abcdefgh'

const circle: { self?: unknown } = {}
circle.self = circle

const entry: Entry = { ...change('1'), position: 'e:1', recorded: 1_000, revision: 1, backfill: false }

const sinkTo = (receiver: Receiver, options: Partial<HttpSinkOptions> = {}) =>
  httpSink({ url: receiver.url + PATH, ...options })

/** The error with which the promise rejects. */
async function errorOf(sent: Promise<void>): Promise<SinkError> {
  const error: unknown = await sent.catch((reason: unknown) => reason)
  if (!(error instanceof SinkError)) throw new Error('not a SinkError', { cause: error })
  return error
}

/** A log that can be opened several times, one after the other. */
function aLog() {
  const store = memoryStore()
  return {
    add: (...events: readonly ResearchEvent[]) => append(store, events),
    async open(): Promise<EventLog> {
      const log = await openLog(store.connect())
      onTestFinished(() => log.close())
      return log
    },
  }
}

const idsOf = (requests: readonly Received[]) => requests.map(({ headers }) => headers['webhook-id'])

describe('httpSink', () => {
  it('posts an entry of a log as a CloudEvent', async () => {
    const receiver = await Receiver.start()
    const { add, open } = aLog()
    await add(fullRun('r'))
    const log = await open()
    const { entries } = await log.read(await log.positionAt('start'), { limit: 1 })

    const job = log.consume('http', {}, sinkTo(receiver))
    onTestFinished(() => job.stop())

    const [request] = await receiver.requests(1)
    expect(request?.path).toBe(PATH)
    expect(request?.headers['content-type']).toBe('application/cloudevents+json')
    const { recorded = 0, ...fields } = JSON.parse(JSON.stringify(entries[0]))
    expect(JSON.parse(request?.body ?? '')).toEqual({
      ...fields,
      time: fields.time ?? undefined,
      specversion: '1.0',
      datacontenttype: 'application/json',
      recorded: new Date(recorded).toISOString(),
    })
  })

  it('posts an array as one batch, also of one event, and nothing for an empty one', async () => {
    const receiver = await Receiver.start()
    const sink = sinkTo(receiver)

    await sink([])
    await sink([entry, { ...entry, id: '2' }])
    await sink([entry])

    const bodies = receiver.received.map(({ body }) => JSON.parse(body).map(({ id }: Entry) => id))
    expect(bodies).toEqual([[entry.id, '2'], [entry.id]])
    const types = receiver.received.map(({ headers }) => headers['content-type'])
    expect(types).toEqual(Array.from({ length: 2 }, () => 'application/cloudevents-batch+json'))
  })

  it('posts an event that comes from no log, with the text of its error', async () => {
    const receiver = await Receiver.start()
    const data = { error: new Error('gone') }
    const failed = { ...change('1'), type: 'source.failed', data } as ResearchEvent

    await sinkTo(receiver)(failed)

    const body: unknown = JSON.parse(receiver.received[0]?.body ?? '')
    expect(body).toMatchObject({ id: failed.id, data: { error: { name: 'Error', message: 'gone' } } })
    expect(body).not.toHaveProperty('recorded')
  })

  it('is a handler that changes no type', () => {
    const sink = httpSink({ url: 'https://x.example' })
    const entries = of<Entry>().pipe(deliver(sink))
    const changes = of<EventOf<'monitor.event_stream'>>().pipe(deliver(sink))
    const batches = of<readonly Entry[]>().pipe(deliver(sink, { concurrency: 1 }))
    const consume = (log: EventLog) => log.consume('http', { types: ['task_run.state'] }, sink)

    expectTypeOf(entries).toEqualTypeOf<Observable<Entry>>()
    expectTypeOf(changes).toEqualTypeOf<Observable<EventOf<'monitor.event_stream'>>>()
    expectTypeOf(batches).toEqualTypeOf<Observable<readonly Entry[]>>()
    expectTypeOf(consume).returns.toEqualTypeOf<LogJob>()
    // @ts-expect-error What is no event is not sent.
    of(5).pipe(deliver(sink))
  })

  it('signs each attempt with each secret, texts and bytes', async () => {
    const receiver = await Receiver.start()
    const secrets = ['new secret', new TextEncoder().encode('old secret')]
    await sinkTo(receiver, { secrets })(entry)

    const [request] = receiver.received
    const { headers = {}, body = '' }: Partial<Received> = request ?? {}
    const content = {
      id: String(headers['webhook-id']),
      timestamp: String(headers['webhook-timestamp']),
      body,
    }
    const signature = String(headers['webhook-signature'])
    for (const secret of ['new secret', 'old secret'])
      expect(await verifySignature(content, signature, secret)).toBe(true)
    const forged = { ...content, body: `${body} ` }
    expect(await verifySignature(forged, signature, ['new secret', 'old secret'])).toBe(false)
    expect(headers['content-type']).toBe('application/cloudevents+json')
  })

  it('sends credentials and headers, and the user of a URL as a header', async () => {
    const receiver = await Receiver.start()
    const headers = { 'X-Api-Key': 'key-of-the-receiver' }
    await sinkTo(receiver, { auth: { bearer: 'token' }, headers })(entry)
    await httpSink({ url: receiver.url.replace('//', '//änn:p%20w@') })(entry)
    await sinkTo(receiver, { headers: { Authorization: 'Key of-the-receiver' } })(entry)

    expect(receiver.received[0]?.headers).toMatchObject({
      authorization: 'Bearer token',
      'x-api-key': 'key-of-the-receiver',
    })
    const basic = Buffer.from('änn:p w').toString('base64')
    expect(receiver.received[1]?.headers).toMatchObject({ authorization: `Basic ${basic}` })
    expect(receiver.received[2]?.headers).toMatchObject({ authorization: 'Key of-the-receiver' })
  })
})

describe('the webhook-id of httpSink', () => {
  it('is the same in each attempt, and after a restart', async () => {
    const answers = [500, 'nothing', 200] as const
    let count = 0
    const receiver = await Receiver.start((response) => {
      const answer = answers[count++] ?? 200
      if (answer !== 'nothing') response.writeHead(answer).end()
    })
    const { add, open } = aLog()
    await add(change('1'))
    const log = await open()
    const options = { scheduler: new ImpatientScheduler(), drainTimeout: 0 }
    log.consume('http', options, sinkTo(receiver)).done.catch(() => undefined)
    await receiver.requests(2)
    await log.close()

    const again = (await open()).consume('http', {}, sinkTo(receiver))
    onTestFinished(() => again.stop())

    expect(new Set(idsOf(await receiver.requests(3))).size).toBe(1)
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    expect(idsOf(receiver.received)[0]).toMatch(/^msg_[0-9a-f]{64}$/)
  })

  it('is another one for another event, source, revision, or completeness', async () => {
    const receiver = await Receiver.start()
    const sink = sinkTo(receiver)
    await sink(entry)
    await sink({ ...entry, id: '2' })
    await sink({ ...entry, source: '/v1/monitors/other' })
    await sink({ ...entry, revision: 2 })
    await sink([entry, { ...entry, id: '2' }])
    await sink(bareRun('r'))
    await sink(fullRun('r'))

    expect(new Set(idsOf(receiver.received)).size).toBe(7)
  })
})

describe('an answer to httpSink', () => {
  it.each([408, 425, 429, 500, 501, 503, 599])('of %i is retried', async (status) => {
    let isFirst = true
    const receiver = await Receiver.start((response) => {
      response.writeHead(isFirst ? status : 202).end()
      isFirst = false
    })
    const handled: unknown[] = []
    await of(change('1'))
      .pipe(deliver(sinkTo(receiver), { scheduler: new ImpatientScheduler() }))
      .forEach((event) => void handled.push(event.id))

    expect(receiver.received).toHaveLength(2)
    expect(handled).toHaveLength(1)
  })

  it.each([301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 422, 451])(
    'of %i makes a dead letter at once',
    async (status) => {
      const receiver = await Receiver.start((response) =>
        response.writeHead(status, { location: 'https://elsewhere.example/' }).end(),
      )
      const letters: { readonly error: unknown; readonly attempts: number }[] = []
      await of(change('1'))
        .pipe(deliver(sinkTo(receiver), { deadLetters: { next: (letter) => void letters.push(letter) } }))
        .forEach(() => {})

      expect(letters).toMatchObject([{ attempts: 1, error: { status, retryable: false, code: 'sink' } }])
      expect(receiver.received).toHaveLength(1)
    },
  )

  it('becomes a dead letter of the log, which is handed out again with the same webhook-id', async () => {
    let isMended = false
    const receiver = await Receiver.start((response) => response.writeHead(isMended ? 204 : 422).end('no'))
    const { add, open } = aLog()
    await add(change('1'))
    const log = await open()
    const job = log.consume('http', { deadLetters: 'log' }, sinkTo(receiver))
    onTestFinished(() => job.stop())
    await vi.waitFor(async () => expect(await log.deadLetters('http').count()).toBe(1))
    const texts: string[] = []
    for await (const { error } of log.deadLetters('http').list()) texts.push(error.message)
    isMended = true
    await log.deadLetters('http').redeliver('all')

    expect(new Set(idsOf(await receiver.requests(2))).size).toBe(1)
    expect(texts).toEqual([`${receiver.url} answered with 422: no`])
  })

  it('is not followed when it is a redirect', async () => {
    const other = await Receiver.start()
    const receiver = await Receiver.start((response) =>
      response.writeHead(307, { location: other.url }).end(),
    )

    const { message } = await errorOf(sinkTo(receiver, { auth: { bearer: 'token' } })(entry))

    expect(message).toBe(`${receiver.url} answered with a redirect (307), which is not followed`)
    expect(other.received).toEqual([])
  })

  it('that hides the status of a redirect is permanent', async () => {
    const hidden = Object.defineProperty(new Response(), 'status', { value: 0 })
    const sink = httpSink({ url: 'https://x.example', fetch: async () => hidden })

    expect(await errorOf(sink(entry))).toMatchObject({ status: 0, retryable: false })
  })

  it.each([
    ['120', 120_000],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 60_000],
    ['99999999', 3_600_000],
  ])('with Retry-After %s is the lower bound of the delay', async (value, least) => {
    let isFirst = true
    const receiver = await Receiver.start((response) => {
      response.writeHead(isFirst ? 503 : 200, {
        'retry-after': value,
        date: 'Wed, 21 Oct 2026 07:27:00 GMT',
      })
      response.end()
      isFirst = false
    })
    const scheduler = new ImpatientScheduler()
    await of(change('1'))
      .pipe(deliver(sinkTo(receiver), { scheduler, random: () => 0 }))
      .forEach(() => {})

    expect(scheduler.frame).toBe(least)
  })

  it.each(['0', '-1', 'soon', '1e9', '', '9'.repeat(400)])(
    'with Retry-After %j removes no delay, and makes no endless one',
    async (value) => {
      const receiver = await Receiver.start((response) =>
        response.writeHead(503, { 'retry-after': value }).end(),
      )
      const { retryAfter = 0 } = await errorOf(sinkTo(receiver)(entry))

      expect(retryAfter).toBeLessThanOrEqual(3_600_000)
    },
  )
})

/** More bytes than the buffers of a connection hold on both sides, while nobody reads them. */
const MAX_IN_BUFFERS = 64 * 1024 * 1024

/** Until the test moves it on, no timeout fires: what ends before that is bounded by its length. */
function stopTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** A server of bare bytes: what it sends to each request, and the number of bytes that it could write until its first connection ended. */
async function bareServer(answer: (socket: Socket) => void) {
  const ended = Promise.withResolvers<number>()
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('close', () => ended.resolve(socket.bytesWritten))
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${portOf(server)}/secret-path`, ended: ended.promise }
}

/** Sends a part again and again, as fast as the other side takes it. */
function endlessly(socket: Socket, head: string, part: string): void {
  const more = () => {
    while (!socket.destroyed && socket.write(part));
  }
  socket.on('drain', more)
  socket.write(head)
  more()
}

describe('a hostile answer to httpSink', () => {
  const chunked = (status: string) => `HTTP/1.1 ${status}\r\ntransfer-encoding: chunked\r\n\r\n`
  const chunk = `${(8_192).toString(16)}\r\n${'x'.repeat(8_192)}\r\n`

  it('with a body without end is read in part, and its connection ends', async () => {
    stopTime()
    const { url, ended } = await bareServer((socket) => endlessly(socket, chunked('400 Bad'), chunk))

    const error = await errorOf(httpSink({ url })(entry))

    expect(await ended).toBeLessThan(MAX_IN_BUFFERS)
    expect(error).toMatchObject({ status: 400, retryable: false })
    expect(error.message.length).toBeLessThan(400)
  })

  it('with 200 and a body without end is accepted, and its connection ends', async () => {
    stopTime()
    const { url, ended } = await bareServer((socket) => endlessly(socket, chunked('200 OK'), chunk))

    await expect(httpSink({ url })(entry)).resolves.toBeUndefined()

    expect(await ended).toBeLessThan(MAX_IN_BUFFERS)
  })

  it('with a body that stops keeps its status, and is not waited for beyond the timeout', async () => {
    stopTime()
    const start = Promise.withResolvers<void>()
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('half')),
      pull: () => start.resolve(),
    })
    const fetch = async () => new Response(body, { status: 422 })
    const failed = errorOf(httpSink({ url: 'https://x.example', fetch, timeout: 100 })(entry))
    await start.promise
    await vi.advanceTimersByTimeAsync(100)

    expect(await failed).toMatchObject({ status: 422, message: 'https://x.example answered with 422: half' })
  })

  it.each([
    ['that is no HTTP', 'secret-path\r\n\r\n'],
    ['without a status', 'HTTP/1.1 abc\r\n\r\n'],
    ['of an impossible status', 'HTTP/1.1 999999 x\r\n\r\n'],
    ['that is cut in its headers', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['that is empty', ''],
  ])('%s is retryable, without its text', async (_, bytes) => {
    const { url } = await bareServer((socket) => socket.end(bytes))

    const error = await errorOf(httpSink({ url })(entry))

    expect(error).toMatchObject({ status: undefined, retryable: true })
    expect(error.message).toMatch(/^http:\/\/127\.0\.0\.1:\d+ could not be reached( \([A-Z_0-9]+\))?$/)
  })

  it('with headers without end is retryable', async () => {
    const { url, ended } = await bareServer((socket) =>
      endlessly(socket, 'HTTP/1.1 200 OK\r\n', `x-header: ${'x'.repeat(1_000)}\r\n`),
    )

    expect(await errorOf(httpSink({ url })(entry))).toMatchObject({ retryable: true })
    await ended
  })

  it('of another length than it says keeps its status', async () => {
    const { url } = await bareServer((socket) =>
      socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 100\r\n\r\nshort'),
    )

    expect(await errorOf(httpSink({ url })(entry))).toMatchObject({ status: 404, retryable: false })
  })

  it('has no line, and no character that controls a terminal, in the error', async () => {
    const receiver = await Receiver.start((response) => response.writeHead(400).end('a\n\u001b[31mb\u202e c'))

    const { message } = await errorOf(sinkTo(receiver)(entry))

    expect(message).toBe(`${receiver.url} answered with 400: a [31mb c`)
  })

  it.each([
    ['as it is', (text: string) => text],
    ['as JSON', (text: string) => JSON.stringify(text).replaceAll('/', String.raw`\/`)],
    ['as a part of a URL', encodeURIComponent],
    ['in Base64', (text: string) => Buffer.from(text).toString('base64')],
    ['in hexadecimal', (text: string) => Buffer.from(text).toString('hex')],
  ])('that sends back %s what it got shows no secret', async (_, encode) => {
    const secrets = 'signing/secret+of the sink'
    const auth = { bearer: 'token/of+the=receiver' }
    const headers = { 'x-api-key': 'key/of+the=receiver' }
    const parts = ({ path, headers: got }: Received) => [
      path,
      got['authorization'],
      got['x-api-key'],
      got['webhook-signature'],
      secrets,
    ]
    const receiver = await Receiver.start((response, received) => {
      const part = parts(received)[receiver.received.length - 1]
      response.writeHead(500).end(encode(String(part)))
    })
    const sink = sinkTo(receiver, { secrets, auth, headers })
    const shown: string[] = []
    for (let n = 0; n < 5; n++) {
      shown.push(inspect(await errorOf(sink(entry)), { depth: Infinity, showHidden: true }))
    }

    const signature = String(receiver.received[3]?.headers['webhook-signature']).slice('v1,'.length)
    const hidden = ['secret-path', 'abcdefgh', 'of+the', 'signing', signature]
    expect(shown.filter((text) => text.includes('(not shown)'))).toHaveLength(5)
    expect(shown.filter((text) => hidden.some((secret) => decodingsOf(text).includes(secret)))).toEqual([])
  })
})

/** The text, and what its words are if they are encoded. */
function decodingsOf(text: string): string {
  const words = text.match(/[\w+/=%\\-]{8,}/g) ?? []
  const inBase64 = words.flatMap((word) => [0, 1, 2, 3].map((from) => word.slice(from)))
  return [
    text,
    ...words.map((word) => word.replaceAll('\\', '')),
    ...words.map((word) => word.replaceAll(/%[0-9a-f]{2}/gi, (code) => decodeURIComponent(code))),
    ...words.map((word) => Buffer.from(word, 'hex').toString('latin1')),
    ...inBase64.map((word) => Buffer.from(word, 'base64').toString('latin1')),
  ].join('\n')
}

describe('a request of httpSink', () => {
  it('ends after its timeout', async () => {
    const ended = Promise.withResolvers<void>()
    const receiver = await Receiver.start((response) => void response.on('close', () => ended.resolve()))

    const error = await errorOf(sinkTo(receiver, { timeout: 20 })(entry))

    await ended.promise
    expect(error).toMatchObject({ status: undefined, retryable: true })
    expect(error.message).toBe(`${receiver.url} did not answer within 20 ms`)
  })

  it('ends when the signal is aborted, and does not begin after that', async () => {
    const ended = Promise.withResolvers<void>()
    const receiver = await Receiver.start((response) => void response.on('close', () => ended.resolve()))
    const stop = new AbortController()
    const sink = sinkTo(receiver)
    const sent = errorOf(sink(entry, stop.signal))
    await receiver.requests(1)

    stop.abort()

    expect(await sent).toMatchObject({ status: undefined, retryable: true })
    await ended.promise
    expect(await errorOf(sink(entry, stop.signal))).toMatchObject({ retryable: true })
    expect(receiver.received).toHaveLength(1)
  })

  it('frees the connection of an answer that came after its timeout', async () => {
    const cancelled = Promise.withResolvers<void>()
    const answered = Promise.withResolvers<Response>()
    const sink = httpSink({ url: 'https://x.example', timeout: 1, fetch: () => answered.promise })
    await errorOf(sink(entry))

    answered.resolve(new Response(new ReadableStream({ cancel: () => cancelled.resolve() })))

    await expect(cancelled.promise).resolves.toBeUndefined()
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a body that cannot be cancelled', { body: {} }],
    ['a body that fails when it is cancelled', { body: { cancel: () => Promise.reject(new Error('gone')) } }],
  ])('leaves no rejection when fetch resolves with %s after its timeout', async (_, late) => {
    const rejections: unknown[] = []
    const onRejection = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', onRejection)
    onTestFinished(() => void process.off('unhandledRejection', onRejection))
    const answered = Promise.withResolvers<Response>()
    const sink = httpSink({ url: 'https://x.example', timeout: 1, fetch: () => answered.promise })
    await errorOf(sink(entry))

    // @ts-expect-error A fetch from outside of TypeScript.
    answered.resolve(late)
    // Node reports rejections after the microtasks of a turn.
    await turn()
    await turn()

    expect(rejections).toEqual([])
  })

  it('fails with a typed error when fetch throws', async () => {
    const sink = httpSink({
      url: 'https://x.example/secret-path',
      fetch: () => {
        throw new Error('https://x.example/secret-path')
      },
    })

    const error = await errorOf(sink(entry))
    expect(error).toMatchObject({ origin: 'https://x.example', retryable: true })
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('secret-path')
  })

  it.each([undefined, null, 5, 'event', {}, { source: '/s', id: '1' }, [undefined], [entry, {}]])(
    'is not sent for what is no event: %j',
    async (given) => {
      const receiver = await Receiver.start()

      await expect(sinkTo(receiver)(given as Entry)).rejects.toThrow(ArgumentError)
      expect(receiver.received).toEqual([])
    },
  )

  it.each([
    ['a circle', circle],
    ['a bigint', { big: 1n }],
  ])('is not sent for data with %s', async (_, data) => {
    const receiver = await Receiver.start()
    const given = { ...change('1'), data } as unknown as ResearchEvent

    await expect(sinkTo(receiver)(given)).rejects.toThrow('event must be JSON')
    expect(receiver.received).toEqual([])
  })
})

describe('the address of httpSink', () => {
  it.each([
    'https://10.0.0.1/x',
    'https://hooks.example',
    'http://localhost:8080',
    'http://app.localhost',
    'http://127.0.0.2',
    'http://[::1]:80',
  ])('may be %s', (url) => {
    expect(() => httpSink({ url })).not.toThrow()
  })

  it.each([
    'http://hooks.example/secret-path',
    'http://10.0.0.1/secret-path',
    'http://localhost.example/secret-path',
    'http://127.0.0.1.example/secret-path',
    'http://user:hunter2@hooks.example/secret-path',
  ])('is not %s, without allowInsecure', (url) => {
    expect(() => httpSink({ url })).toThrow(/^url must be an https URL, .* got "http:\/\/[\w.]+\/"$/)
    expect(() => httpSink({ url, allowInsecure: true })).not.toThrow()
  })

  it.each(['ftp://x.example/secret-path', 'x.example/secret-path', '', 'https://', 5, undefined, null])(
    'is not %j',
    (url) => {
      expect(() => httpSink({ url } as HttpSinkOptions)).toThrow(/^url must be a URL of http or https, got /)
    },
  )

  it.each(['Content-Type', 'webhook-timestamp', 'webhook-id', 'Webhook-Signature', 'host', 'connection'])(
    'takes no header %s of the user',
    (name) => {
      expect(() => httpSink({ url: 'https://x.example', headers: { [name]: 'a secret' } })).toThrow(
        `headers must be without ${name.toLowerCase()}, which the library sets itself`,
      )
    },
  )
})
