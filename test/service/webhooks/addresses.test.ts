import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createResearchService, ManualClock } from '../../../src/service/index.ts'
import type { ResearchServiceOptions } from '../../../src/service/index.ts'
import { createPoster } from '../../../src/service/webhooks/poster.ts'
import { answer, serve } from '../../support/serve.ts'
import { documentFolder } from '../running.ts'
import type { ListenOptions } from '../../../src/service/listen-options.ts'

/** How many webhooks a receiver on this machine got from a run of a service, after its outbox tried once. */
async function received(
  options: Partial<ResearchServiceOptions>,
  where?: ListenOptions,
  host = '127.0.0.1',
): Promise<number> {
  let webhooks = 0
  const served = await serve((_, response) => {
    webhooks += 1
    answer(response, {})
  })
  const url = served.replace('127.0.0.1', host)
  const clock = new ManualClock(Date.now())
  const service = await createResearchService({ docs: await documentFolder(), clock, ...options })
  onTestFinished(() => service.close())
  const baseUrl = await service.listen(where)
  const headers = {
    'x-api-key': service.apiKey,
    'content-type': 'application/json',
    'service-beta': 'webhook-2025-08-12',
  }
  const body = {
    input: 'What are tides?',
    processor: 'base',
    webhook: { url, event_types: ['task_run.status'] },
  }
  await fetch(`${baseUrl}/v1/tasks/runs`, { method: 'POST', headers, body: JSON.stringify(body) })
  const isOver = () => service.records().runs.every(({ status }) => status === 'completed')
  await vi.waitUntil(isOver, { timeout: 10_000 })
  // The running attempt ends before the outbox is closed.
  await service.close()
  return webhooks
}

describe('a webhook to this machine', () => {
  it('is sent by a service that only this machine can reach', async () => {
    expect(await received({})).toBe(1)
  })

  it('is not sent when the setting closes it', async () => {
    expect(await received({ allowPrivateWebhooks: false })).toBe(0)
  })

  it('is not sent by a service that other machines can reach, unless it is allowed', async () => {
    const where = { host: '0.0.0.0', allowRemote: true }

    expect(await received({}, where)).toBe(0)
    expect(await received({ allowPrivateWebhooks: true }, where)).toBe(1)
  })

  it.each(['localhost', 'a.localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'])(
    'is not sent to the host %s either',
    async (host) => {
      expect(await received({ allowPrivateWebhooks: false }, undefined, host)).toBe(0)
    },
  )

  it('is sent to the name of this machine where it is allowed', async () => {
    expect(await received({}, undefined, 'localhost')).toBe(1)
  })
})

it('a webhook follows no redirect', async () => {
  let requests = 0
  const other = await serve((_, response) => {
    requests += 1
    answer(response, {})
  })
  const url = await serve((_, response) => response.writeHead(307, { location: other }).end())
  const poster = createPoster(5_000, () => true)
  onTestFinished(() => poster.close())

  expect(await poster.post(url, {}, '{}')).toBe(307)
  expect(requests).toBe(0)
})
