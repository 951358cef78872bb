import { ArgumentError } from 'rivulet'
import type { Monitor, RunInput } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { type Caller, running } from '../running.ts'

const tides = { type: 'event_stream', frequency: '1d', settings: { query: 'tides' } }
const url = 'https://hooks.example/'
const json_schema = { type: 'object', properties: { moon: { type: 'string' } } }

async function inputOf({ post, get }: Caller, request: object, headers = {}): Promise<RunInput> {
  const created = { input: 'x', processor: 'base', ...request }
  const { status, body } = await post<{ run_id: string }>('/v1/tasks/runs', created, headers)
  expect(status).toBe(202)
  return (await get<RunInput>(`/v1/tasks/runs/${body.run_id}/input`)).body
}

describe('an empty value in a query', () => {
  it.each([
    '/v1/monitors?cursor=&limit=&type=&status=',
    '/v1/monitors?status=&status=active',
    '/v1/monitors?type=,event_stream,',
  ])('means that the parameter is absent: %s', async (path) => {
    const { get, post } = await running()
    const { body } = await post<Monitor>('/v1/monitors', tides)
    const answer = await get<{ monitors: Monitor[] }>(path)

    expect(answer.status).toBe(200)
    expect(answer.body.monitors).toMatchObject([{ monitor_id: body.monitor_id }])
  })

  it.each(['event_group_id=&cursor=&limit=&include_completions=', 'event_group_id=&limit=1'])(
    'means that the parameter is absent, for the events of a monitor: %s',
    async (query) => {
      const { get, post } = await running()
      const { body } = await post<Monitor>('/v1/monitors', tides)

      expect((await get(`/v1/monitors/${body.monitor_id}/events?${query}`)).status).toBe(200)
    },
  )

  it('does not make a wrong value beside it valid', async () => {
    const { get, post } = await running()
    const { body } = await post<Monitor>('/v1/monitors', tides)

    expect((await get(`/v1/monitors/${body.monitor_id}/events?event_group_id=&limit=0`)).status).toBe(422)
  })

  it('means that the parameter is absent, for the stream of runs', async () => {
    const { events, group, add } = await running()
    const id = await group()
    await add(id, 'one')

    const query = 'last_event_id=&status=&include_input=&include_output='
    expect(await events(`/v1beta/tasks/groups/${id}/runs?${query}`)).toHaveLength(1)
  })
})

describe('a list in a query', () => {
  it('is repeated or has commas', async () => {
    const { get, post } = await running()
    const { body } = await post<Monitor>('/v1/monitors', tides)
    await post(`/v1/monitors/${body.monitor_id}/cancel`)
    const listed = async (query: string) =>
      (await get<{ monitors: Monitor[] }>(`/v1/monitors?${query}`)).body.monitors.length

    expect(await listed('status=active,cancelled')).toBe(1)
    expect(await listed('status=active&status=cancelled')).toBe(1)
    expect(await listed('status=active')).toBe(0)
    expect(await listed('type=snapshot,event_stream')).toBe(1)
  })
})

describe('an omitted or null value has its default', () => {
  it.each([
    [{ json_schema }, { type: 'json', json_schema }],
    [
      { type: null, json_schema, description: 'a moon' },
      { type: 'json', json_schema },
    ],
    [{ description: 'a moon' }, { type: 'text', description: 'a moon' }],
    [{ type: null, description: null }, { type: 'auto' }],
    [{}, { type: 'auto' }],
  ])('the type of an output schema: %j', async (output_schema, expected) => {
    const { task_spec } = await inputOf(await running(), { task_spec: { output_schema } })

    expect(task_spec?.output_schema).toEqual(expected)
  })

  it.each([{}, { type: null }])('the type of a tool server: %j', async (type) => {
    const mcp_servers = [{ ...type, url: 'https://tools.example/', name: 'tools' }]

    expect((await inputOf(await running(), { mcp_servers })).mcp_servers).toEqual([
      { type: 'url', url: 'https://tools.example/', name: 'tools' },
    ])
  })

  it.each([{}, { event_types: null }])('the event types of the webhook of a run: %j', async (types) => {
    const webhook = { ...types, url }
    const headers = { 'service-beta': 'webhook-2025-08-12' }

    expect((await inputOf(await running(), { webhook }, headers)).webhook).toEqual({
      url,
      event_types: ['task_run.status'],
    })
  })

  it('the type of the schema and the event types of the webhook of a monitor', async () => {
    const { post } = await running()
    const settings = {
      query: 'tides',
      output_schema: { json_schema: { properties: { text: { type: 'string' } } } },
    }
    const { status, body } = await post<Monitor>('/v1/monitors', { ...tides, settings, webhook: { url } })

    expect(status).toBe(201)
    expect(body.settings).toMatchObject({ output_schema: { type: 'json' } })
    expect(body.webhook).toEqual({ url, event_types: ['monitor.event.detected'] })
  })

  it('while a wrong one is refused', async () => {
    const { post } = await running()
    const run = { input: 'x', processor: 'base' }
    const answers = await Promise.all([
      post('/v1/tasks/runs', { ...run, task_spec: { output_schema: { type: 'yaml', json_schema } } }),
      post('/v1/tasks/runs', { ...run, mcp_servers: [{ type: 'pipe', url, name: 'x' }] }),
      post('/v1/monitors', { ...tides, webhook: { url, event_types: 'all' } }),
    ])

    expect(answers.map(({ status }) => status)).toEqual([422, 422, 422])
  })
})

describe('the beta header', () => {
  const run = { input: 'x', processor: 'base', webhook: { url, event_types: ['task_run.status'] } }
  const beta = 'webhook-2025-08-12'

  it('has the configured name', async () => {
    const { post } = await running({ betaHeader: 'Acme-Beta' })
    const accepted = await post('/v1/tasks/runs', run, { 'acme-beta': `other, ${beta}` })
    const refused = await post('/v1/tasks/runs', run, { 'service-beta': beta })

    expect([accepted.status, refused.status]).toEqual([202, 422])
    expect(refused.body.error.message).toContain('send the header acme-beta')
  })

  it.each(['', 'a b', 'x:'])('cannot be named %j', async (betaHeader) => {
    await expect(running({ betaHeader })).rejects.toThrow(ArgumentError)
  })
})

describe('a country', () => {
  const search = (location: string) => ({ search_queries: ['tides'], advanced_settings: { location } })

  it.each(['de', 'US'])('of a search may be %s', async (code) => {
    const { post } = await running()
    expect((await post('/v1/search', search(code))).status).toBe(200)
  })

  it.each(['XK', 'ZZ', 'UK'])('of a search must exist: %s', async (code) => {
    const { post } = await running()
    const { status, body } = await post('/v1/search', search(code))

    expect(status).toBe(422)
    expect(body.error.message).toContain('no such country in ISO 3166-1')
  })

  it('of a run and of a monitor must exist', async () => {
    const { post } = await running()
    const advanced_settings = { location: 'QQ' }
    const answers = await Promise.all([
      post('/v1/tasks/runs', { input: 'x', processor: 'base', advanced_settings }),
      post('/v1/monitors', { ...tides, settings: { query: 'tides', advanced_settings } }),
    ])

    expect(answers.map(({ status }) => status)).toEqual([422, 422])
  })
})

describe('the beta search', () => {
  it('warns of its cap', async () => {
    const { post } = await running()
    const capped = await post<object>('/v1beta/search', { objective: 'tides', max_results: 1_000 })
    const plain = await post<object>('/v1beta/search', { objective: 'tides', max_results: 5 })

    expect(capped.body).toMatchObject({
      warnings: [{ type: 'input_validation_warning', detail: { given: 1_000, used: 40 } }],
    })
    expect(plain.body).not.toHaveProperty('warnings')
  })
})

describe('a 405', () => {
  it.each([
    ['HEAD', '/v1/search', 'POST'],
    ['HEAD', '/v1/monitors/any', 'GET'],
    ['HEAD', '/v1beta/tasks/groups/any/runs', 'GET, POST'],
    ['DELETE', '/v1beta/tasks/groups/any/runs', 'GET, POST'],
    ['GET', '/v1/monitors/any/trigger', 'POST'],
    ['OPTIONS', '/openapi.json', 'GET'],
    ['PUT', '/v1/tasks/runs/any/events', 'GET'],
  ])('of %s %s allows what the path has', async (method, path, allow) => {
    const { service, send } = await running()
    const { status, headers } = await send(path, { method, headers: { 'x-api-key': service.apiKey } })

    expect(status).toBe(405)
    expect(headers.get('allow')?.split(', ').toSorted().join(', ')).toBe(allow)
  })

  it('is not for a path that there is not', async () => {
    const { service, send } = await running()
    const { status } = await send('/nowhere', { method: 'HEAD', headers: { 'x-api-key': service.apiKey } })

    expect(status).toBe(404)
  })
})
