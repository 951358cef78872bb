import { asyncScheduler, lastValueFrom, of, take, takeWhile, toArray } from 'rxjs'
import type { Observable } from 'rxjs'
import { createClient } from 'rivulet'
import type { ResearchClient, ResearchEvent } from 'rivulet'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { createWebhookReceiver, memoryInbox, signWebhook } from 'rivulet/webhooks'
import { expect, it, onTestFinished } from 'vitest'
import { answer, openStream, queryOf, serve, sse } from '../support/serve.ts'

const AT = '2001-02-03T04:05:06.789Z'

/** The client's clock is fixed, far from that of the system. */
const scheduler = {
  now: () => Date.parse(AT),
  schedule: asyncScheduler.schedule.bind(asyncScheduler),
}

const change = (event_group_id: string) => ({
  event_type: 'event_stream',
  event_id: `e-${event_group_id}`,
  event_group_id,
  output: {},
})
const run = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }
const status = { is_active: false, num_task_runs: 1, task_run_status_counts: { completed: 1 } }

async function client(): Promise<ResearchClient> {
  const baseUrl = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/v1/monitors/m') return answer(response, { monitor_id: 'm', status: 'cancelled' })
    if (pathname === '/v1/monitors/m/events')
      return answer(response, { events: [change(queryOf(request).get('event_group_id') ?? 'x')] })
    if (pathname === '/v1/tasks/runs/r/result') return answer(response, { run, output: {} })
    if (pathname.endsWith('/groups/g')) return answer(response, { taskgroup_id: 'g', status })
    if (!pathname.includes('/groups/g/'))
      return answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, 404)
    openStream(response)
    const runs = { type: 'task_run.state', event_id: '1', run }
    const events = { type: 'task_group_status', event_id: '1', status }
    response.end(sse(pathname.endsWith('/runs') ? runs : events))
  })
  return createClient({ baseUrl, apiKey: 'key', initialDelay: 0, scheduler })
}

const detected: WebhookDelivery = {
  id: 'msg',
  timestamp: 1_767_225_600,
  payload: { type: 'monitor.event.detected', data: { monitor_id: 'm', event: { event_group_id: 'w' } } },
}
const ended: WebhookDelivery = {
  id: 'msg',
  timestamp: 1_767_225_600,
  payload: { type: 'task_run.status', data: run },
}

/** Webhooks that a receiver has stored before it is subscribed to. */
async function stored(): Promise<Observable<WebhookDelivery>> {
  const secret = 'secret'
  const receiver = createWebhookReceiver({ secrets: secret, inbox: memoryInbox() })
  onTestFinished(() => receiver.close())
  const body = JSON.stringify({ type: 'other', data: {} })
  const headers = await signWebhook({ body, secrets: secret })
  await receiver.handle(new Request('http://x.example/', { method: 'POST', headers, body }))
  return receiver.deliveries
}

it.each<
  [
    string,
    (service: ResearchClient) => Observable<ResearchEvent> | Promise<Observable<ResearchEvent>>,
    string,
  ]
>([
  ['a page of a monitor', (c) => c.monitors.events('m'), 'monitor.event_stream'],
  ['a poll of a monitor', (c) => c.monitors.follow('m'), 'monitor.event_stream'],
  ['a gap of a monitor', (c) => c.monitors.follow('m', { after: 'gone' }), 'stream.gap'],
  ['the end of a monitor', (c) => c.monitors.follow('m', { pollInterval: 0 }), 'monitor.cancelled'],
  ["a group's events", (c) => c.taskGroups.events('g'), 'task_group.status'],
  ["a group's runs", (c) => c.taskGroups.runs('g'), 'task_run.state'],
  ['a source that failed', (c) => c.watch({ monitors: ['bad'] }), 'source.failed'],
  ['a group that failed', (c) => c.watch({ taskGroups: ['bad'] }), 'source.failed'],
  ['a webhook', (c) => c.watch({ webhooks: { deliveries: of({ ...detected, payload: {} }) } }), 'unknown'],
  [
    'the events of a thin webhook',
    (c) => c.watch({ webhooks: { deliveries: of(detected) } }),
    'monitor.event_stream',
  ],
  ['the result of a run', (c) => c.watch({ webhooks: { deliveries: of(ended) }, hold: 0 }), 'task_run.state'],
  ['an inbox', async (c) => c.watch({ webhooks: { deliveries: await stored() } }), 'unknown'],
])('%s has the time of the client as received', async (_way, open, type) => {
  const events = await open(await client())

  const seen = await lastValueFrom(
    events.pipe(
      takeWhile((event) => event.type !== type, true),
      take(5),
      toArray(),
    ),
  )

  expect(seen.at(-1)?.type).toBe(type)
  expect(new Set(seen.map(({ received }) => received))).toEqual(new Set([AT]))
})
