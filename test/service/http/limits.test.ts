import { describe, expect, it } from 'vitest'
import type { AddRunsResponse } from '../../../src/protocol/index.ts'
import { createMonitorBody } from '../../../src/service/monitors/request.ts'
import { running } from '../running.ts'

const texts = (count: number, text = 'a') => Array.from({ length: count }, (_, index) => `${text}${index}`)
const domains = (count: number) => texts(count).map((name) => `${name}.example`)
const keyed = <Value>(keys: readonly string[], value: Value) =>
  Object.fromEntries(keys.map((key) => [key, value]))
const nested = (levels: number): object => (levels === 0 ? {} : { properties: { a: nested(levels - 1) } })
const server = { type: 'url', url: 'https://tools.example', name: 'tools' }
const longUrl = `https://a.example/${'a'.repeat(2_048)}`

const search = (more: object) => ['/v1/search', { search_queries: ['tides'], ...more }] as const
const beta = (more: object) => ['/v1beta/search', { objective: 'tides', ...more }] as const
const run = (more: object) => ['/v1/tasks/runs', { input: 'tides', processor: 'base', ...more }] as const
const monitor = (more: object, settings: object = {}) =>
  [
    '/v1/monitors',
    { type: 'event_stream', frequency: '1d', settings: { query: 'tides', ...settings }, ...more },
  ] as const
const asked = (json_schema: object) => ({ output_schema: { type: 'json', json_schema } })

describe('a request above a limit', () => {
  it.each<readonly [string, readonly [path: string, body: object], string]>([
    ['queries', search({ search_queries: texts(51) }), 'search_queries: Expected at most 50 entries'],
    [
      'a long query',
      search({ search_queries: ['a'.repeat(5_001)] }),
      'search_queries.0: Expected at most 5000',
    ],
    ['a long objective', search({ objective: 'a'.repeat(5_001) }), 'objective: Expected at most 5000'],
    [
      'included domains',
      search({ advanced_settings: { source_policy: { include_domains: domains(201) } } }),
      'advanced_settings.source_policy.include_domains: Expected at most 200 entries',
    ],
    [
      'domains that are none',
      search({ advanced_settings: { source_policy: { include_domains: Array(20_000).fill(1) } } }),
      'advanced_settings.source_policy.include_domains: Expected at most 200 entries',
    ],
    [
      'excluded domains',
      beta({ source_policy: { exclude_domains: domains(201) } }),
      'source_policy.exclude_domains: Expected at most 200 entries',
    ],
    ['a long session id', search({ session_id: 'a'.repeat(513) }), 'session_id: Expected at most 512'],
    ['queries in beta', beta({ search_queries: texts(51) }), 'search_queries: Expected at most 50 entries'],
    ['domains for a run', run({ source_policy: { include_domains: domains(201) } }), 'at most 200 entries'],
    [
      'tool servers',
      run({ mcp_servers: Array.from({ length: 21 }, () => server) }),
      'mcp_servers: Expected at most 20 entries',
    ],
    [
      'allowed tools',
      run({ mcp_servers: [{ ...server, allowed_tools: texts(201) }] }),
      'mcp_servers.0.allowed_tools: Expected at most 200 entries',
    ],
    [
      'headers',
      run({ mcp_servers: [{ ...server, headers: keyed(texts(51), 'a') }] }),
      'mcp_servers.0.headers: Expected at most 50 entries',
    ],
    [
      'a long header',
      run({ mcp_servers: [{ ...server, headers: { a: 'a'.repeat(8_193) } }] }),
      'mcp_servers.0.headers.a: Expected at most 8192',
    ],
    ['a long URL', run({ webhook: { url: longUrl, event_types: [] } }), 'webhook.url: Expected at most 2048'],
    [
      'event types',
      run({ webhook: { url: 'https://a.example', event_types: Array(11).fill('task_run.status') } }),
      'webhook.event_types: Expected at most 10 entries',
    ],
    ['metadata', run({ metadata: keyed(texts(101), 'a') }), 'metadata: Expected at most 100 entries'],
    ['long metadata', run({ metadata: { a: texts(5_000) } }), 'metadata: Expected at most 25000 characters'],
    ['a long processor', run({ processor: 'a'.repeat(513) }), 'processor: Expected at most 512'],
    [
      'a long memory scope',
      run({ memory_scope_key: 'a'.repeat(513) }),
      'memory_scope_key: Expected at most 512',
    ],
    [
      'a deep JSON schema',
      run({ task_spec: asked(nested(17)) }),
      'task_spec.output_schema.json_schema: Expected at most 32 levels',
    ],
    [
      'properties',
      run({ task_spec: asked({ properties: keyed(texts(501), {}) }) }),
      'task_spec.output_schema.json_schema: Expected at most 500 entries',
    ],
    [
      'allowed values',
      run({ task_spec: asked({ properties: { a: { enum: texts(501) } } }) }),
      'task_spec.output_schema.json_schema: Expected at most 500 entries',
    ],
    [
      'metadata of a monitor',
      monitor({ metadata: keyed(texts(101), 'a') }),
      'metadata: Expected at most 100',
    ],
    [
      'a long query of a monitor',
      monitor({}, { query: 'a'.repeat(5_001) }),
      'settings.query: Expected at most',
    ],
    [
      'domains for a monitor',
      monitor({}, { advanced_settings: { source_policy: { exclude_domains: domains(201) } } }),
      'source_policy.exclude_domains: Expected at most 200 entries',
    ],
    [
      'fields of a monitor',
      monitor({}, asked({ type: 'object', properties: keyed(texts(501), {}) })),
      'settings.output_schema.json_schema: Expected at most 500 entries',
    ],
    [
      'event types of a monitor',
      monitor({
        webhook: { url: 'https://a.example', event_types: Array(11).fill('monitor.event.detected') },
      }),
      'webhook.event_types: Expected at most 10 entries',
    ],
  ])('is refused: %s', async (_, [path, body], expected) => {
    const answer = await (await running()).post(path, body)
    expect([answer.status, answer.body.error.message]).toEqual([422, expect.stringContaining(expected)])
  })

  it('is refused with the error format of task groups: metadata', async () => {
    const answer = await (await running()).post('/v1/tasks/groups', { metadata: keyed(texts(101), 'a') })
    const detail = [{ loc: ['body', 'metadata'], msg: 'Expected at most 100 entries', type: 'custom' }]
    expect(answer).toMatchObject({ status: 422, body: { detail } })
  })

  it('is refused if its default task spec alone is too long, which is validated once for all runs', async () => {
    const caller = await running()
    const id = await caller.group()
    const inputs = texts(1_000).map((input) => ({ input }))
    const default_task_spec = { output_schema: 'a'.repeat(1_000_000) }
    const answer = await caller.post<unknown>(`/v1/tasks/groups/${id}/runs`, { inputs, default_task_spec })
    expect(answer).toMatchObject({ status: 422, body: { detail: { length: 20 } } })
  })

  it('is refused before parsing if it has very many values', async () => {
    const caller = await running()
    const values = (count: number) => `{"inputs":[${'[],'.repeat(count / 2)}1]}`
    const searched = await caller.post('/v1/search', values(50_002))
    expect([searched.status, searched.body.error.message]).toEqual([
      422,
      expect.stringContaining('Expected at most 50000 values'),
    ])
    const path = `/v1/tasks/groups/${await caller.group()}/runs`
    const runs = await caller.post<unknown>(path, values(500_002))
    expect(runs).toMatchObject({
      status: 422,
      body: { detail: [{ msg: 'Expected at most 500000 values' }] },
    })
    expect(await caller.post(path, values(499_990))).toMatchObject({
      body: { detail: [{ msg: expect.stringContaining('at most 1000 inputs') }] },
    })
  })

  it('is refused with a limited number of issues', async () => {
    const caller = await running()
    const include_domains = texts(200, '-')
    const body = { search_queries: ['tides'], advanced_settings: { source_policy: { include_domains } } }
    const answer = await caller.post('/v1/search', body)
    expect(answer.status).toBe(422)
    expect(answer.body.error.detail).toMatchObject({ errors: { length: 20 } })
  })

  it('is refused if a filter has too many values', async () => {
    const caller = await running()
    const filters = (count: number) => Array(count).fill('type=event_stream').join('&')
    expect((await caller.get(`/v1/monitors?${filters(10)}`)).status).toBe(200)
    const answer = await caller.get(`/v1/monitors?${filters(11)}`)
    expect([answer.status, answer.body.error.message]).toEqual([
      422,
      expect.stringContaining('type: Expected at most 10 entries'),
    ])
  })
})

describe('a request at the limits', () => {
  it('is accepted: a search with all its domains and queries', async () => {
    const caller = await running()
    const include_domains = [...domains(199), 'sea.example.edu']
    const [path, body] = search({
      search_queries: ['tides'.padEnd(5_000), ...texts(49)],
      advanced_settings: { source_policy: { include_domains, exclude_domains: domains(200) } },
    })
    expect(await caller.post(path, body)).toMatchObject({
      status: 200,
      body: { results: [{ title: 'Tides' }] },
    })
  })

  it('is accepted: runs with all their fields', async () => {
    const caller = await running()
    const [, input] = run({
      metadata: keyed(texts(100), 'a'),
      source_policy: { include_domains: domains(200) },
      mcp_servers: Array.from({ length: 20 }, () => ({
        ...server,
        headers: keyed(texts(50), 'a'),
        allowed_tools: texts(200),
      })),
    })
    const path = `/v1/tasks/groups/${await caller.group()}/runs`
    const answer = await caller.post<AddRunsResponse>(path, { inputs: Array(10).fill(input) })
    expect([answer.status, answer.body.run_ids.length]).toEqual([200, 10])
  })

  it('names only some of the unknown fields of a search', async () => {
    const caller = await running()
    const [path, body] = search(keyed(texts(1_000, 'unknown_'), 1))
    const answer = await caller.post<{ warnings: { message: string }[] }>(path, body)
    expect(answer.body.warnings).toHaveLength(21)
    expect(answer.body.warnings.at(-1)?.message).toContain('980 more fields')
  })

  it('is accepted: a monitor with all its metadata', () => {
    const [, body] = monitor({ metadata: keyed(texts(100), 'a'.repeat(512)) })
    expect(createMonitorBody.safeParse(body).success).toBe(true)
  })
})
