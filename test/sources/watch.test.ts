import { lastValueFrom, of, take, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient } from 'rivulet'
import type { WebhookDelivery } from 'rivulet'
import { answer, queryOf, serve } from '../support/serve.ts'

const detected = (event_group_id: string): WebhookDelivery => ({
  id: `msg_${event_group_id}`,
  timestamp: 1_767_225_600,
  payload: {
    type: 'monitor.event.detected',
    timestamp: '2026-01-01T00:00:00Z',
    data: { monitor_id: 'm', event: { event_group_id } },
  },
})

describe("an execution's events, fetched for a thin webhook", () => {
  it('are told oldest first, whatever order the service lists them in', async () => {
    const newestFirst = ['e5', 'e4', 'e3', 'e2', 'e1']
    const baseUrl = await serve((request, response) => {
      const event_group_id = queryOf(request).get('event_group_id')
      answer(response, {
        events: newestFirst.map((event_id) => ({
          event_type: 'event_stream',
          event_id,
          event_group_id,
          event_date: null,
          output: {},
        })),
      })
    })
    const client = createClient({ baseUrl, apiKey: 'key' })

    const watched = client.watch({ webhooks: { deliveries: of(detected('x')) } })
    const seen = await lastValueFrom(watched.pipe(take(5), toArray()))

    expect(seen.map(({ id }) => id)).toEqual(newestFirst.toReversed())
    expect(seen.every(({ type, via }) => type === 'monitor.event_stream' && via === 'webhook')).toBe(true)
  })
})
