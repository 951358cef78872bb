import type { AddRunsResponse, RunInput, TaskGroup, TaskRun, ValidationErrorResponse } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { HeldProcessor, running } from '../running.ts'

describe('task groups', () => {
  it.each(['/v1', '/v1beta'])('are created and read under %s', async (prefix) => {
    const { get, post } = await running()
    const created = await post<TaskGroup>(`${prefix}/tasks/groups`, { metadata: { batch: 7 } })
    const read = await get<TaskGroup>(`${prefix}/tasks/groups/${created.body.taskgroup_id}`)
    expect(created.status).toBe(200)
    expect(created.body).toEqual({
      taskgroup_id: expect.stringMatching(/^tgrp_[0-9a-f]{32}$/),
      metadata: { batch: 7 },
      status: {
        num_task_runs: 0,
        task_run_status_counts: {},
        is_active: false,
        status_message: '',
        modified_at: '2026-01-01T00:00:00.000Z',
      },
      created_at: '2026-01-01T00:00:00.000Z',
    })
    expect(read.status).toBe(200)
    expect(read.body).toEqual(created.body)
  })

  it('are created without a body too', async () => {
    const { post } = await running()
    const created = await post<TaskGroup>('/v1/tasks/groups')
    expect(created.status).toBe(200)
    expect(created.body.metadata).toBeUndefined()
  })

  it('refuse metadata that is not an object, with their error format', async () => {
    const { post } = await running()
    const answer = await post<ValidationErrorResponse>('/v1/tasks/groups', { metadata: 'x' })
    expect(answer.status).toBe(422)
    expect(answer.body.detail).toEqual([
      { loc: ['body', 'metadata'], msg: expect.any(String), type: 'invalid_type' },
    ])
  })

  it.each([
    ['GET', ''],
    ['GET', '/events'],
    ['GET', '/runs'],
    ['GET', '/runs/trun_1'],
    ['POST', '/runs'],
  ])('%s …/groups/{unknown}%s is a 404 with an ErrorResponse', async (method, rest) => {
    const { get, post } = await running()
    const path = `/v1/tasks/groups/tgrp_unknown${rest}`
    const answer = method === 'GET' ? await get(path) : await post(path, { inputs: [] })
    expect(answer.status).toBe(404)
    expect(answer.body).toEqual({
      type: 'error',
      error: { ref_id: expect.any(String), message: 'Task group not found: tgrp_unknown', detail: null },
    })
  })
})

describe('adding runs', () => {
  it.each(['/v1', '/v1beta'])('answers with status, run ids and cursors under %s', async (prefix) => {
    const { group, post } = await running({ processor: new HeldProcessor() })
    const inputs = [{ input: 'one', processor: 'core' }, { input: { name: 'two' } }]
    const answer = await post<AddRunsResponse>(`${prefix}/tasks/groups/${await group()}/runs`, { inputs })
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      status: {
        num_task_runs: 2,
        task_run_status_counts: { queued: 2 },
        is_active: true,
        status_message: '',
        modified_at: '2026-01-01T00:00:00.000Z',
      },
      run_ids: [expect.stringMatching(/^trun_/), expect.stringMatching(/^trun_/)],
      run_cursor: '',
      event_cursor: '',
    })
  })

  it('returns empty cursors for the first runs, and positions for later ones', async () => {
    const { group, add, events } = await running()
    const id = await group()
    const first = await add(id, 'one', 'two')
    await events(`/v1/tasks/groups/${id}/runs`)

    const second = await add(id, 'three')
    const runs = await events(
      `/v1/tasks/groups/${id}/runs?last_event_id=${encodeURIComponent(second.run_cursor ?? '')}`,
    )
    const all = await events(
      `/v1/tasks/groups/${id}/events?last_event_id=${encodeURIComponent(second.event_cursor ?? '')}`,
    )

    expect([first.run_cursor, first.event_cursor]).toEqual(['', ''])
    expect(runs.map(({ data }) => data.run?.run_id)).toEqual(second.run_ids)
    expect(all[0]?.data.status).toMatchObject({ num_task_runs: 3, is_active: true })
    expect(all.flatMap(({ data }) => data.run?.run_id ?? [])).toEqual(second.run_ids)
  })

  it('returns a cursor for later runs even if no run has ended', async () => {
    const { group, add } = await running({ processor: new HeldProcessor() })
    const id = await group()
    await add(id, 'one')
    const second = await add(id, 'two')
    const third = await add(id, 'three')
    expect(second.run_cursor).not.toBe('')
    expect(third.run_cursor).toBe(second.run_cursor)
    expect(third.event_cursor).not.toBe(second.event_cursor)
  })

  it('refresh_status=false responds with the earlier status', async () => {
    const { group, post } = await running()
    const path = `/v1/tasks/groups/${await group()}/runs?refresh_status=false`
    const answer = await post<AddRunsResponse>(path, { inputs: [{ input: 'one' }] })
    expect(answer.body.run_ids).toHaveLength(1)
    expect(answer.body.status.num_task_runs).toBe(0)
  })

  it('accepts 1,000 inputs at once and refuses 1,001, adding none of them', async () => {
    const { group, get, post } = await running({ processor: new HeldProcessor() })
    const id = await group()
    const inputs = (count: number) => Array.from({ length: count }, (_, n) => ({ input: `question ${n}` }))

    const tooMany = await post<ValidationErrorResponse>(`/v1/tasks/groups/${id}/runs`, {
      inputs: inputs(1_001),
    })
    const between = await get<TaskGroup>(`/v1/tasks/groups/${id}`)
    const enough = await post<AddRunsResponse>(`/v1/tasks/groups/${id}/runs`, { inputs: inputs(1_000) })

    expect(tooMany.status).toBe(422)
    expect(tooMany.body.detail).toEqual([
      {
        loc: ['body', 'inputs'],
        msg: 'Expected at most 1000 inputs in a request',
        type: 'too_big',
      },
    ])
    expect(between.body.status.num_task_runs).toBe(0)
    expect(enough.body.run_ids).toHaveLength(1_000)
  })

  it.each<[string, unknown, string[], string]>([
    ['a missing input', {}, ['inputs', '0', 'input'], 'missing'],
    ['an empty input', { input: '' }, ['inputs', '0', 'input'], 'too_small'],
    ['a list as input', { input: [1] }, ['inputs', '0', 'input'], 'invalid_union'],
    [
      'a processor that is not a string',
      { input: 'x', processor: 1 },
      ['inputs', '0', 'processor'],
      'invalid_type',
    ],
    [
      'a malformed date',
      { input: 'x', source_policy: { after_date: 'soon' } },
      ['inputs', '0', 'source_policy', 'after_date'],
      'custom',
    ],
    [
      'a malformed country',
      { input: 'x', advanced_settings: { location: 'deu' } },
      ['inputs', '0', 'advanced_settings', 'location'],
      'custom',
    ],
    [
      'an output schema of an unknown type',
      { input: 'x', task_spec: { output_schema: { type: 'xml' } } },
      ['inputs', '0', 'task_spec', 'output_schema'],
      'invalid_union',
    ],
    [
      'a webhook without an http URL',
      { input: 'x', webhook: { url: 'ftp://x', event_types: [] } },
      ['inputs', '0', 'webhook', 'url'],
      'invalid_format',
    ],
    [
      'a webhook with a password',
      { input: 'x', webhook: { url: 'https://me:secret@x.test/', event_types: [] } },
      ['inputs', '0', 'webhook', 'url'],
      'custom',
    ],
    [
      'a tool server with a password in its URL',
      { input: 'x', mcp_servers: [{ type: 'url', url: 'https://me:secret@x.test/', name: 'tools' }] },
      ['inputs', '0', 'mcp_servers', '0', 'url'],
      'custom',
    ],
    [
      'a webhook for another type of event',
      { input: 'x', webhook: { url: 'http://x.test/', event_types: ['task_run.progress'] } },
      ['inputs', '0', 'webhook', 'event_types', '0'],
      'invalid_value',
    ],
    [
      'a tool server without a name',
      { input: 'x', mcp_servers: [{ type: 'url', url: 'https://x.test/' }] },
      ['inputs', '0', 'mcp_servers', '0', 'name'],
      'missing',
    ],
    ['25,001 characters', { input: 'x'.repeat(25_001) }, ['inputs', '0', 'input'], 'too_big'],
  ])('%s is a 422 whose detail has its path', async (_, input, loc, type) => {
    const { group, post } = await running()
    const path = `/v1/tasks/groups/${await group()}/runs`
    const answer = await post<ValidationErrorResponse>(path, { inputs: [input] })
    expect(answer.status).toBe(422)
    expect(answer.body).toEqual({ detail: [{ loc: ['body', ...loc], msg: expect.any(String), type }] })
  })

  it('accepts every field of a run input, and passes all to the processor', async () => {
    const processor = new HeldProcessor()
    const { group, get, post } = await running({ processor })
    const before = await post<TaskRun>('/v1/tasks/runs', { input: 'before', processor: 'lite' })
    ;(await processor.next()).complete()
    const input = {
      input: { company: 'Example' },
      processor: 'core',
      metadata: { row: 1 },
      memory_scope_key: 'team',
      source_policy: {
        include_domains: ['.edu'],
        exclude_domains: ['example.com'],
        after_date: '2025-01-31',
      },
      advanced_settings: { location: 'de' },
      task_spec: {
        output_schema: { type: 'json', json_schema: { type: 'object', properties: {} } },
        input_schema: 'a company',
      },
      previous_interaction_id: before.body.interaction_id,
      mcp_servers: [
        {
          type: 'url',
          url: 'https://tools.test/mcp',
          name: 'tools',
          headers: { authorization: 'credential' },
          allowed_tools: ['look'],
        },
      ],
      enable_events: true,
      webhook: { url: 'http://127.0.0.1:9/', event_types: [] },
    } satisfies RunInput
    const added = await post<AddRunsResponse>(`/v1/tasks/groups/${await group()}/runs`, { inputs: [input] })
    const run = await processor.next()
    const shown = await get<RunInput>(`/v1/tasks/runs/${run.task.run_id}/input`)

    expect(run.task).toEqual({
      run_id: added.body.run_ids[0],
      input,
      context: [{ question: 'before', answer: 'Answer to before' }],
      report: expect.any(Function),
    })
    expect(JSON.stringify(shown.body)).not.toContain('credential')
    expect(shown.body).toMatchObject({ ...input, mcp_servers: [{ name: 'tools', allowed_tools: ['look'] }] })
  })

  it('applies the default task spec, which an input overrides', async () => {
    const processor = new HeldProcessor()
    const { group, post } = await running({ processor })
    await post(`/v1/tasks/groups/${await group()}/runs`, {
      default_task_spec: { output_schema: 'the licence' },
      inputs: [{ input: 'one' }, { input: 'two', task_spec: { output_schema: { type: 'auto' } } }],
    })
    const runs = [await processor.next(), await processor.next()]
    expect(runs.map(({ task }) => task.input.task_spec)).toEqual([
      { output_schema: 'the licence' },
      { output_schema: { type: 'auto' } },
    ])
  })

  it('counts the default task spec towards the 25,000 characters', async () => {
    const { group, post } = await running()
    const answer = await post<ValidationErrorResponse>(`/v1/tasks/groups/${await group()}/runs`, {
      default_task_spec: { output_schema: 'x'.repeat(24_990) },
      inputs: [{ input: 'short', task_spec: { output_schema: 'y' } }, { input: 'not so short' }],
    })
    expect(answer.status).toBe(422)
    expect(answer.body.detail.map(({ loc }) => loc)).toEqual([['body', 'inputs', '1', 'input']])
  })

  it('warns of output fields that the basis already has', async () => {
    const { group, get, post } = await running()
    const id = await group()
    const json_schema = { type: 'object', properties: { licence: {}, sources: {}, confidence: {} } }
    const added = await post<AddRunsResponse>(`/v1/tasks/groups/${id}/runs`, {
      inputs: [{ input: 'one', task_spec: { output_schema: { type: 'json', json_schema } } }],
    })
    const run = await get<TaskRun>(`/v1/tasks/groups/${id}/runs/${added.body.run_ids[0]}`)
    expect(run.body.warnings?.map(({ type, detail }) => [type, detail])).toEqual([
      ['spec_validation_warning', { field: 'sources' }],
      ['spec_validation_warning', { field: 'confidence' }],
    ])
  })
})

describe('a run of a group', () => {
  it('is read through its group, and not through another one', async () => {
    const { group, get, add, events } = await running()
    const [one, other] = [await group(), await group()]
    const { run_ids } = await add(one, 'question')
    await events(`/v1/tasks/groups/${one}/events`)

    const run = await get<TaskRun>(`/v1beta/tasks/groups/${one}/runs/${run_ids[0]}`)
    const elsewhere = await get(`/v1/tasks/groups/${other}/runs/${run_ids[0]}`)

    expect(run.body).toEqual({
      run_id: run_ids[0],
      interaction_id: expect.stringMatching(/^intr_/),
      taskgroup_id: one,
      status: 'completed',
      is_active: false,
      warnings: null,
      error: null,
      processor: 'base',
      metadata: {},
      created_at: '2026-01-01T00:00:00.000Z',
      modified_at: '2026-01-01T00:00:00.000Z',
    })
    expect(elsewhere.status).toBe(404)
  })

  it('is counted by its status', async () => {
    const processor = new HeldProcessor()
    const { group, get, add, events } = await running({ processor, concurrency: 2 })
    const id = await group()
    await add(id, 'one', 'two', 'three')
    const runs = [await processor.next(), await processor.next()]
    const during = await get<TaskGroup>(`/v1/tasks/groups/${id}`)
    runs[0]?.complete()
    runs[1]?.fail('no luck')
    const last = await processor.next()
    last.complete()
    await events(`/v1/tasks/groups/${id}/events`)
    const after = await get<TaskGroup>(`/v1/tasks/groups/${id}`)

    expect(during.body.status).toMatchObject({
      task_run_status_counts: { running: 2, queued: 1 },
      is_active: true,
    })
    expect(after.body.status).toMatchObject({
      num_task_runs: 3,
      task_run_status_counts: { completed: 2, failed: 1 },
      is_active: false,
    })
  })

  it('are limited by the concurrency of the service', async () => {
    const processor = new HeldProcessor()
    const { group, get, add } = await running({ processor, concurrency: 2 })
    const id = await group()
    await add(id, 'one', 'two', 'three', 'four')
    const first = await processor.next()
    await processor.next()
    await get(`/v1/tasks/groups/${id}`)
    expect(processor.waiting).toBe(0)
    first.complete()
    const third = await processor.next()
    expect(third.task.input.input).toBe('three')
  })
})
