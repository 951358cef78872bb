import { createWebhookReceiver, memoryInbox, nodeListener } from 'rivulet/webhooks'
import type { WebhookInbox, WebhookReceiver, WebhookReceiverOptions, WebhookToSign } from 'rivulet/webhooks'
import { describe, expect, it } from 'vitest'
import { serve } from '../support/serve.ts'
import { sign } from '../support/sign.ts'

const SECRET = 'the account secret'
const NOW = 1_760_000_000
const BODY = '{ "type":"task_run.status",\n "data":{"note":"na\u00efve ✓"} }'

/** The parts of a response that a sender sees. */
interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly contentType: string | null
  readonly allow: string | null
}

type Send = (init: RequestInit) => Promise<Answer>

/** The ways to call a receiver. A sender must not see a difference. */
const faces: readonly (readonly [name: string, reach: (receiver: WebhookReceiver) => Promise<Send>])[] = [
  [
    'handle',
    async (receiver) => async (init) =>
      answerOf(await receiver.handle(new Request('http://127.0.0.1/hook', init))),
  ],
  [
    'nodeListener',
    async (receiver) => {
      const url = await serve(nodeListener(receiver))
      return async (init) => answerOf(await fetch(url, init))
    },
  ],
  [
    'nodeListener with a custom handler before it',
    async (receiver) => {
      const url = await serve(nodeListener((request) => receiver.handle(request)))
      return async (init) => answerOf(await fetch(url, init))
    },
  ],
]

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  const body: { readonly code?: string } = text === '' ? {} : JSON.parse(text)
  return {
    status: response.status,
    code: body.code,
    contentType: response.headers.get('content-type'),
    allow: response.headers.get('allow'),
  }
}

function receiverWith(options: Partial<WebhookReceiverOptions> = {}): WebhookReceiver {
  return createWebhookReceiver({ secrets: SECRET, clock: () => NOW * 1000, ...options })
}

/** A request that a receiver of {@link receiverWith} accepts, with these changes. */
function signed(webhook: Partial<WebhookToSign> = {}): Required<Pick<RequestInit, 'method' | 'body'>> & {
  readonly headers: Record<string, string>
} {
  const content = { body: BODY, secrets: SECRET, timestamp: NOW, id: 'msg_1', ...webhook }
  return {
    method: 'POST',
    headers: { ...sign(content) },
    body: typeof content.body === 'string' ? content.body : new Uint8Array(content.body),
  }
}

describe.each(faces)('a receiver that is reached by %s', (_, reach) => {
  it('checks a request in the documented order', async () => {
    // Everything is wrong; each step fixes the reason of the last refusal.
    const large = 'no JSON'.repeat(100)
    let init = { ...signed({ body: large, secrets: 'forged', timestamp: 1 }), method: 'PUT' }
    delete init.headers['webhook-id']
    init.headers['webhook-timestamp'] = 'soon'
    init.headers['webhook-signature'] = 'v2,none'
    init.headers['content-type'] = 'text/plain'
    const closed = receiverWith()
    closed.close()
    const sendToClosed = await reach(closed)
    const inbox = memoryInbox({ maxPending: 1 })
    await inbox.put({ id: 'waits', timestamp: NOW, payload: {} })
    const send = await reach(receiverWith({ inbox, maxBodyBytes: 600 }))
    const answers = [await sendToClosed(init)]

    answers.push(await send(init))
    init = { ...init, method: 'POST' }
    answers.push(await send(init))
    init.headers['content-type'] = 'application/json'
    answers.push(await send(init))
    init.headers['webhook-id'] = 'msg_1'
    answers.push(await send(init))
    init.headers['webhook-timestamp'] = '1'
    answers.push(await send(init))
    init = signed({ body: large, secrets: 'forged', timestamp: 1 })
    answers.push(await send(init))
    init = signed({ body: large, secrets: 'forged' })
    // A hand-made `Request` may have any content-length.
    init.headers['content-length'] = String(large.length)
    answers.push(await send(init))
    init = signed({ body: 'no JSON', secrets: 'forged' })
    answers.push(await send(init))
    inbox.take()
    answers.push(await send(init))
    init = signed({ body: 'no JSON' })
    answers.push(await send(init))
    init = signed()
    answers.push(await send(init))

    expect(answers.map(({ status, code }) => [status, code])).toEqual([
      [503, 'closed'],
      [405, 'method_not_allowed'],
      [415, 'unsupported_media_type'],
      [400, 'missing_header'],
      [400, 'malformed_header'],
      [401, 'bad_signature'],
      [403, 'timestamp_out_of_tolerance'],
      [413, 'body_too_large'],
      [503, 'inbox_full'],
      [401, 'bad_signature'],
      [422, 'malformed_json'],
      [204, undefined],
    ])
  })

  it('sends its refusals as JSON, with the allowed method', async () => {
    const send = await reach(receiverWith())

    expect(await send({ method: 'GET' })).toEqual({
      status: 405,
      code: 'method_not_allowed',
      contentType: 'application/json',
      allow: 'POST',
    })
    expect(await send(signed({ secrets: 'forged' }))).toEqual({
      status: 401,
      code: 'bad_signature',
      contentType: 'application/json',
      allow: null,
    })
    expect(await send(signed())).toEqual({ status: 204, code: undefined, contentType: null, allow: null })
  })

  it.each([
    ['webhook-id', 400],
    ['webhook-timestamp', 400],
    ['webhook-signature', 400],
    ['content-type', 415],
  ])('refuses a webhook without %s', async (name, status) => {
    const send = await reach(receiverWith())
    const init = signed()
    // For bytes, unlike text, fetch adds no content type.
    const body = new TextEncoder().encode(BODY)
    delete init.headers[name]

    expect((await send({ ...init, body })).status).toBe(status)
  })

  it('accepts a body of exactly maxBodyBytes, but not of one byte more', async () => {
    const send = await reach(receiverWith({ maxBodyBytes: Buffer.byteLength(BODY) }))

    expect((await send(signed())).status).toBe(204)
    expect((await send(signed({ body: `${BODY} ` }))).status).toBe(413)
  })

  it('answers 503 while its inbox or its secrets fail', async () => {
    const failing: WebhookInbox = { put: () => Promise.reject(new Error('no disk')) }
    const sendToFailing = await reach(receiverWith({ inbox: failing }))
    const sendToSealed = await reach(receiverWith({ secrets: () => [] }))

    const codes = [(await sendToFailing(signed())).code, (await sendToSealed(signed())).code]

    expect(codes).toEqual(['unavailable', 'unavailable'])
  })

  it('passes the body to its inbox, both unchanged and parsed', async () => {
    const puts: unknown[] = []
    const inbox: WebhookInbox = {
      put: async (...args) => {
        puts.push(args)
        return 'stored'
      },
    }
    const send = await reach(receiverWith({ inbox }))

    await send(signed())

    expect(puts).toEqual([[{ id: 'msg_1', timestamp: NOW, payload: JSON.parse(BODY) }, BODY]])
  })
})
