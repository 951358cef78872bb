import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { WebhookReceiverOptions } from 'rivulet/webhooks'
import { elementAt, firstValueFrom, ReplaySubject } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { research } from './research.ts'

const DAY = 86_400_000

/** A receiver on a real server: its URL, and how it answers each request. */
async function receiver(secrets: WebhookReceiverOptions['secrets']) {
  const created = createWebhookReceiver({ secrets })
  const ended = new ReplaySubject<string>()
  created.deliveries.subscribe(() => ended.next('accepted'))
  created.refusals.subscribe(({ code }) => ended.next(code))
  const server = createServer(nodeListener(created))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    created.close()
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ended }
}

describe('a rotation of the webhook secret, end to end', () => {
  it.each([
    ['one that reads the current secret', true, ['accepted', 'accepted', 'accepted']],
    ['one with the old secret, until the day is over', false, ['accepted', 'accepted', 'bad_signature']],
  ])('is accepted by a receiver: %s', async (_, isCurrent, expected) => {
    const { service, client, clock } = await research()
    const old = service.webhookSecret
    const { url, ended } = await receiver(isCurrent ? async () => service.webhookSecret : old)
    const webhook = { url, event_types: ['task_run.status'] }
    /** How the n-th webhook is answered. */
    const outcome = async (n: number) => {
      await client.tasks.create({ input: 'x', processor: 'base', webhook })
      return firstValueFrom(ended.pipe(elementAt(n)))
    }

    const before = await outcome(0)
    const rotated = service.rotateWebhookSecret()
    clock.advance(DAY - 1)
    const during = await outcome(1)
    clock.advance(1)
    const after = await outcome(2)

    expect([before, during, after]).toEqual(expected)
    expect(service.webhookSecret).toBe(rotated)
    expect(rotated).not.toBe(old)
  })
})
