import { APIError, AuthenticationError, NotFoundError, UnprocessableEntityError } from 'parallel-web'
import Parallel from 'parallel-web'
import { firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { receiving, research } from '../e2e/research.ts'
import type { Research } from '../e2e/research.ts'

/** The public service's own SDK, against the embedded service. */
function sdkFor({ service }: Research, options: { apiKey?: string; headers?: Record<string, string> } = {}) {
  const { apiKey = service.apiKey, headers = {} } = options
  return new Parallel({ apiKey, baseURL: service.url, maxRetries: 0, defaultHeaders: headers })
}

async function listOf<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

/** Polls until a response matches, with a turn of the service between attempts. */
async function eventually<T>(look: () => PromiseLike<T>, isRight: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await look()
    if (isRight(answer)) return answer
  }
}

const files = { 'tides.md': '# Tides\n\nTides rise and fall as the moon pulls at the sea.\n' }

describe('the SDK of the public service, against the embedded one', () => {
  it('searches', async () => {
    const { results, search_id, session_id, warnings, usage } = await sdkFor(
      await research({ files }),
    ).search({
      search_queries: ['moon'],
      objective: 'why tides rise',
      mode: 'basic',
      advanced_settings: { max_results: 3, source_policy: null, location: null },
      session_id: 'session_1',
    })

    expect(results).toEqual([
      expect.objectContaining({
        title: 'Tides',
        url: expect.stringContaining('tides.md'),
        excerpts: [expect.stringContaining('the moon pulls at the sea')],
      }),
    ])
    expect(search_id).toMatch(/^search_/)
    expect({ session_id, warnings, usage }).toEqual({
      session_id: 'session_1',
      warnings: null,
      usage: [{ name: 'search', count: 1 }],
    })
  })

  it('creates a run, reads it and its input, and waits for its result', async () => {
    const { taskRun } = sdkFor(await research())

    const { run_id, interaction_id } = await taskRun.create({
      input: { question: 'why?' },
      processor: 'base',
      metadata: { of: 'a test', number: 1, flag: true },
      task_spec: { output_schema: 'a sentence', input_schema: null },
    })
    const { run, output } = await taskRun.result(run_id, { timeout: 30 })

    expect(run).toMatchObject({ run_id, interaction_id, status: 'completed', is_active: false, error: null })
    expect(output).toEqual({ type: 'text', content: 'about {"question":"why?"}', basis: [] })
    await expect(taskRun.retrieve(run_id)).resolves.toEqual(run)
    await expect(taskRun.retrieveInput(run_id)).resolves.toMatchObject({
      input: { question: 'why?' },
      processor: 'base',
      metadata: { of: 'a test', number: 1, flag: true },
    })
  })

  it('creates a group, adds runs, and reads both streams to their end', async () => {
    const { taskGroup } = sdkFor(await research())
    const { taskgroup_id, status } = await taskGroup.create({ metadata: { of: 'a test' } })
    expect(status).toMatchObject({ num_task_runs: 0, is_active: false, task_run_status_counts: {} })

    const added = await taskGroup.addRuns(taskgroup_id, {
      inputs: ['one', 'two'].map((input) => ({ input, processor: 'base' })),
      default_task_spec: { output_schema: { type: 'auto' } },
      refresh_status: true,
    })
    const runs = await listOf(await taskGroup.getRuns(taskgroup_id, { include_output: true }))
    const events = await listOf(await taskGroup.events(taskgroup_id, { timeout: 60 }))

    expect(added).toMatchObject({ status: { num_task_runs: 2 }, run_cursor: '', event_cursor: '' })
    expect(runs.map((event) => event.type === 'task_run.state' && event.run.run_id).toSorted()).toEqual(
      added.run_ids.toSorted(),
    )
    expect(runs).toContainEqual(
      expect.objectContaining({ output: { type: 'text', content: 'about "one"', basis: [] } }),
    )
    expect(events.filter(({ type }) => type === 'task_run.state')).toHaveLength(2)
    expect(events.at(-1)).toMatchObject({
      type: 'task_group_status',
      status: { is_active: false, task_run_status_counts: { completed: 2 } },
    })
    await expect(taskGroup.retrieve(taskgroup_id)).resolves.toMatchObject({
      taskgroup_id,
      metadata: { of: 'a test' },
      status: { num_task_runs: 2 },
    })
    const [run_id = ''] = added.run_ids
    await expect(taskGroup.retrieveRun(run_id, { taskgroup_id })).resolves.toMatchObject({ run_id })
  })

  it('resumes both streams at the cursors of a later request', async () => {
    const { taskGroup } = sdkFor(await research())
    const { taskgroup_id } = await taskGroup.create({})
    await taskGroup.addRuns(taskgroup_id, { inputs: [{ input: 'one', processor: 'base' }] })
    await listOf(await taskGroup.getRuns(taskgroup_id))

    const { run_ids, run_cursor, event_cursor } = await taskGroup.addRuns(taskgroup_id, {
      inputs: [{ input: 'two', processor: 'base' }],
    })
    const runs = await listOf(await taskGroup.getRuns(taskgroup_id, { last_event_id: run_cursor }))
    const events = await listOf(await taskGroup.events(taskgroup_id, { last_event_id: event_cursor }))

    expect(runs).toEqual([expect.objectContaining({ run: expect.objectContaining({ run_id: run_ids[0] }) })])
    expect(events.flatMap((event) => (event.type === 'task_run.state' ? [event.run.run_id] : []))).toEqual(
      run_ids,
    )
  })

  it('creates, reads, lists, triggers and cancels a monitor, and lists its events', async () => {
    const { monitor } = sdkFor(await research({ files }))

    const created = await monitor.create({
      type: 'event_stream',
      frequency: '1d',
      settings: { query: 'moon', include_backfill: true, advanced_settings: null },
      metadata: { of: 'a test' },
    })
    const { monitor_id } = created
    expect(created).toMatchObject({ status: 'active', processor: 'lite', metadata: { of: 'a test' } })
    await expect(monitor.retrieve(monitor_id)).resolves.toMatchObject({ monitor_id, type: 'event_stream' })
    await expect(
      monitor.list({ limit: 10, type: ['event_stream'], status: ['active'] }),
    ).resolves.toMatchObject({ monitors: [{ monitor_id }] })

    await monitor.trigger(monitor_id)
    const { events } = await eventually(
      () => monitor.events(monitor_id, { include_completions: true, limit: 100 }),
      (page) => page.events.length === 2,
    )
    expect(events).toMatchObject([
      { event_type: 'completion', timestamp: expect.any(String) },
      { event_type: 'event_stream', event_date: expect.any(String), output: { type: 'text' } },
    ])
    const [, change] = events
    const event_group_id = change?.event_type === 'event_stream' ? change.event_group_id : ''
    await expect(monitor.events(monitor_id, { event_group_id })).resolves.toEqual({ events: [change] })

    await expect(monitor.cancel(monitor_id)).resolves.toMatchObject({ status: 'cancelled' })
  })

  it('parses the error responses', async () => {
    const both = await research()
    const sdk = sdkFor(both)

    const wrongKey = sdkFor(both, { apiKey: 'wrong' }).search({ search_queries: ['x'] })
    await expect(wrongKey).rejects.toBeInstanceOf(AuthenticationError)
    const missing = sdk.taskGroup.retrieve('tgrp_none')
    await expect(missing).rejects.toBeInstanceOf(NotFoundError)
    await expect(missing).rejects.toMatchObject({
      error: { type: 'error', error: { ref_id: expect.any(String), message: expect.any(String) } },
    })
    const invalid = sdk.monitor.create({ type: 'event_stream', frequency: '1m', settings: { query: 'x' } })
    await expect(invalid).rejects.toBeInstanceOf(UnprocessableEntityError)
    const { taskgroup_id } = await sdk.taskGroup.create({})
    const faulty = sdk.taskGroup.addRuns(taskgroup_id, { inputs: [{ input: '', processor: 'base' }] })
    await expect(faulty).rejects.toMatchObject({
      status: 422,
      error: { detail: [{ loc: ['body', 'inputs', '0', 'input'], msg: expect.any(String) }] },
    })
  })

  it('extracts documents, with an error for each URL that it cannot read', async () => {
    const text = '# Tides\n\nThe moon pulls at the sea.'
    const sdk = sdkFor(await research({ files: { 'sea.example.edu/tides.md': text } }))
    const url = 'https://sea.example.edu/tides.md'

    const answer = await sdk.extract({
      urls: [url, 'http://127.0.0.1:8080/'],
      objective: 'the moon',
      advanced_settings: { full_content: true },
    })

    expect(answer.results).toMatchObject([{ url, title: 'Tides', full_content: text }])
    expect(answer.errors).toMatchObject([{ error_type: 'blocked_address', http_status_code: null }])
  })

  it('finds entities, with the beta header of the interface', async () => {
    const headers = { 'service-beta': 'findall-2025-09-15' }
    const { findall } = sdkFor(await research({ files }), { headers }).beta

    const { objective, entity_type, match_conditions } = await findall.ingest({
      objective: 'Find all texts about the moon',
    })
    const generator = 'preview'
    const request = { objective, entity_type, match_conditions, generator, match_limit: 5 } as const
    const { findall_id } = await findall.create(request)
    const events = await listOf(await findall.events(findall_id))
    const { run, candidates } = await findall.result(findall_id)

    expect(events.map(({ type }) => type)).toEqual([
      'findall.status',
      'findall.status',
      'findall.candidate.generated',
      'findall.candidate.matched',
      'findall.status',
    ])
    expect(run.status).toMatchObject({ status: 'completed', termination_reason: 'candidates_exhausted' })
    expect(candidates).toMatchObject([{ name: 'Tides', match_status: 'matched' }])
    await expect(findall.cancel(findall_id)).rejects.toMatchObject({ status: 409 })
  })

  it('retrieves, evicts and clears memories', async () => {
    const { beta, taskRun, monitor } = sdkFor(await research({ files, betaHeader: 'parallel-beta' }))
    const scope = { memory_scope_key: 'k' }
    const { run_id } = await taskRun.create({ input: 'why?', processor: 'base', ...scope })
    await taskRun.result(run_id)
    const { monitor_id } = await monitor.create({
      type: 'event_stream',
      frequency: '1d',
      settings: { query: 'moon', include_backfill: true },
      ...scope,
    })
    const { results } = await eventually(
      () => beta.memory.retrieve(scope),
      (answer) => answer.results.length === 2,
    )

    expect(results).toMatchObject([
      {
        kind: 'monitor',
        id: monitor_id,
        status: 'active',
        matched_events: [{ excerpt: expect.any(String) }],
      },
      { kind: 'task', id: run_id, input_excerpt: 'why?', output_excerpt: 'about "why?"' },
    ])
    await expect(beta.memory.retrieve({ query: 'moon', kind: 'task', ...scope })).resolves.toEqual({
      results: [],
    })
    await expect(beta.memory.retrieve({})).resolves.toEqual({ results: [] })
    await beta.memory.evict({ id: run_id, kind: 'task', ...scope })
    await expect(beta.memory.retrieve(scope)).resolves.toMatchObject({ results: [{ id: monitor_id }] })
    await beta.memory.clear(scope)
    await expect(beta.memory.retrieve(scope)).resolves.toEqual({ results: [] })
  })

  it('searches for entities', async () => {
    const { findall } = sdkFor(await research({ files, betaHeader: 'parallel-beta' })).beta

    const { entity_set_id, entities } = await findall.entitySearch({
      objective: 'texts about the moon',
      entity_type: 'people',
    })

    expect(entity_set_id).toMatch(/^entity_set_/)
    expect(entities).toEqual([
      {
        name: 'Tides',
        url: expect.stringContaining('tides.md'),
        description: expect.stringContaining('the moon pulls at the sea'),
      },
    ])
  })

  it('gets an error for what is not there', async () => {
    const sdk = sdkFor(await research())

    const refused = await Promise.all(
      [sdk.monitor.update('m', { frequency: '2d' }), sdk.taskRun.events('r')].map((call) =>
        Promise.resolve(call).catch((error: unknown) => error),
      ),
    )

    expect(refused.map((error) => error instanceof APIError && error.status)).toEqual([404, 404])
  })
})

describe("the webhook of a run that was created with the public service's SDK", () => {
  it('needs the beta header of the interface, and is accepted by the receiver', async () => {
    const both = await research()
    const { url, receiver } = await receiving(both)
    const delivery = firstValueFrom(receiver.deliveries)
    const run = {
      input: 'x',
      processor: 'base',
      webhook: { url, event_types: ['task_run.status' as const] },
      betas: ['webhook-2025-08-12'],
    }

    await expect(sdkFor(both).taskRun.create(run)).rejects.toBeInstanceOf(UnprocessableEntityError)
    const headers = { 'service-beta': 'webhook-2025-08-12' }
    const { run_id } = await sdkFor(both, { headers }).taskRun.create(run)

    await expect(delivery).resolves.toMatchObject({
      payload: { type: 'task_run.status', data: { run_id, status: 'completed', error: null } },
    })
  })
})

describe('where the embedded service differs from the SDK', () => {
  it('lists cancelled monitors by default', async () => {
    const { monitor } = sdkFor(await research())
    const request = { type: 'event_stream', frequency: '1d', settings: { query: 'x' } } as const
    const { monitor_id } = await monitor.create(request)
    await monitor.cancel(monitor_id)

    await expect(monitor.list()).resolves.toMatchObject({ monitors: [{ monitor_id }] })
    await expect(monitor.list({ status: ['active'] })).resolves.toEqual({ monitors: [] })
  })
})

describe('the embedded service accepts what the SDK', () => {
  it('writes with commas: a list in a query', async () => {
    const { monitor } = sdkFor(await research())

    await expect(monitor.list({ status: ['active', 'cancelled'] })).resolves.toEqual({ monitors: [] })
  })

  it('may omit: the type of a schema and the event types of a webhook', async () => {
    const { monitor, taskRun } = sdkFor(await research({ betaHeader: 'parallel-beta' }))
    const output_schema = { json_schema: { properties: { text: { type: 'string' } } } }
    const webhook = { url: 'http://127.0.0.1:9/hook' }
    const created = await monitor.create({
      type: 'event_stream',
      frequency: '1d',
      settings: { query: 'x', output_schema },
      webhook,
    })
    const betas = ['webhook-2025-08-12' as const]
    const run = await taskRun.create({
      input: 'x',
      processor: 'base',
      task_spec: { output_schema },
      webhook,
      betas,
    })

    const schemas = [{ description: 'a moon' }, {}].map(async (form) => {
      const asked = {
        input: 'x',
        processor: 'base',
        task_spec: { output_schema: form, input_schema: { description: 'x' } },
      }
      return (await taskRun.retrieveInput((await taskRun.create(asked)).run_id)).task_spec
    })

    await expect(Promise.all(schemas)).resolves.toEqual([
      { output_schema: { type: 'text', description: 'a moon' }, input_schema: { description: 'x' } },
      { output_schema: { type: 'auto' }, input_schema: { description: 'x' } },
    ])
    expect(created.webhook).toMatchObject({ event_types: ['monitor.event.detected'] })
    await expect(taskRun.retrieveInput(run.run_id)).resolves.toMatchObject({
      task_spec: { output_schema: { type: 'json' } },
    })
  })
})
