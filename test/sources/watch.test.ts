import {
  asyncScheduler,
  concat,
  firstValueFrom,
  lastValueFrom,
  NEVER,
  of,
  take,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs'
import type { SchedulerAction, SchedulerLike } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient, memoryCheckpointStore, openCheckpoint } from 'rivulet'
import type { Diagnostic, ResearchEvent, WebhookDelivery } from 'rivulet'
import { deliver, ofType } from 'rivulet/operators'
import { answer, openStream, queryOf, serve, sse } from '../support/serve.ts'

const detected = (event_group_id: string, monitor_id = 'm'): WebhookDelivery => ({
  id: `msg_${event_group_id}`,
  timestamp: 1_767_225_600,
  payload: {
    type: 'monitor.event.detected',
    timestamp: '2026-01-01T00:00:00Z',
    data: { monitor_id, event: { event_group_id } },
  },
})

/** A monitor whose list of an execution shows its event to the n-th request, or never. */
async function laggingMonitor(shownAt: number) {
  let requests = 0
  const baseUrl = await serve((_request, response) => {
    requests += 1
    const event = {
      event_type: 'event_stream',
      event_id: 'e1',
      event_group_id: 'x',
      event_date: null,
      output: {},
    }
    answer(response, { events: requests < shownAt ? [] : [event] })
  })
  return { baseUrl, requests: () => requests }
}

/** A scheduler that tells of each wait before it begins. */
function noting(scheduler: SchedulerLike, onWait: (delay: number) => void): SchedulerLike {
  return {
    now: () => scheduler.now(),
    schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) {
      onWait(delay)
      return scheduler.schedule(work, delay, state)
    },
  }
}

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

  it('are asked for again while the list lags behind the webhook, after waits that grow', async () => {
    const { baseUrl, requests } = await laggingMonitor(4)
    const waits: number[] = []
    const scheduler = noting(asyncScheduler, (delay) => waits.push(delay))
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 1, random: () => 1, scheduler })

    const first = await firstValueFrom(client.watch({ webhooks: { deliveries: of(detected('x')) } }))

    expect(first).toMatchObject({ id: 'e1', type: 'monitor.event_stream', via: 'webhook' })
    expect(requests()).toBe(4)
    expect(waits).toEqual([1, 2, 4])
  })

  it('that stay away leave the webhook to be told as it came', async () => {
    const { baseUrl, requests } = await laggingMonitor(Infinity)
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const first = await firstValueFrom(client.watch({ webhooks: { deliveries: of(detected('x')) } }))

    expect(first).toMatchObject({ type: 'unknown', source: '/v1/monitors/m', data: detected('x').payload })
    expect(requests()).toBe(4)
  })

  it('are asked for no more when the subscriber has left', async () => {
    const { baseUrl, requests } = await laggingMonitor(Infinity)
    const waiting = Promise.withResolvers<void>()
    const time = new VirtualTimeScheduler()
    const scheduler = noting(time, () => waiting.resolve())
    const client = createClient({ baseUrl, apiKey: 'key', scheduler })

    const subscription = client.watch({ webhooks: { deliveries: of(detected('x')) } }).subscribe()
    await waiting.promise
    subscription.unsubscribe()

    expect(time.actions).toEqual([])
    expect(requests()).toBe(1)
  })
})

describe('a webhook whose expansion is refused for good', () => {
  /** Handles what is watched until the delivery is done, with a checkpoint. */
  async function handled(baseUrl: string, delivery: WebhookDelivery) {
    const checkpoint = await openCheckpoint(memoryCheckpointStore())
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0 })
    const diagnostics: Diagnostic[] = []
    client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
    const told: ResearchEvent[] = []
    await new Promise<void>((resolve, reject) => {
      const webhooks = { deliveries: concat(of(delivery), NEVER), done: () => resolve() }
      const watched = client.watch({ webhooks, checkpoint, hold: 0 })
      const subscription = watched.pipe(deliver((event) => void told.push(event), { checkpoint })).subscribe({
        error: reject,
      })
      onTestFinished(() => subscription.unsubscribe())
    })
    await checkpoint.close()
    return { told, diagnostics }
  }
  const refusing = (status: number) =>
    serve((_request, response) =>
      answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, status),
    )

  it.each([402, 403, 404, 409, 422])(
    'is told as it came, and is done, with a checkpoint: %i',
    async (status) => {
      const { told, diagnostics } = await handled(await refusing(status), detected('x'))

      expect(told).toMatchObject([{ type: 'unknown', source: '/v1/monitors/m', data: detected('x').payload }])
      // What is no more has nothing to tell: that is no failure.
      expect(diagnostics).toMatchObject(status === 404 ? [] : [{ kind: 'expansion', error: { status } }])
    },
  )

  it.each([403, 422])('is told without its output where it is about a run: %i', async (status) => {
    const data = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }
    const delivery = { ...detected('x'), payload: { type: 'task_run.status', data } }

    const { told, diagnostics } = await handled(await refusing(status), delivery)

    expect(told).toMatchObject([{ type: 'task_run.state', via: 'webhook', data: { run: data } }])
    expect(diagnostics).toMatchObject([{ kind: 'expansion', error: { status } }])
  })

  it.each([
    {},
    { run: null },
    { run: { run_id: '..', status: 'completed' } },
    { run: { run_id: 'other', status: 'completed' } },
  ])('is told without its output where the answer is no result of the run: %j', async (body) => {
    const baseUrl = await serve((_request, response) => answer(response, body))
    const data = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }

    const { told, diagnostics } = await handled(baseUrl, {
      ...detected('x'),
      payload: { type: 'task_run.status', data },
    })

    expect(told).toMatchObject([{ type: 'task_run.state', via: 'webhook', data: { run: data } }])
    expect(diagnostics.at(-1)).toMatchObject({ kind: 'expansion', error: { name: 'ProtocolError' } })
  })

  it('is told without its output where the run has come to another status meanwhile', async () => {
    const run = { run_id: 'r', is_active: false, processor: 'base' }
    const later = { ...run, status: 'completed', modified_at: '2026-01-01T00:05:00Z' }
    const baseUrl = await serve((_request, response) => answer(response, { run: later, output: {} }))
    const data = { ...run, status: 'failed', modified_at: '2026-01-01T00:00:00Z' }

    const { told } = await handled(baseUrl, {
      ...detected('x'),
      payload: { type: 'task_run.status', data },
    })

    expect(told).toMatchObject([{ type: 'task_run.state', data: { run: data } }])
  })

  it('ends everything where the key is refused, which concerns more than the webhook', async () => {
    await expect(handled(await refusing(401), detected('x'))).rejects.toMatchObject({ status: 401 })
  })
})

describe('a webhook with an id that would lead to another path', () => {
  it.each([
    detected('x', '..'),
    detected('..'),
    detected('x', '\uD800'),
    {
      id: 'msg',
      timestamp: 1_767_225_600,
      payload: { type: 'task_run.status', data: { run_id: '..', status: 'completed' } },
    },
  ])('is told as it came, and nothing is requested for it', async (delivery) => {
    const paths: (string | undefined)[] = []
    const baseUrl = await serve((request, response) => {
      paths.push(request.url)
      answer(response, { events: [] })
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const first = await firstValueFrom(client.watch({ webhooks: { deliveries: of(delivery) }, hold: 0 }))

    expect(first).toMatchObject({ type: 'unknown', via: 'webhook', data: delivery.payload })
    expect(paths).toEqual([])
  })
})

describe('a checkpoint that remembers more facts than watch does by itself', () => {
  it('has none of them told again', async () => {
    const status = { is_active: false, num_task_runs: 3, task_run_status_counts: { completed: 3 } }
    const run = (run_id: string) => ({ run_id, status: 'completed', is_active: false, processor: 'base' })
    const baseUrl = await serve((request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://localhost')
      if (pathname.endsWith('/runs')) {
        openStream(response)
        const told = ['first', 'last', 'new'].map((id) => ({ type: 'task_run.state', run: run(id) }))
        response.end(told.map((event) => sse(event)).join(''))
      } else if (pathname.endsWith('/events')) {
        openStream(response)
        const event = { type: 'task_group_status', event_id: '1', status }
        response.end(sse(event))
      } else answer(response, { taskgroup_id: 'g', status })
    })
    const maxHandled = 100_010
    const handled = Array.from({ length: maxHandled }, (_, i) => {
      const id = i === 0 ? 'first' : i === maxHandled - 1 ? 'last' : `run_${i}`
      return { id: `${id}:completed`, source: `/v1/tasks/runs/${id}`, parts: 0 }
    })
    const checkpoint = await openCheckpoint({
      maxHandled,
      load: () => ({ positions: new Map(), handled }),
      save() {},
      close() {},
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const events = client.watch({ taskGroups: ['g'], checkpoint }).pipe(ofType('task_run.state'))
    const told: string[] = []
    await lastValueFrom(events.pipe(deliver(({ id }) => void told.push(id), { checkpoint })), {
      defaultValue: undefined,
    })
    await checkpoint.close()

    expect(told).toEqual(['new:completed'])
  })
})
