import { answer, openStream, serve, sse } from '../support/serve.ts'

/** A request, normalized so that clients can be compared. */
export interface RecordedRequest {
  readonly method: string
  readonly path: string
  /** Sorted by name and value. */
  readonly query: readonly (readonly [string, string])[]
  /** Undefined where the request has none. */
  readonly body: unknown
  readonly key: string | undefined
  /** The value of `parallel-beta`. */
  readonly beta: string | undefined
  readonly accept: string | undefined
}

/** A server that records its requests. */
export interface RecordingService {
  readonly baseUrl: string
  readonly requests: RecordedRequest[]
  /** Resolves when the recorded requests satisfy this. */
  until(isTrue: () => boolean): Promise<void>
}

const status = {
  num_task_runs: 1,
  task_run_status_counts: { completed: 1 },
  is_active: false,
  status_message: null,
  modified_at: null,
}
const group = { taskgroup_id: 'g', status, created_at: null }
const monitor = { monitor_id: 'm', type: 'event_stream', status: 'active', settings: { query: 'x' } }
const run = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }
const runEvent = { type: 'task_run.state', event_id: 'r1', run }
const statusEvent = { type: 'task_group_status', event_id: 'e1', status }

const findAll = {
  findall_id: 'f',
  generator: 'base',
  objective: 'x',
  entity_type: 'x',
  match_conditions: [{ name: 'x', description: 'x' }],
  status: {
    status: 'completed',
    is_active: false,
    metrics: { generated_candidates_count: 0, matched_candidates_count: 0 },
  },
  candidates: [],
}
const entities = { entity_set_id: 's', entities: [] }

const findAllEvent = { type: 'findall.status', event_id: 'f1', timestamp: '', data: findAll }

/** A minimal response for each endpoint, in the shapes of the public service's SDK. */
function answerTo(method: string, path: string): object {
  if (path === '/v1beta/memory/retrieve') return { results: [] }
  if (path === '/v1beta/findall/entity-search') return entities
  if (path.startsWith('/v1beta/findall/'))
    return path.endsWith('/result') ? { ...findAll, run: findAll } : findAll
  if (path.endsWith('/search')) return { search_id: 's', session_id: 's', results: [] }
  if (path === '/v1/monitors') return method === 'POST' ? monitor : { monitors: [monitor] }
  if (path.startsWith('/v1/monitors/')) return path.endsWith('/events') ? { events: [] } : monitor
  if (path === '/v1/tasks/runs') return run
  if (path.endsWith('/input')) return { input: 'x', processor: 'base' }
  if (/\/runs\/\w+$/.test(path)) return { ...run, run_id: path.split('/').at(-1) }
  if (path.endsWith('/result')) return { run, output: { type: 'text', content: '', basis: [] } }
  if (path.endsWith('/runs')) return { status, run_ids: ['r'], run_cursor: null, event_cursor: null }
  return path.endsWith(FAILED) ? { ...group, status: failedStatus } : group
}

/** A group of this id has a run that failed. */
const FAILED = 'failed'
const failedEvent = { ...runEvent, run: { ...run, status: 'failed' }, input: { input: 'x' } }
const failedStatus = { ...status, task_run_status_counts: { failed: 1 } }

function streamedBy(path: string) {
  if (path.includes(`/groups/${FAILED}/`)) return failedEvent
  if (path.startsWith('/v1beta/findall/')) return findAllEvent
  return path.includes('/groups/') && path.endsWith('/events') ? statusEvent : runEvent
}

/** Starts a {@link RecordingService}, which stops when the test ends. */
export async function recordingService(): Promise<RecordingService> {
  const requests: RecordedRequest[] = []
  const waiting = new Set<() => void>()
  const baseUrl = await serve((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => (text += part))
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
      const { method = '', headers } = request
      requests.push({
        method,
        path: pathname,
        query: [...searchParams].toSorted((a, b) => a.join('=').localeCompare(b.join('='))),
        body: text === '' ? undefined : JSON.parse(text),
        key: headers['x-api-key']?.toString(),
        beta: headers['parallel-beta']?.toString(),
        accept: headers.accept,
      })
      for (const look of waiting) look()
      if (headers.accept === 'text/event-stream') {
        openStream(response)
        response.end(sse(streamedBy(pathname)))
      } else if (/\/(?:trigger|evict|clear)$/.test(pathname)) response.writeHead(204).end()
      else answer(response, answerTo(method, pathname), pathname === '/v1/monitors' ? 201 : 200)
    })
  })
  return {
    baseUrl,
    requests,
    until: (isTrue) =>
      new Promise((resolve) => {
        const look = () => {
          if (!isTrue()) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
  }
}
