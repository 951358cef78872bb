import Parallel from 'parallel-web'
import { createClient } from 'rivulet'
import type {
  CreateMonitorRequest,
  MemoryRetrieveRequest,
  ResearchClient,
  RunInput,
  SearchRequest,
} from 'rivulet'
import { firstValueFrom } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { recordingService } from './recording-service.ts'
import type { RecordedRequest } from './recording-service.ts'

const apiKey = 'key-0123456789'

/** The first request of our client, and the SDK's for the same call. */
async function firstRequests(
  ours: (client: ResearchClient) => Observable<unknown>,
  theirs: (sdk: Parallel) => PromiseLike<unknown>,
): Promise<{ readonly ours: RecordedRequest | undefined; readonly theirs: RecordedRequest | undefined }> {
  const { baseUrl, requests } = await recordingService()
  const client = createClient({ baseUrl, apiKey, betaHeader: 'parallel-beta', retries: 0 })
  await firstValueFrom(ours(client), { defaultValue: undefined })
  const first = requests[0]
  requests.length = 0
  await theirs(new Parallel({ apiKey, baseURL: baseUrl, maxRetries: 0 }))
  return { ours: first, theirs: requests[0] }
}

/** Reads a stream of the SDK. */
async function read(stream: PromiseLike<AsyncIterable<unknown>>): Promise<void> {
  const reader = (await stream)[Symbol.asyncIterator]()
  while ((await reader.next()).done !== true) continue
}

const search = {
  search_queries: ['a', 'b'],
  objective: 'c',
  mode: 'fast',
  advanced_settings: {
    max_results: 3,
    location: 'de',
    source_policy: { include_domains: ['.edu'], exclude_domains: ['x.org'], after_date: '2026-01-02' },
    excerpt_settings: { max_chars_per_result: 2_000 },
    fetch_policy: { max_age_seconds: 600, timeout_seconds: 5, disable_cache_fallback: true },
  },
  max_chars_total: 9_000,
  session_id: 's',
  client_model: 'm',
} satisfies SearchRequest & Parallel.SearchParams

const monitor = {
  type: 'event_stream',
  frequency: '1d',
  processor: 'base',
  settings: {
    query: 'q',
    include_backfill: true,
    output_schema: { type: 'json', json_schema: { type: 'object' } },
    advanced_settings: { location: 'us', source_policy: { include_domains: ['x.org'] } },
  },
  webhook: { url: 'https://x.org/hook', event_types: ['monitor.event.detected'] },
  metadata: { a: 'b' },
  memory_scope_key: 'k',
} satisfies CreateMonitorRequest & Parallel.MonitorCreateParams

const memories = {
  query: 'q',
  kind: 'task',
  limit: 5,
  since: '2026-01-02T00:00:00Z',
  memory_scope_key: 'k',
} satisfies MemoryRetrieveRequest & Parallel.Beta.MemoryRetrieveParams

const input = {
  input: { question: 'q' },
  processor: 'core',
  metadata: { a: 'b' },
  memory_scope_key: 'k',
  source_policy: { exclude_domains: ['x.org'] },
  advanced_settings: { location: 'us' },
  task_spec: { output_schema: { type: 'text', description: 'd' }, input_schema: 'i' },
  previous_interaction_id: 'i',
  mcp_servers: [
    { type: 'url', url: 'https://x.org/mcp', name: 'n', headers: { a: 'b' }, allowed_tools: ['t'] },
  ],
  enable_events: true,
} satisfies RunInput & Parallel.RunInput

const webhook = { url: 'https://x.org/hook', event_types: ['task_run.status' as const] }

describe("our request is the same as that of the public service's SDK", () => {
  it.each<[string, (client: ResearchClient) => Observable<unknown>, (sdk: Parallel) => PromiseLike<unknown>]>(
    [
      ['a search', (c) => c.search(search), (s) => s.search(search)],
      ['a new monitor', (c) => c.monitors.create(monitor), (s) => s.monitor.create(monitor)],
      [
        'a monitor of a run',
        (c) => c.monitors.create({ type: 'snapshot', frequency: '1w', settings: { task_run_id: 'r' } }),
        (s) => s.monitor.create({ type: 'snapshot', frequency: '1w', settings: { task_run_id: 'r' } }),
      ],
      ['a monitor, by an odd id', (c) => c.monitors.get('m 1/ä'), (s) => s.monitor.retrieve('m 1/ä')],
      ['cancelling a monitor', (c) => c.monitors.cancel('m'), (s) => s.monitor.cancel('m')],
      [
        "a monitor's events",
        (c) => c.monitors.events('m', { limit: 5, include_completions: true }),
        (s) => s.monitor.events('m', { limit: 5, include_completions: true }),
      ],
      [
        "an execution's events",
        (c) => c.monitors.events('m', { event_group_id: 'e' }),
        (s) => s.monitor.events('m', { event_group_id: 'e' }),
      ],
      [
        'a page of monitors',
        (c) => c.monitors.list({ limit: 7, cursor: 'c', type: 'snapshot', status: 'active' }),
        (s) => s.monitor.list({ limit: 7, cursor: 'c', type: ['snapshot'], status: ['active'] }),
      ],
      [
        'a new group',
        (c) => c.taskGroups.create({ metadata: { a: 'b' } }),
        (s) => s.taskGroup.create({ metadata: { a: 'b' } }),
      ],
      ['a group', (c) => c.taskGroups.get('g'), (s) => s.taskGroup.retrieve('g')],
      [
        'runs for a group',
        (c) => c.taskGroups.addRuns('g', { inputs: [input], default_task_spec: { output_schema: 'x' } }),
        (s) => s.taskGroup.addRuns('g', { inputs: [input], default_task_spec: { output_schema: 'x' } }),
      ],
      [
        'runs with webhooks, in beta',
        (c) => c.taskGroups.addRuns('g', { inputs: [{ ...input, webhook }] }),
        (s) => s.taskGroup.addRuns('g', { inputs: [{ ...input, webhook }], betas: ['webhook-2025-08-12'] }),
      ],
      ['memories', (c) => c.memory.retrieve(memories), (s) => s.beta.memory.retrieve(memories)],
      [
        'searching for entities',
        (c) => c.findAll.entitySearch('x', { entity_type: 'people', match_limit: 5 }),
        (s) => s.beta.findall.entitySearch({ objective: 'x', entity_type: 'people', match_limit: 5 }),
      ],
      [
        "a group's events",
        (c) => c.taskGroups.events('g', { last_event_id: 'e', timeout: 60 }),
        (s) => read(s.taskGroup.events('g', { last_event_id: 'e', timeout: 60 })),
      ],
    ],
  )('%s', async (_name, ours, theirs) => {
    const both = await firstRequests(ours, theirs)

    expect(both.ours).toEqual(both.theirs)
    expect(both.ours).toMatchObject({ key: apiKey })
  })
})

describe('where the two differ', () => {
  it("the stream of runs has the beta path of the interface, and the SDK's is the stable one", async () => {
    const query = { last_event_id: 'e', status: 'failed', include_input: true, include_output: true } as const

    const { ours, theirs } = await firstRequests(
      (c) => c.taskGroups.runs('g', query),
      (s) => read(s.taskGroup.getRuns('g', query)),
    )

    expect(ours).toEqual({ ...theirs, path: '/v1beta/tasks/groups/g/runs' })
    expect(theirs?.path).toBe('/v1/tasks/groups/g/runs')
  })

  it.each<[string, (client: ResearchClient) => Observable<unknown>, (sdk: Parallel) => PromiseLike<unknown>]>(
    [
      ['triggering a monitor', (c) => c.monitors.trigger('m'), (s) => s.monitor.trigger('m')],
      [
        'evicting a memory',
        (c) => c.memory.evict({ id: 'r', kind: 'task', memory_scope_key: 'k' }),
        (s) => s.beta.memory.evict({ id: 'r', kind: 'task', memory_scope_key: 'k' }),
      ],
      ['clearing memories', (c) => c.memory.clear({}), (s) => s.beta.memory.clear({})],
    ],
  )('%s accepts JSON, for its errors, where the SDK accepts anything', async (_name, ours, theirs) => {
    const both = await firstRequests(ours, theirs)

    expect(both.ours).toEqual({ ...both.theirs, accept: 'application/json' })
    expect(both.theirs?.accept).toBe('*/*')
  })
})
