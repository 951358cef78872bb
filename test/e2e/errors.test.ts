import { describe, expect, it } from 'vitest'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import type { Observable } from 'rxjs'
import { all, research } from './research.ts'
import type { Research } from './research.ts'

const failure = (stream: Observable<unknown>) =>
  all(stream).then(
    () => undefined,
    (error: unknown) => error,
  )

type Call = (client: ResearchClient) => Observable<unknown>
const calls: Record<string, Call> = {
  search: (client) => client.search({ search_queries: ['x'] }),
  searchBeta: (client) => client.searchBeta({ objective: 'x' }),
  'monitors.events': (client) => client.monitors.events('m'),
  'monitors.cancel': (client) => client.monitors.cancel('m'),
  'monitors.follow': (client) => client.monitors.follow('m'),
  'taskGroups.addRuns': (client) =>
    client.taskGroups.addRuns('g', { inputs: [{ input: 'x', processor: 'base' }] }),
  'taskGroups.events': (client) => client.taskGroups.events('g'),
  'taskGroups.runs': (client) => client.taskGroups.runs('g'),
  'untyped get': (client) => client.get('/v1/monitors'),
  'untyped stream': (client) => client.stream('/v1/tasks/groups/g/events'),
}

describe('errors, end to end', () => {
  it.each(Object.entries(calls))(
    '%s: a wrong key is an AuthenticationError without the key',
    async (_, call) => {
      const { service } = await research()
      const apiKey = 'a-key-that-does-not-exist'

      const error = await failure(call(createClient({ baseUrl: service.url ?? '', apiKey })))

      expect(error).toMatchObject({
        name: 'AuthenticationError',
        status: 401,
        ref_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
      expect(String(error)).not.toContain(apiKey)
    },
  )

  it.each(Object.entries(calls).filter(([name]) => /^(monitors|taskGroups)/.test(name)))(
    '%s: a missing resource is a NotFoundError',
    async (_, call) => {
      const { client } = await research()

      const error = await failure(call(client))

      expect(error).toMatchObject({ name: 'NotFoundError', status: 404, retryable: false })
    },
  )

  it("an invalid cursor is a ValidationError with the service's message", async () => {
    const { client, monitor } = await withMonitor()

    const error = await failure(client.monitors.events(monitor, { cursor: 'nonsense' }))

    expect(error).toMatchObject({
      name: 'ValidationError',
      status: 422,
      issues: [],
      ref_id: expect.any(String),
    })
  })

  it('an unknown last_event_id is a ValidationError with its issues', async () => {
    const { client, group } = await research()
    const id = await group('x')

    const error = await failure(client.taskGroups.events(id, { last_event_id: 'nonsense' }))

    expect(error).toMatchObject({ name: 'ValidationError', status: 422 })
    expect(error).toHaveProperty('issues.0.loc', ['query', 'last_event_id'])
  })

  it.each([408, 429, 500, 502, 503, 504])('a %i is retried until it passes', async (status) => {
    const { client, service, diagnostics } = await research()
    service.faults.add({ kind: 'status', status, times: 3, retryAfter: 0 })

    const [answer] = await all(client.search({ search_queries: ['x'] }))

    expect(answer?.results).toEqual([])
    expect(diagnostics.filter(({ kind }) => kind === 'retry')).toHaveLength(3)
  })

  it('a stream survives a temporary failure of the service', async () => {
    const { client, service, group } = await research()
    const id = await group('x')
    service.faults.add({ kind: 'status', status: 503, times: 5, retryAfter: 0 })

    const events = await all(client.taskGroups.runs(id))

    expect(events).toHaveLength(1)
  })

  it.each([500, 502, 504])(
    'runs are not added again after a %i, which may have added them',
    async (status) => {
      const { client, service, group } = await research()
      const id = await group()
      service.faults.add({ kind: 'status', status, times: 1, path: '/v1/tasks/groups' })

      const error = await failure(
        client.taskGroups.addRuns(id, { inputs: [{ input: 'x', processor: 'base' }] }),
      )

      expect(error).toMatchObject({ name: 'UncertainWriteError', cause: { name: 'ServerError', status } })
      expect(service.records().runs).toEqual([])
    },
  )

  it.each([429, 503])('runs are added again after a %i, which did not add them', async (status) => {
    const { client, service, group } = await research()
    const id = await group()
    service.faults.add({ kind: 'status', status, times: 2, retryAfter: 0, path: '/v1/tasks/groups' })

    await all(client.taskGroups.addRuns(id, { inputs: [{ input: 'x', processor: 'base' }] }))

    expect(service.records().runs).toHaveLength(1)
  })

  it('an unreachable service is a ConnectionError', async () => {
    const { service, client } = await research({ client: { retries: 1 } })
    await service.close()

    const error = await failure(client.search({ search_queries: ['x'] }))

    expect(error).toMatchObject({
      name: 'ConnectionError',
      reason: 'refused',
      taken: 'no',
      method: 'POST',
      path: '/v1/search',
    })
  })
})

async function withMonitor(): Promise<Research & { readonly monitor: string }> {
  const both = await research()
  const [monitor] = await all(
    both.client.monitors.create({ type: 'event_stream', frequency: '1h', settings: { query: 'tides' } }),
  )
  return { ...both, monitor: monitor?.monitor_id ?? '' }
}
