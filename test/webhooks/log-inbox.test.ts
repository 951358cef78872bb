import { createClient, ArgumentError } from 'rivulet'
import { openLog } from 'rivulet/log'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { WebhookRefusal } from 'rivulet/webhooks'
import { firstValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../support/serve.ts'
import { sign } from '../support/sign.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStoreOptions } from '../../src/log/memory/store.ts'

const SECRET = 'the account secret'

/** A receiver over the inbox of a log, behind a real server. */
async function endpoint(options?: SimulatedStoreOptions) {
  const store = simulatedStore(options)
  const log = await openLog(store)
  const receiver = createWebhookReceiver({ secrets: SECRET, inbox: log.inbox })
  const url = await serve(nodeListener(receiver))
  onTestFinished(async () => {
    receiver.close()
    await log.close()
  })
  const post = async (id: string, body = JSON.stringify({ type: 'unknown', id })) => {
    const headers = { ...sign({ id, body, secrets: SECRET }) }
    const response = await fetch(url, { method: 'POST', body, headers })
    await response.arrayBuffer()
    return response
  }
  return { store, log, receiver, post }
}

describe('a receiver with the inbox of a log', () => {
  it('stores the signed text before it answers, each webhook once', async () => {
    const { store, post } = await endpoint()
    const text = '{ "type": "x",  "n": 1.0 }'
    const statuses = [(await post('a', text)).status, (await post('a', text)).status]
    expect(statuses).toEqual([204, 204])
    expect(await store.inbox.pending(null, 10)).toMatchObject([
      { id: 'a', payload: { type: 'x', n: 1 }, length: text.length },
    ])
  })

  it('answers 503 with a Retry-After while the inbox is full, 204 to a duplicate, and stores again once there is room', async () => {
    const { store, receiver, post } = await endpoint({ inbox: { maxDeliveries: 1 } })
    const refusals: WebhookRefusal[] = []
    receiver.refusals.subscribe((refusal) => refusals.push(refusal))
    await post('a')
    const full = await post('b')
    expect([full.status, full.headers.get('retry-after')]).toEqual([503, '10'])
    expect((await post('a')).status).toBe(204)
    const fence = await store.claim('stream:webhooks')
    await store.append([{ fence, expect: null, entries: [] }], ['a'])
    expect((await post('b')).status).toBe(204)
    expect(refusals).toMatchObject([{ code: 'inbox_full', status: 503, retryAfter: 10 }])
  })

  it('answers 503 where nothing can be stored', async () => {
    let isFailing = true
    const { post } = await endpoint({
      faults: (write) => {
        if (write === 'put' && isFailing) throw new Error('no space')
      },
    })
    expect((await post('a')).status).toBe(503)
    isFailing = false
    expect((await post('a')).status).toBe(204)
  })

  it('has no deliveries: they error at once and name log.record', async () => {
    const { receiver } = await endpoint()
    await expect(firstValueFrom(receiver.deliveries)).rejects.toThrow(ArgumentError)
    await expect(firstValueFrom(receiver.deliveries)).rejects.toThrow(
      'log.record({ client, webhooks: receiver })',
    )
    const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })
    await expect(firstValueFrom(client.watch({ webhooks: receiver }))).rejects.toThrow('log.record')
  })

  it.each([null, {}, { put: 5 }, 'inbox'])('refuses the inbox %j', (inbox) => {
    expect(() => createWebhookReceiver({ secrets: SECRET, inbox: inbox as never })).toThrow(ArgumentError)
  })
})
