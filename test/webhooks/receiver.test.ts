import { createHmac } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { ArgumentError } from 'rivulet'
import { createWebhookReceiver, memoryInbox, signedRequest } from 'rivulet/webhooks'
import type {
  MemoryInbox,
  WebhookDelivery,
  WebhookReceiver,
  WebhookReceiverOptions,
  WebhookRefusal,
  WebhookToSign,
} from 'rivulet/webhooks'
import { config as rxjs, firstValueFrom, map, take, toArray } from 'rxjs'
import { afterEach, describe, expect, it } from 'vitest'
import { Gate, withGate } from '../../src/protocol/gate.ts'
import { sign } from '../support/sign.ts'

const URL = 'http://127.0.0.1/webhooks'
const SECRET = 'the account secret'
const NOW = 1_760_000_000
const PAYLOAD = { type: 'task_run.status', timestamp: '2025-10-09T08:53:20Z', data: { run_id: 'run_1' } }
const BODY = JSON.stringify(PAYLOAD)

function receiverWith(options: Partial<WebhookReceiverOptions> = {}): WebhookReceiver {
  return createWebhookReceiver({ secrets: SECRET, clock: () => NOW * 1000, ...options })
}

/** A request that a receiver of {@link receiverWith} accepts, with these changes. */
function requestOf(
  webhook: Partial<WebhookToSign> = {},
  changes: { readonly headers?: Record<string, string | null>; readonly body?: BodyInit | null } = {},
): Request {
  const signed = { body: BODY, secrets: SECRET, timestamp: NOW, id: 'msg_1', ...webhook }
  const headers = new Headers(sign(signed))
  for (const [name, value] of Object.entries(changes.headers ?? {})) {
    if (value === null) headers.delete(name)
    else headers.set(name, value)
  }
  const body = changes.body === undefined ? bytesOf(signed.body) : changes.body
  // `duplex` is required for a streamed body and missing in the DOM's types.
  const init = { method: 'POST', headers, body, duplex: 'half' }
  return new Request(URL, init)
}

function bytesOf(body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(body))
}

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
}

/** Records what the receiver emits from now on. */
function record(receiver: WebhookReceiver): WebhookDelivery[] {
  const deliveries: WebhookDelivery[] = []
  receiver.deliveries.subscribe((delivery) => deliveries.push(delivery))
  return deliveries
}

async function statusAt(timestamp: number, options?: Partial<WebhookReceiverOptions>): Promise<number> {
  return (await outcome(requestOf({ timestamp }), options)).status
}

/** Sends one request; resolves with its response and the emitted deliveries. */
async function outcome(request: Request, options?: Partial<WebhookReceiverOptions>) {
  const receiver = receiverWith(options)
  const deliveries = record(receiver)
  const response = await receiver.handle(request)
  await nextTurn()
  const text = await response.text()
  const body: unknown = text === '' ? undefined : JSON.parse(text)
  return { status: response.status, body, headers: response.headers, deliveries }
}

describe('a delivery', () => {
  it('is answered 204 and emitted with its id, its timestamp and its payload', async () => {
    const { status, body, deliveries } = await outcome(requestOf())

    expect(status).toBe(204)
    expect(body).toBeUndefined()
    expect(deliveries).toEqual([{ id: 'msg_1', timestamp: NOW, payload: PAYLOAD }])
  })

  it('is accepted when signedRequest makes it', async () => {
    const receiver = createWebhookReceiver({ secrets: SECRET })
    const deliveries = record(receiver)

    const response = await receiver.handle(await signedRequest(URL, PAYLOAD, { secrets: SECRET }))
    await nextTurn()

    expect(response.status).toBe(204)
    expect(deliveries.map(({ payload }) => payload)).toEqual([PAYLOAD])
  })

  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON ;charset="UTF-8"'])(
    'may have the content type %s',
    async (contentType) => {
      const { status } = await outcome(requestOf({}, { headers: { 'content-type': contentType } }))

      expect(status).toBe(204)
    },
  )

  it.each([
    ['odd whitespace', ' \n\t{ "type" :\r\n "x" ,"n":1.50e+01 }\n\n'],
    ['repeated keys', '{"type":"a","type":"x"}'],
    ['non-ASCII text, escaped and not', '{"type":"x","note":"na\\u00efve ✓ 漢字 \u{1F980} \\ud800"}'],
    ['a byte order mark', '\uFEFF{"type":"x"}'],
  ])('is verified over its exact bytes: %s', async (_, body) => {
    const accepted = await outcome(requestOf({ body }))
    const changed = await outcome(requestOf({ body }, { body: `${body} ` }))

    expect(accepted.status).toBe(204)
    expect(accepted.deliveries).toEqual([
      expect.objectContaining({ payload: expect.objectContaining({ type: 'x' }) }),
    ])
    expect(changed.status).toBe(401)
  })

  it('may arrive in chunks of any size, split within a character', async () => {
    const body = bytesOf('{"note":"✓ 漢字"}')
    const chunks = Array.from(body, (byte) => Uint8Array.of(byte))

    const { status, deliveries } = await outcome(requestOf({ body }, { body: streamOf(...chunks) }))

    expect(status).toBe(204)
    expect(deliveries[0]?.payload).toEqual({ note: '✓ 漢字' })
  })

  it('is accepted when one of several signatures matches, next to unknown versions', async () => {
    const { 'webhook-signature': good } = sign({
      body: BODY,
      secrets: SECRET,
      id: 'msg_1',
      timestamp: NOW,
    })
    const header = `v0,abc v1a,${good.slice(3)} v1,${'A'.repeat(43)}= ${good} nonsense`

    const { status } = await outcome(requestOf({}, { headers: { 'webhook-signature': header } }))

    expect(status).toBe(204)
  })

  it('is accepted with any of the current secrets', async () => {
    const secrets = ['newest', SECRET, 'oldest']

    const answers = await Promise.all(
      [...secrets, 'retired'].map((secret) => outcome(requestOf({ secrets: secret }), { secrets })),
    )

    expect(answers.map(({ status }) => status)).toEqual([204, 204, 204, 401])
  })

  it.each([
    ['a function', (current: () => string | string[]) => current()],
    ['an asynchronous function', async (current: () => string | string[]) => current()],
  ])('is checked against the current secrets if they are %s', async (_, read) => {
    let secrets: string | string[] = 'first'
    const receiver = receiverWith({ secrets: () => read(() => secrets) })
    const send = async (id: string, secret: string) =>
      (await receiver.handle(requestOf({ id, secrets: secret }))).status

    const before = await send('a', 'first')
    secrets = ['second', 'first']
    const during = [await send('b', 'first'), await send('c', 'second')]
    secrets = 'second'
    const after = [await send('d', 'first'), await send('e', 'second')]

    expect([before, during, after]).toEqual([204, [204, 204], [401, 204]])
  })

  it.each([
    ['a promise', () => new Promise<string>(() => {})],
    // oxlint-disable-next-line unicorn/no-thenable typescript/no-unsafe-type-assertion -- A promise of another library.
    ['a thenable', () => ({ then() {} }) as unknown as Promise<string>],
  ])('is a 503 if its secrets are %s that does not settle, and gives back its memory', async (_, secrets) => {
    let isSettling = false
    const limits = { maxBodyBytes: 1_024, maxBytesInFlight: 1_024, bodyTimeout: 10 }
    const receiver = receiverWith({ secrets: () => (isSettling ? SECRET : secrets()), ...limits })
    const response = await receiver.handle(requestOf({ body: JSON.stringify('x'.repeat(1_000)) }))
    isSettling = true

    expect([response.status, (await response.json()).code]).toEqual([503, 'unavailable'])
    expect((await receiver.handle(requestOf({ id: 'next' }))).status).toBe(204)
  })

  it('is within the tolerance up to its last millisecond, in both directions', async () => {
    expect(await statusAt(NOW - 300)).toBe(204)
    expect(await statusAt(NOW + 300)).toBe(204)
    expect(await statusAt(NOW - 300, { clock: () => NOW * 1000 + 1 })).toBe(403)
    expect(await statusAt(NOW + 300, { clock: () => NOW * 1000 - 1 })).toBe(403)
    expect(await statusAt(NOW - 2, { tolerance: 1_000 })).toBe(403)
    expect(await statusAt(1, { tolerance: Infinity })).toBe(204)
  })
})

describe('a duplicate', () => {
  it('is answered 204 each time and emitted once', async () => {
    const receiver = receiverWith()
    const deliveries = record(receiver)

    const first = await receiver.handle(requestOf())
    await nextTurn()
    const later = await receiver.handle(requestOf({ timestamp: NOW + 5 }))
    await nextTurn()

    expect([first.status, later.status]).toEqual([204, 204])
    expect(deliveries).toHaveLength(1)
  })

  it('that arrives at the same time is emitted once', async () => {
    const receiver = receiverWith()
    const deliveries = record(receiver)

    const answers = await Promise.all(Array.from({ length: 20 }, () => receiver.handle(requestOf())))
    await nextTurn()

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]))
    expect(deliveries).toHaveLength(1)
  })

  it('of a refused request is not a duplicate', async () => {
    const receiver = receiverWith()
    const deliveries = record(receiver)

    const forged = await receiver.handle(requestOf({ secrets: 'forged' }))
    const genuine = await receiver.handle(requestOf())
    await nextTurn()

    expect([forged.status, genuine.status]).toEqual([401, 204])
    expect(deliveries).toHaveLength(1)
  })
})

describe('a refusal', () => {
  const cases: readonly (readonly [what: string, request: () => Request, status: number, code: string])[] = [
    ['a GET', () => new Request(URL), 405, 'method_not_allowed'],
    [
      'a PUT that is otherwise valid',
      () => new Request(requestOf(), { method: 'PUT' }),
      405,
      'method_not_allowed',
    ],
    [
      'another content type',
      () => requestOf({}, { headers: { 'content-type': 'text/plain' } }),
      415,
      'unsupported_media_type',
    ],
    [
      'a content type that only looks like JSON',
      () => requestOf({}, { headers: { 'content-type': 'application/jsonx' } }),
      415,
      'unsupported_media_type',
    ],
    ['no id', () => requestOf({}, { headers: { 'webhook-id': null } }), 400, 'missing_header'],
    ['no timestamp', () => requestOf({}, { headers: { 'webhook-timestamp': null } }), 400, 'missing_header'],
    ['no signature', () => requestOf({}, { headers: { 'webhook-signature': null } }), 400, 'missing_header'],
    [
      'an empty signature',
      () => requestOf({}, { headers: { 'webhook-signature': '' } }),
      400,
      'missing_header',
    ],
    [
      'a timestamp that is a date',
      () => requestOf({}, { headers: { 'webhook-timestamp': '2025-10-09T08:53:20Z' } }),
      400,
      'malformed_header',
    ],
    [
      'a negative timestamp',
      () => requestOf({}, { headers: { 'webhook-timestamp': '-1' } }),
      400,
      'malformed_header',
    ],
    ['an id beyond ASCII', () => requestOf({}, { headers: { 'webhook-id': 'é' } }), 400, 'malformed_header'],
    ['an id of two', () => requestOf({}, { headers: { 'webhook-id': 'a, b' } }), 400, 'malformed_header'],
    [
      'an endless id',
      () => requestOf({}, { headers: { 'webhook-id': 'x'.repeat(513) } }),
      400,
      'malformed_header',
    ],
    [
      'an id that was not signed',
      () => requestOf({}, { headers: { 'webhook-id': 'm' } }),
      401,
      'bad_signature',
    ],
    [
      'a timestamp that was not signed',
      () => requestOf({}, { headers: { 'webhook-timestamp': String(NOW + 1) } }),
      401,
      'bad_signature',
    ],
    [
      'a body with one byte changed',
      () => requestOf({}, { body: BODY.replace('1', '2') }),
      401,
      'bad_signature',
    ],
    ['no body', () => requestOf({}, { body: null }), 401, 'bad_signature'],
    ['another secret', () => requestOf({ secrets: 'guessed' }), 401, 'bad_signature'],
    [
      '10,000 signatures',
      () => requestOf({}, { headers: { 'webhook-signature': `v1,${'A'.repeat(43)}= `.repeat(10_000) } }),
      401,
      'bad_signature',
    ],
    ['a stale timestamp', () => requestOf({ timestamp: NOW - 301 }), 403, 'timestamp_out_of_tolerance'],
    ['a future timestamp', () => requestOf({ timestamp: NOW + 301 }), 403, 'timestamp_out_of_tolerance'],
    ['truncated JSON', () => requestOf({ body: BODY.slice(0, -1) }), 422, 'malformed_json'],
    ['a signed empty body', () => requestOf({ body: '' }), 422, 'malformed_json'],
    ['JSON that is not an object', () => requestOf({ body: '[{}]' }), 422, 'malformed_json'],
    ['JSON null', () => requestOf({ body: 'null' }), 422, 'malformed_json'],
    [
      'text that is not UTF-8',
      () => requestOf({ body: Buffer.from('{"note":"caf\u00e9"}', 'latin1') }),
      422,
      'malformed_json',
    ],
    ['unbalanced nesting', () => requestOf({ body: '['.repeat(100_000) }), 422, 'malformed_json'],
    [
      'a truncated body',
      () =>
        requestOf(
          {},
          {
            body: new ReadableStream({
              start(controller) {
                controller.enqueue(bytesOf('{"type"'))
                controller.error(new Error('cut'))
              },
            }),
          },
        ),
      400,
      'incomplete_body',
    ],
  ]

  it.each(cases)('answers %s with its own status and code', async (_, request, status, code) => {
    const answer = await outcome(request())

    expect(answer.status).toBe(status)
    expect(answer.body).toEqual({ code, message: expect.any(String) })
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.deliveries).toEqual([])
  })

  it('names the allowed method', async () => {
    const { headers } = await outcome(new Request(URL))

    expect(headers.get('allow')).toBe('POST')
  })

  it.each(cases)('contains nothing of the request: %s', async (_, request) => {
    const sent = request()
    const values = ['webhook-signature', 'webhook-id'].map((name) => sent.headers.get(name) ?? '')
    const signatures = values.flatMap((value) => value.split(/[ ,]/)).filter((value) => value.length > 2)

    const receiver = receiverWith()
    const refusals: WebhookRefusal[] = []
    receiver.refusals.subscribe((refusal) => refusals.push(refusal))
    const response = await receiver.handle(sent)
    await nextTurn()
    const answered = `${await response.text()} ${JSON.stringify([...response.headers])} ${JSON.stringify(refusals)}`

    for (const secret of [SECRET, ...signatures]) expect(answered).not.toContain(secret)
  })

  it('checks the signature before the JSON, so that an unsigned sender learns nothing about the parser', async () => {
    const forged = await outcome(requestOf({ secrets: 'forged', body: 'no JSON' }))

    expect(forged.status).toBe(401)
  })

  it('is emitted to subscribers of `refusals` after the response is decided', async () => {
    const receiver = receiverWith()
    const refusals: WebhookRefusal[] = []
    receiver.refusals.subscribe((refusal) => refusals.push(refusal))

    await receiver.handle(requestOf({ secrets: 'forged' }))
    const atAnswer = refusals.length
    await nextTurn()

    expect(atAnswer).toBe(0)
    expect(refusals).toEqual([{ code: 'bad_signature', status: 401, message: expect.any(String) }])
  })

  it('cannot be avoided by moving the dots between id, timestamp and body', async () => {
    const signature = createHmac('sha256', SECRET).update(`a.${NOW}.${NOW}.5`).digest('base64')
    const headers = {
      'content-type': 'application/json',
      'webhook-timestamp': String(NOW),
      'webhook-signature': `v1,${signature}`,
    }
    const long = new Request(URL, {
      method: 'POST',
      headers: { ...headers, 'webhook-id': `a.${NOW}` },
      body: '5',
    })
    const short = new Request(URL, {
      method: 'POST',
      headers: { ...headers, 'webhook-id': 'a' },
      body: `${NOW}.5`,
    })

    const answers = await Promise.all([outcome(long), outcome(short)])

    expect(answers.map(({ status, deliveries }) => [status, deliveries])).toEqual([
      [422, []],
      [422, []],
    ])
  })

  it('follows a change of any single bit of the body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: BODY.length * 8 - 1 }), async (bit) => {
        const body = bytesOf(BODY).map((byte, i) => (i === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))

        const { status, deliveries } = await outcome(requestOf({}, { body }))

        expect(status).toBe(401)
        expect(deliveries).toEqual([])
      }),
    )
  })
})

describe('the limit of the body', () => {
  it('allows a body of exactly that size, but not one byte more', async () => {
    const limit = { maxBodyBytes: bytesOf(BODY).length }

    const fits = await outcome(requestOf(), limit)
    const tooLarge = await outcome(requestOf({ body: `${BODY} ` }), limit)

    expect(fits.status).toBe(204)
    expect([tooLarge.status, tooLarge.deliveries]).toEqual([413, []])
  })

  it('counts the received bytes, not the content-length', async () => {
    const request = requestOf(
      {},
      { headers: { 'content-length': '2' }, body: streamOf(new Uint8Array(60), new Uint8Array(60)) },
    )

    const { status } = await outcome(request, { maxBodyBytes: 100 })

    expect(status).toBe(413)
  })

  it('stops reading at the chunk that exceeds it', async () => {
    let pulled = 0
    let cancelled = false
    const endless = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled += 1
          controller.enqueue(new Uint8Array(10))
        },
        cancel() {
          cancelled = true
        },
      },
      { highWaterMark: 0 },
    )

    const { status } = await outcome(requestOf({}, { body: endless }), { maxBodyBytes: 100 })

    expect(status).toBe(413)
    expect(pulled).toBe(11)
    expect(cancelled).toBe(true)
  })
})

describe('deliveries', () => {
  const unhandled = rxjs.onUnhandledError
  afterEach(() => {
    rxjs.onUnhandledError = unhandled
  })

  it('are emitted after the response, never within the request', async () => {
    const receiver = receiverWith()
    const order: string[] = []
    receiver.deliveries.subscribe(() => order.push('delivery'))

    await receiver.handle(requestOf()).then(() => order.push('answer'))
    await nextTurn()

    expect(order).toEqual(['answer', 'delivery'])
  })

  it('continue when a subscriber throws, without changing the response', async () => {
    const errors: unknown[] = []
    const bothReported = Promise.withResolvers<void>()
    rxjs.onUnhandledError = (error) => {
      if (errors.push(error) === 2) bothReported.resolve()
    }
    const broken = new Error('the subscriber is broken')
    const receiver = receiverWith()
    const deliveries = record(receiver)
    receiver.deliveries.subscribe(() => {
      throw broken
    })

    const first = await receiver.handle(requestOf({ id: 'a' }))
    await nextTurn()
    const second = await receiver.handle(requestOf({ id: 'b' }))
    await bothReported.promise

    expect([first.status, second.status]).toEqual([204, 204])
    expect(deliveries.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(errors).toEqual([broken, broken])
  })

  it('wait for the first subscriber, in order', async () => {
    const receiver = receiverWith()
    for (const id of ['a', 'b', 'c']) {
      await receiver.handle(requestOf({ id }))
    }
    await nextTurn()

    const ids = await firstValueFrom(
      receiver.deliveries.pipe(
        map(({ id }) => id),
        take(3),
        toArray(),
      ),
    )

    expect(ids).toEqual(['a', 'b', 'c'])
  })

  it('are emitted once each when one subscriber is replaced by another', async () => {
    const receiver = receiverWith()
    await Promise.all(['a', 'b', 'c'].map((id) => receiver.handle(requestOf({ id }))))

    const first = await firstValueFrom(receiver.deliveries)
    await nextTurn()
    const rest = record(receiver)
    await nextTurn()

    expect([first, ...rest].map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  })

  it('are shared by all subscribers', async () => {
    const receiver = receiverWith()
    const both = [record(receiver), record(receiver)]

    await receiver.handle(requestOf())
    await nextTurn()

    expect(both.map((deliveries) => deliveries.length)).toEqual([1, 1])
  })

  it('yield to other work when there are very many', async () => {
    const receiver = receiverWith()
    const ids = Array.from({ length: 600 }, (_, i) => `msg_${i}`)
    await Promise.all(ids.map((id) => receiver.handle(requestOf({ id }))))

    const deliveries = record(receiver)
    await nextTurn()
    const afterOneTurn = deliveries.length
    while (deliveries.length < ids.length) {
      await nextTurn()
    }

    expect(afterOneTurn).toBe(256)
    expect(deliveries.map(({ id }) => id)).toEqual(ids)
  })

  it('without a subscriber fill the inbox: then 503 until one subscribes, and nothing is lost', async () => {
    const receiver = receiverWith({ inbox: memoryInbox({ maxPending: 2 }) })
    const send = async (id: string) => (await receiver.handle(requestOf({ id }))).status

    const statuses = [await send('a'), await send('b'), await send('c'), await send('a')]
    const deliveries = record(receiver)
    await nextTurn()
    const again = await send('c')
    await nextTurn()

    expect(statuses).toEqual([204, 204, 503, 204])
    expect(again).toBe(204)
    expect(deliveries.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  })
})

describe('a custom inbox', () => {
  it('is awaited before the response', async () => {
    const memory = memoryInbox()
    const commit = Promise.withResolvers<void>()
    const inbox: MemoryInbox = {
      put: async (delivery) => {
        await commit.promise
        return memory.put(delivery)
      },
      take: () => memory.take(),
    }
    const receiver = receiverWith({ inbox })
    const order: string[] = []
    const deliveries = record(receiver)

    const answer = receiver.handle(requestOf()).then(() => order.push('answer'))
    await nextTurn()
    order.push('commit')
    commit.resolve()
    await answer
    await nextTurn()

    expect(order).toEqual(['commit', 'answer'])
    expect(deliveries).toHaveLength(1)
  })

  it('that fails makes the sender retry, and reports the cause only to `refusals`', async () => {
    const failure = new Error('the disk with the secret name is full')
    let broken = true
    const memory = memoryInbox()
    const inbox: MemoryInbox = {
      put: (delivery) => (broken ? Promise.reject(failure) : memory.put(delivery)),
      take: () => memory.take(),
    }
    const receiver = receiverWith({ inbox })
    const deliveries = record(receiver)
    const refusals: WebhookRefusal[] = []
    receiver.refusals.subscribe((refusal) => refusals.push(refusal))

    const failed = await receiver.handle(requestOf())
    broken = false
    const retried = await receiver.handle(requestOf())
    await nextTurn()

    expect(failed.status).toBe(503)
    expect(await failed.json()).toEqual({ code: 'unavailable', message: expect.not.stringContaining('disk') })
    expect(refusals).toEqual([expect.objectContaining({ code: 'unavailable', cause: failure })])
    expect(retried.status).toBe(204)
    expect(deliveries).toHaveLength(1)
  })

  it('emits its stored deliveries to the first subscriber', async () => {
    const inbox = memoryInbox()
    await inbox.put({ id: 'kept', timestamp: NOW, payload: {} })

    const delivery = await firstValueFrom(receiverWith({ inbox }).deliveries)

    expect(delivery.id).toBe('kept')
  })

  it('that fails to emit ends `deliveries` with its error and closes the receiver', async () => {
    const failure = new Error('row 7 cannot be read')
    const inbox: MemoryInbox = {
      put: async () => 'stored',
      take: () => {
        throw failure
      },
    }
    const receiver = receiverWith({ inbox })

    await expect(firstValueFrom(receiver.deliveries)).rejects.toBe(failure)
    expect((await receiver.handle(requestOf())).status).toBe(503)
  })
})

describe('a slow subscriber', () => {
  /** Records what a subscriber under this gate receives. */
  function recordThrough(gate: Gate, receiver: WebhookReceiver) {
    const ids: string[] = []
    const subscription = withGate(gate, () => receiver.deliveries.subscribe(({ id }) => ids.push(id)))
    return { ids, subscription }
  }

  async function send(receiver: WebhookReceiver, ...ids: readonly string[]): Promise<number[]> {
    const responses = await Promise.all(ids.map((id) => receiver.handle(requestOf({ id }))))
    await nextTurn()
    return responses.map(({ status }) => status)
  }

  it('receives nothing while its gate is closed, and the rest when it opens', async () => {
    const receiver = receiverWith()
    const gate = new Gate()
    const { ids } = recordThrough(gate, receiver)
    await send(receiver, 'a')
    gate.close()
    await send(receiver, 'b', 'c')
    const meanwhile = [...ids]
    gate.open()
    await nextTurn()

    expect(meanwhile).toEqual(['a'])
    expect(ids).toEqual(['a', 'b', 'c'])
  })

  it('receives nothing more in the same turn after it closes its gate', async () => {
    const receiver = receiverWith()
    const gate = new Gate()
    const ids: string[] = []
    withGate(gate, () =>
      receiver.deliveries.subscribe(({ id }) => {
        ids.push(id)
        gate.close()
      }),
    )
    await send(receiver, 'a', 'b', 'c')

    expect(ids).toEqual(['a'])
  })

  it('fills the inbox: then 503, until its gate opens', async () => {
    const receiver = receiverWith({ inbox: memoryInbox({ maxPending: 1 }) })
    const gate = new Gate()
    gate.close()
    const { ids } = recordThrough(gate, receiver)

    const behind = [await send(receiver, 'a'), await send(receiver, 'b')]
    gate.open()
    await nextTurn()
    const caughtUp = await send(receiver, 'b')

    expect([...behind, caughtUp]).toEqual([[204], [503], [204]])
    expect(ids).toEqual(['a', 'b'])
  })

  it('pauses the others too, until it unsubscribes', async () => {
    const receiver = receiverWith()
    const quick = record(receiver)
    const gate = new Gate()
    gate.close()
    const { subscription } = recordThrough(gate, receiver)
    await send(receiver, 'a')
    const meanwhile = quick.length
    subscription.unsubscribe()
    await nextTurn()

    expect(meanwhile).toBe(0)
    expect(quick.map(({ id }) => id)).toEqual(['a'])
  })

  it('receives the waiting deliveries when the receiver closes, since a memory inbox would lose them', async () => {
    const receiver = receiverWith()
    const gate = new Gate()
    gate.close()
    const { ids } = recordThrough(gate, receiver)
    await send(receiver, 'a')

    receiver.close()

    expect(ids).toEqual(['a'])
  })
})

describe('secrets that are not available', () => {
  it.each([
    [
      'throw',
      () => {
        throw new Error('the vault is sealed')
      },
    ],
    ['reject', () => Promise.reject(new Error('the vault is sealed'))],
    ['are none', () => []],
    ['are empty', () => ''],
    ['are empty later', () => Promise.resolve('')],
  ])('make the sender retry: they %s', async (_, secrets) => {
    const receiver = receiverWith({ secrets })
    const refusals: WebhookRefusal[] = []
    receiver.refusals.subscribe((refusal) => refusals.push(refusal))

    const response = await receiver.handle(requestOf())
    await nextTurn()

    expect(response.status).toBe(503)
    expect(refusals).toEqual([expect.objectContaining({ code: 'unavailable', cause: expect.any(Error) })])
  })
})

describe('a request that was already read', () => {
  it('is answered 503, with a cause that names the fix', async () => {
    const receiver = receiverWith()
    const refusals: WebhookRefusal[] = []
    receiver.refusals.subscribe((refusal) => refusals.push(refusal))
    const request = requestOf()
    await request.text()

    const response = await receiver.handle(request)
    await nextTurn()

    expect(response.status).toBe(503)
    expect(refusals[0]?.cause).toEqual(
      expect.objectContaining({
        code: 'argument',
        message: expect.stringContaining('before any body parser'),
      }),
    )
  })
})

describe('close', () => {
  it('emits what was accepted, completes, and answers 503 from then on', async () => {
    const receiver = receiverWith()
    const events: string[] = []
    receiver.deliveries.subscribe({
      next: ({ id }) => events.push(id),
      complete: () => events.push('complete'),
    })
    receiver.refusals.subscribe({ complete: () => events.push('refusals complete') })
    const before = await receiver.handle(requestOf({ id: 'a' }))

    receiver.close()
    const after = await receiver.handle(requestOf({ id: 'b' }))
    await nextTurn()

    expect(events).toEqual(['a', 'complete', 'refusals complete'])
    expect([before.status, after.status]).toEqual([204, 503])
    expect(await after.json()).toEqual({ code: 'closed', message: expect.any(String) })
  })

  it('refuses a request whose body has not arrived', async () => {
    const receiver = receiverWith()
    const deliveries = record(receiver)
    const sent = Promise.withResolvers<Uint8Array>()
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(await sent.promise)
        controller.close()
      },
    })

    const answer = receiver.handle(requestOf({}, { body }))
    receiver.close()
    sent.resolve(bytesOf(BODY))

    expect((await answer).status).toBe(503)
    expect(deliveries).toEqual([])
  })

  it('leaves unread deliveries in the inbox for the next receiver', async () => {
    const inbox = memoryInbox()
    const receiver = receiverWith({ inbox })
    await receiver.handle(requestOf())
    receiver.close()

    const delivery = await firstValueFrom(receiverWith({ inbox }).deliveries)

    expect(delivery.id).toBe('msg_1')
  })

  it('may be called twice, and from within a delivery', async () => {
    const receiver = receiverWith()
    const events: string[] = []
    receiver.deliveries.subscribe({
      next: ({ id }) => {
        events.push(id)
        receiver.close()
      },
      complete: () => events.push('complete'),
    })
    await Promise.all(['a', 'b'].map((id) => receiver.handle(requestOf({ id }))))
    await nextTurn()
    receiver.close()

    expect(events).toEqual(['a', 'b', 'complete'])
  })
})

describe('createWebhookReceiver', () => {
  it.each([
    ['secrets', { secrets: '' }],
    ['secrets', { secrets: [] }],
    ['secrets', { secrets: ['one', ''] }],
    ['tolerance', { tolerance: -1 }],
    ['tolerance', { tolerance: Number.NaN }],
    ['maxBodyBytes', { maxBodyBytes: 0 }],
    ['maxBodyBytes', { maxBodyBytes: 1.5 }],
    ['maxBytesInFlight', { maxBytesInFlight: 4 * 1024 * 1024 - 1 }],
    ['bodyTimeout', { bodyTimeout: -1 }],
    ['bodyTimeout', { bodyTimeout: Infinity }],
  ])('refuses invalid %s at the call: %j', (argument, options) => {
    expect(() => receiverWith(options)).toThrow(ArgumentError)
    expect(() => receiverWith(options)).toThrow(expect.objectContaining({ argument }))
  })

  it('refuses an unknown option, and names the nearest', () => {
    const misspelled = { secrets: SECRET, maxBodyByte: 1 }

    expect(() => createWebhookReceiver(misspelled)).toThrow(
      expect.objectContaining({
        argument: 'maxBodyByte',
        message: expect.stringMatching(/maxBodyByte; did you mean maxBodyBytes\?$/),
      }),
    )
  })

  it.each([[''], [['one', '']]])('reports an empty secret, and shows no other: %j', (secrets) => {
    expect(() => receiverWith({ secrets })).toThrow(
      'secrets must be a non-empty string, bytes, or a list of them, got an empty string',
    )
  })

  it('accepts nothing while its clock returns NaN', async () => {
    const { status } = await outcome(requestOf(), { clock: () => Number.NaN, inbox: memoryInbox() })

    expect(status).toBe(403)
  })
})
