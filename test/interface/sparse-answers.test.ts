import type { IncomingMessage, ServerResponse } from 'node:http'
import type * as Monitors from 'parallel-web/resources/monitor'
import type * as Groups from 'parallel-web/resources/task-group'
import type * as Runs from 'parallel-web/resources/task-run'
import type * as Top from 'parallel-web/resources/top-level'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { all } from '../e2e/research.ts'
import { answer, openStream, serve } from '../support/serve.ts'

/** The fields of an SDK type without the methods of its resource. */
type Sent<T> = { [Name in keyof T as T[Name] extends (...args: never) => unknown ? never : Name]: T[Name] }

// The compiler checks these responses against the SDK's types. Every nullable field is null, and every optional field is
// absent.

const run: Sent<Runs.TaskRun> = {
  run_id: 'r1',
  interaction_id: 'i1',
  status: 'completed',
  is_active: false,
  processor: 'base',
  created_at: null,
  modified_at: null,
}
const status: Groups.TaskGroupStatus = {
  num_task_runs: 1,
  task_run_status_counts: { completed: 1 },
  is_active: false,
  status_message: null,
  modified_at: null,
}
const group: Sent<Groups.TaskGroup> = { taskgroup_id: 'g', status, created_at: null }
const added: Groups.TaskGroupRunResponse = { run_ids: ['r1'], status, run_cursor: null, event_cursor: null }
const statusEvent: Groups.TaskGroupStatusEvent = { type: 'task_group_status', event_id: 'e1', status }
const runEvent: Omit<Runs.TaskRunEvent, 'run'> & { run: Sent<Runs.TaskRun> } = {
  type: 'task_run.state',
  event_id: null,
  run,
}
const errorEvent: Runs.ErrorEvent = { type: 'error', error: { ref_id: 'x', message: 'oh' } }
const output: Runs.TaskRunTextOutput = {
  type: 'text',
  content: 'c',
  basis: [{ field: 'output', reasoning: '' }],
}
const monitor: Monitors.Monitor = {
  monitor_id: 'm',
  type: 'event_stream',
  status: 'active',
  frequency: '1d',
  processor: 'lite',
  settings: { query: 'q' },
  created_at: '2026-05-01T00:00:00Z',
}
const change = { event_group_id: 'x', event_date: null } as const
const monitorEvents: Monitors.PaginatedMonitorEvents = {
  events: [
    { ...change, event_id: 'm3', output } satisfies Monitors.MonitorEventStreamEvent,
    {
      ...change,
      event_id: 'm2',
      changed_output: output,
      previous_output: output,
    } satisfies Monitors.MonitorSnapshotEvent,
    { timestamp: '2026-05-02T00:00:00Z' } satisfies Monitors.MonitorCompletionEvent,
    { timestamp: '2026-05-01T00:00:00Z', error_message: 'oh' } satisfies Monitors.MonitorErrorEvent,
  ],
  next_cursor: null,
  warnings: null,
}
const found: Top.SearchResult = {
  search_id: 's',
  session_id: 's',
  results: [{ url: 'https://x.org', excerpts: [] }],
}

const extracted: Top.ExtractResponse = {
  extract_id: 'x',
  session_id: 's',
  results: [{ url: 'https://x.org', excerpts: [], title: null, publish_date: null, full_content: null }],
  errors: [{ url: 'https://y.org', error_type: 'new_kind', http_status_code: null, content: null }],
}

/** Server-sent events without any field that the format does not need. */
function stream(response: ServerResponse, events: readonly object[]): void {
  openStream(response)
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
}

function service(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  const isPost = request.method === 'POST'
  request.resume()
  if (pathname === '/v1/search') answer(response, found)
  else if (pathname === '/v1/extract') answer(response, extracted)
  else if (pathname === '/v1/monitors')
    answer(response, { monitors: [monitor] } satisfies Monitors.PaginatedMonitorResponse)
  else if (pathname === '/v1/monitors/m/events') answer(response, monitorEvents)
  else if (pathname.startsWith('/v1/monitors/')) answer(response, monitor)
  else if (pathname.endsWith('/events')) stream(response, [statusEvent, runEvent, errorEvent, statusEvent])
  else if (pathname.endsWith('/runs') && isPost) answer(response, added)
  else if (pathname.endsWith('/runs')) stream(response, [{ ...runEvent, output }])
  else answer(response, group)
}

async function client(): Promise<ResearchClient> {
  return createClient({ baseUrl: await serve(service), apiKey: 'key', initialDelay: 0 })
}

const types = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type)

describe("responses with only the fields that the SDK's types require", () => {
  it('are passed on where they are emitted unchanged', async () => {
    const { search, extract, monitors, taskGroups } = await client()

    await expect(all(search({ search_queries: ['x'] }))).resolves.toEqual([found])
    await expect(all(extract({ urls: ['https://x.org'] }))).resolves.toEqual([extracted])
    await expect(all(monitors.get('m'))).resolves.toEqual([monitor])
    await expect(all(taskGroups.get('g'))).resolves.toEqual([group])
    await expect(all(taskGroups.addRuns('g', { inputs: [{ input: 'x' }] }))).resolves.toEqual([added])
  })

  it('become events of their types in the list of a monitor', async () => {
    const { monitors } = await client()

    const events = await all(monitors.events('m', { include_completions: true }))

    expect(types(events)).toEqual([
      'monitor.event_stream',
      'monitor.snapshot',
      'monitor.completion',
      'monitor.error',
    ])
    expect(new Set(events.map(({ id }) => id)).size).toBe(4)
  })

  it("become events of their types in a group's streams, which complete", async () => {
    const { taskGroups } = await client()

    const runs = await all(taskGroups.runs('g', { include_output: true }))
    const events = await all(taskGroups.events('g'))

    expect(runs).toMatchObject([{ type: 'task_run.state', time: null, data: { run, output } }])
    expect(new Set(types(events))).toEqual(new Set(['task_group.status', 'task_run.state', 'error']))
  })

  it('are enough for execute', async () => {
    const { taskGroups } = await client()

    await expect(all(taskGroups.execute('g', [{ input: 'x' }]))).resolves.toMatchObject([
      { index: 0, run: { run_id: 'r1' }, output },
    ])
  })
})
