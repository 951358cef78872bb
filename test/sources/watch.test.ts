import {
  asyncScheduler,
  BehaviorSubject,
  concat,
  delay,
  firstValueFrom,
  lastValueFrom,
  NEVER,
  of,
  take,
  tap,
  throwError,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs'
import type { Observable, SchedulerAction, SchedulerLike } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AllSourcesFailedError, createClient, groupSource, monitorSource } from 'rivulet'
import type { Diagnostic, ResearchEvent, WatchedMonitor } from 'rivulet'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { answer, openStream, queryOf, serve, sse } from '../support/serve.ts'
import { settled } from '../support/settled.ts'

const detected = (event_group_id: string, monitor_id = 'm'): WebhookDelivery => ({
  id: `msg_${event_group_id}`,
  timestamp: 1_767_225_600,
  payload: {
    type: 'monitor.event.detected',
    timestamp: '2026-01-01T00:00:00Z',
    data: { monitor_id, event: { event_group_id } },
  },
})

/** The event of an execution, in the list of its monitor. */
const LISTED = {
  event_type: 'event_stream',
  event_id: 'e1',
  event_group_id: 'x',
  event_date: null,
  output: {},
}

/** A monitor whose list of an execution has its event from the n-th request on, or never. */
async function laggingMonitor(shownAt: number) {
  let requests = 0
  const baseUrl = await serve((_request, response) => {
    requests += 1
    answer(response, { events: requests < shownAt ? [] : [LISTED] })
  })
  return { baseUrl, requests: () => requests }
}

/** A scheduler that calls `onDelay` with each delay before it starts. */
function recordingDelays(scheduler: SchedulerLike, onDelay: (delay: number) => void): SchedulerLike {
  return {
    now: () => scheduler.now(),
    schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, wait = 0, state?: T) {
      onDelay(wait)
      return scheduler.schedule(work, wait, state)
    },
  }
}

describe("an execution's events, fetched for a thin webhook", () => {
  it('are emitted oldest first', async () => {
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

  it('are requested again with backoff while the list lags behind the webhook', async () => {
    const { baseUrl, requests } = await laggingMonitor(4)
    const delays: number[] = []
    const scheduler = recordingDelays(asyncScheduler, (wait) => delays.push(wait))
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 1, random: () => 1, scheduler })

    const first = await firstValueFrom(client.watch({ webhooks: { deliveries: of(detected('x')) } }))

    expect(first).toMatchObject({ id: 'e1', type: 'monitor.event_stream', via: 'webhook' })
    expect(requests()).toBe(4)
    expect(delays).toEqual([1, 2, 4])
  })

  it('that never appear are replaced by the webhook itself', async () => {
    const { baseUrl, requests } = await laggingMonitor(Infinity)
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const first = await firstValueFrom(client.watch({ webhooks: { deliveries: of(detected('x')) } }))

    expect(first).toMatchObject({ type: 'unknown', source: '/v1/monitors/m', data: detected('x').payload })
    expect(requests()).toBe(4)
  })

  it('are not requested again after the subscriber has unsubscribed', async () => {
    const { baseUrl, requests } = await laggingMonitor(Infinity)
    const waiting = Promise.withResolvers<void>()
    const time = new VirtualTimeScheduler()
    const scheduler = recordingDelays(time, () => waiting.resolve())
    const client = createClient({ baseUrl, apiKey: 'key', scheduler })

    const subscription = client.watch({ webhooks: { deliveries: of(detected('x')) } }).subscribe()
    await waiting.promise
    subscription.unsubscribe()

    expect(time.actions).toEqual([])
    expect(requests()).toBe(1)
  })
})

describe('a webhook whose expansion fails for now', () => {
  it('is reported for each attempt, and expanded by a later one', async () => {
    let requested = 0
    const baseUrl = await serve((_request, response) => {
      requested += 1
      if (requested < 3) return answer(response, { message: 'down' }, 503)
      answer(response, { events: [LISTED] })
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0 })
    const diagnostics: Diagnostic[] = []
    client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))

    const first = await firstValueFrom(client.watch({ webhooks: { deliveries: of(detected('x')) } }))

    expect(first).toMatchObject({ type: 'monitor.event_stream', via: 'webhook' })
    const retry = { kind: 'expansion_retry', source: '/v1/monitors/m', cause: { status: 503 } }
    expect(diagnostics).toMatchObject([
      { ...retry, attempt: 1 },
      { ...retry, attempt: 2 },
    ])
  })
})

describe('a webhook whose expansion fails permanently', () => {
  async function watched(baseUrl: string, delivery: WebhookDelivery) {
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0 })
    const diagnostics: Diagnostic[] = []
    client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
    const webhooks = { deliveries: concat(of(delivery), NEVER) }
    const first = await firstValueFrom(client.watch({ webhooks, hold: 0 }))
    return { first, diagnostics }
  }
  const failing = (status: number) =>
    serve((_request, response) =>
      answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, status),
    )

  it.each([402, 403, 404, 409, 422])('is emitted unchanged: %i', async (status) => {
    const { first, diagnostics } = await watched(await failing(status), detected('x'))

    expect(first).toMatchObject({ type: 'unknown', source: '/v1/monitors/m', data: detected('x').payload })
    // A 404 is an empty expansion, not a failure.
    expect(diagnostics).toMatchObject(status === 404 ? [] : [{ kind: 'expansion', error: { status } }])
  })

  it.each([403, 422])('is emitted without an output if it is about a run: %i', async (status) => {
    const data = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }
    const delivery = { ...detected('x'), payload: { type: 'task_run.status', data } }

    const { first, diagnostics } = await watched(await failing(status), delivery)

    expect(first).toMatchObject({ type: 'task_run.state', via: 'webhook', data: { run: data } })
    expect(diagnostics).toMatchObject([{ kind: 'expansion', error: { status } }])
  })

  it.each([
    {},
    { run: null },
    { run: { run_id: '..', status: 'completed' } },
    { run: { run_id: 'other', status: 'completed' } },
  ])('is emitted without an output if the response is not the result of the run: %j', async (body) => {
    const baseUrl = await serve((_request, response) => answer(response, body))
    const data = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }

    const { first, diagnostics } = await watched(baseUrl, {
      ...detected('x'),
      payload: { type: 'task_run.status', data },
    })

    expect(first).toMatchObject({ type: 'task_run.state', via: 'webhook', data: { run: data } })
    expect(diagnostics.at(-1)).toMatchObject({ kind: 'expansion', error: { name: 'ProtocolError' } })
  })

  it('is emitted unchanged after invalid responses only', async () => {
    let requested = 0
    const baseUrl = await serve((_request, response) => {
      requested += 1
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
    })

    const { first, diagnostics } = await watched(baseUrl, detected('x'))

    expect(first).toMatchObject({ type: 'unknown', source: '/v1/monitors/m', data: detected('x').payload })
    const error = { name: 'ProtocolError', message: expect.stringContaining('html') }
    expect(diagnostics.at(-1)).toMatchObject({ kind: 'expansion', error })
    expect(requested % 5).toBe(0)
  })

  it('is emitted without an output if the run has another status meanwhile', async () => {
    const run = { run_id: 'r', is_active: false, processor: 'base' }
    const later = { ...run, status: 'completed', modified_at: '2026-01-01T00:05:00Z' }
    const baseUrl = await serve((_request, response) => answer(response, { run: later, output: {} }))
    const data = { ...run, status: 'failed', modified_at: '2026-01-01T00:00:00Z' }

    const { first } = await watched(baseUrl, {
      ...detected('x'),
      payload: { type: 'task_run.status', data },
    })

    expect(first).toMatchObject({ type: 'task_run.state', data: { run: data } })
  })

  it('errors the result if the key is rejected, which affects all sources', async () => {
    const client = createClient({ baseUrl: await failing(401), apiKey: 'key', retries: 0 })
    const webhooks = { deliveries: concat(of(detected('x')), NEVER) }

    const seen = lastValueFrom(client.watch({ webhooks }))

    await expect(seen).rejects.toMatchObject({ status: 401 })
  })
})

/** A service with the monitor `m` with the event `e1`, and the done task group `g`. Other requests get this status. */
async function partlyFailing(failure = 404, scheduler: SchedulerLike = asyncScheduler) {
  const requested: string[] = []
  const status = { is_active: false, num_task_runs: 1, task_run_status_counts: { completed: 1 } }
  const run = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }
  const baseUrl = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    requested.push(pathname)
    if (pathname === '/v1/monitors/m/events') {
      const event = { event_type: 'event_stream', event_id: 'e1', event_group_id: 'x', output: {} }
      return answer(response, { events: [event] })
    }
    if (pathname.endsWith('/groups/g')) return answer(response, { taskgroup_id: 'g', status })
    if (pathname.includes('/groups/g/')) {
      openStream(response)
      const event = pathname.endsWith('/runs')
        ? { type: 'task_run.state', event_id: '1', run }
        : { type: 'task_group_status', event_id: '1', status }
      return void response.end(sse(event))
    }
    answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, failure)
  })
  return {
    client: createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0, scheduler }),
    requested,
  }
}

describe('a source of watch that fails permanently', () => {
  it.each([402, 403, 404, 409, 422])(
    'emits source.failed once, and the others continue: %i',
    async (status) => {
      const { client } = await partlyFailing(status)

      const watched = client.watch({ monitors: ['m', 'bad'], taskGroups: ['g', 'gone'] })
      const seen = await lastValueFrom(watched.pipe(take(5), toArray()))

      const emitted = seen.map(({ type, source }) => `${type} ${source}`)
      expect(emitted.toSorted()).toEqual([
        'monitor.event_stream /v1/monitors/m',
        'source.failed /v1/monitors/bad',
        'source.failed /v1/tasks/groups/gone',
        'task_group.status /v1/tasks/groups/g',
        'task_run.state /v1/tasks/runs/r',
      ])
      const failures = seen.filter(({ type }) => type === 'source.failed')
      expect(failures).toMatchObject([{ time: null }, { time: null }])
      for (const { data } of failures)
        expect(data).toMatchObject({ error: { status, ref_id: 'r', retryable: false } })
    },
  )

  it('lets watch complete when all the others have', async () => {
    const { client } = await partlyFailing()

    const watched = client.watch({ monitors: ['bad'], taskGroups: ['g'] })
    const seen = await lastValueFrom(watched.pipe(toArray()))

    expect(seen.map(({ type }) => type)).toContain('source.failed')
  })

  it('errors the result with all errors once every source has failed, in each subscription', async () => {
    const { client } = await partlyFailing()
    const watched = client.watch({ monitors: ['bad'], taskGroups: ['gone'] })

    for (let subscription = 0; subscription < 2; subscription++) {
      const types: string[] = []
      const error: unknown = await lastValueFrom(watched.pipe(tap(({ type }) => types.push(type)))).then(
        null,
        (thrown: unknown) => thrown,
      )

      expect(types).toEqual(['source.failed', 'source.failed'])
      expect(error).toBeInstanceOf(AllSourcesFailedError)
      const { failures } = error as AllSourcesFailedError
      expect([...failures.keys()].toSorted()).toEqual(['/v1/monitors/bad', '/v1/tasks/groups/gone'])
      for (const failure of failures.values()) expect(failure).toMatchObject({ status: 404, ref_id: 'r' })
    }
  })

  it('errors the result if the key is rejected', async () => {
    const { client } = await partlyFailing(401)

    const seen = lastValueFrom(client.watch({ monitors: ['bad'], taskGroups: ['g'] }).pipe(toArray()))

    await expect(seen).rejects.toMatchObject({ name: 'AuthenticationError', status: 401 })
  })
})

describe('an Observable list of watch', () => {
  /** Records each event as `type source`. */
  function recording(watched: Observable<ResearchEvent>) {
    const seen: string[] = []
    const ended = new Promise<void>((resolve, reject) => {
      const subscription = watched.subscribe({
        next: ({ type, source }) => void seen.push(`${type} ${source}`),
        error: reject,
        complete: resolve,
      })
      onTestFinished(() => subscription.unsubscribe())
    })
    return { seen, ended }
  }

  it('subscribes to new entries, unsubscribes from removed ones, and keeps the others subscribed', async () => {
    const { client, requested } = await partlyFailing()
    const monitors = new BehaviorSubject<WatchedMonitor[]>([])
    const { seen, ended } = recording(client.watch({ monitors }))

    monitors.next(['m'])
    await settled(() => requested.length)
    const one = requested.splice(0)
    monitors.next([{ id: 'm' }, 'bad'])
    await settled(() => requested.length)
    const two = requested.splice(0)
    monitors.next([{ id: 'm', limit: 1 }, 'bad'])
    await settled(() => requested.length)
    const three = requested.splice(0)
    monitors.next([])
    monitors.complete()
    await ended

    expect([one, two, three]).toEqual([
      ['/v1/monitors/m/events'],
      ['/v1/monitors/bad/events'],
      ['/v1/monitors/m/events'],
    ])
    expect(seen).toEqual(['monitor.event_stream /v1/monitors/m', 'source.failed /v1/monitors/bad'])
  })

  it('subscribes again to a failed source after it was removed and added', async () => {
    const { client } = await partlyFailing()
    const monitors = new BehaviorSubject<string[]>(['bad'])
    const { seen, ended } = recording(
      client.watch({ monitors }).pipe(
        tap(() => {
          if (monitors.value.length === 0) return
          // Not subscribed to again while it stays in the list.
          monitors.next(['bad'])
          if (seen.length === 1) return monitors.complete()
          monitors.next([])
          monitors.next(['bad'])
        }),
      ),
    )

    await expect(ended).rejects.toBeInstanceOf(AllSourcesFailedError)

    expect(seen).toEqual(['source.failed /v1/monitors/bad', 'source.failed /v1/monitors/bad'])
  })

  it.each(['..', '', 'a\nb', 'a\uD800', 'x'.repeat(513)])(
    'emits source.failed for a malformed id, and the others continue: %j',
    async (malformed) => {
      const { client, requested } = await partlyFailing()
      const monitors = of([malformed, 'm'])
      const taskGroups = of([{ id: malformed, until: 'closed' as const }, 'g'])

      const seen = await lastValueFrom(client.watch({ monitors, taskGroups }).pipe(take(5), toArray()))

      const failures = seen.filter((event) => event.type === 'source.failed')
      expect(failures.map(({ source, via }) => [source, via])).toEqual([
        [monitorSource(malformed), 'poll'],
        [groupSource(malformed), 'stream'],
      ])
      expect(failures.map(({ data }) => data.error)).toMatchObject([
        { name: 'ArgumentError', argument: 'monitorId', value: malformed },
        { name: 'ArgumentError', argument: 'groupId', value: malformed },
      ])
      expect(seen.map(({ type }) => type).toSorted()).toEqual([
        'monitor.event_stream',
        'source.failed',
        'source.failed',
        'task_group.status',
        'task_run.state',
      ])
      expect(requested.filter((path) => !/\/(monitors\/m|groups\/g)(\/|$)/.test(path))).toEqual([])
    },
  )

  it('reports a malformed id once while it stays in the list, with any options and index', async () => {
    let now = 0
    // Two failures within a millisecond would be the same event.
    const scheduler = recordingDelays(asyncScheduler, () => {})
    const { client } = await partlyFailing(404, { ...scheduler, now: () => (now += 1) })
    const monitors = new BehaviorSubject<WatchedMonitor[]>(['..'])
    const { seen } = recording(client.watch({ monitors }))

    monitors.next(['m', '..', '..'])
    monitors.next([{ id: '..', limit: 1 }])
    const stayed = [...seen]
    monitors.next([])
    monitors.next(['..'])

    expect(stayed).toEqual(['source.failed /v1/monitors/..'])
    expect(seen).toEqual(['source.failed /v1/monitors/..', 'source.failed /v1/monitors/..'])
  })

  it('of task groups completes when it and all groups have', async () => {
    const { client } = await partlyFailing()
    const { seen, ended } = recording(client.watch({ taskGroups: concat(of([]), of(['g']).pipe(delay(0))) }))

    await ended

    expect(seen.toSorted()).toEqual([
      'task_group.status /v1/tasks/groups/g',
      'task_run.state /v1/tasks/runs/r',
    ])
  })

  it.each<[string, unknown]>([
    ['monitors', 'm'],
    ['monitors[0]', [null]],
    ['monitors[1]', ['m', { limit: 1 }]],
    ['limitt', [{ id: '..', limitt: 1 }]],
    ['pollIntervall', [{ id: 'm', pollIntervall: 1 }]],
    ['pollInterval', [{ id: 'm', pollInterval: -1 }]],
    ['monitors[1]', ['m', { id: 'm', limit: 1 }]],
  ])('errors with an ArgumentError for %s: %j', async (argument, list) => {
    const { client } = await partlyFailing()
    const monitors = of(list) as Observable<WatchedMonitor[]>

    await expect(recording(client.watch({ monitors })).ended).rejects.toMatchObject({
      name: 'ArgumentError',
      argument,
    })
  })

  it('passes on its own error', async () => {
    const { client } = await partlyFailing()
    const monitors = throwError(() => new Error('no list'))

    await expect(recording(client.watch({ monitors })).ended).rejects.toThrow('no list')
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
  ])('is emitted unchanged, and nothing is requested for it', async (delivery) => {
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
