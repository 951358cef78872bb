import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as fc from 'fast-check'
import { asyncScheduler } from 'rxjs'
import type { Observable, SchedulerAction, SchedulerLike } from 'rxjs'
import { AnswerSchemaError, createClient, OutputSchemaError, RequestError } from 'rivulet'
import type { ChatRequest, FindAllRequest, ResearchClient } from 'rivulet'
import { createWebhookReceiver, signedRequest } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { answer, serve } from '../support/serve.ts'

/** Number of responses before the server rejects the key, which ends every source. */
const MAX_RESPONSES = 20

const time = '2026-01-02T03:04:05Z'
const output = { type: 'text', content: 'c', basis: [{ field: 'output', reasoning: 'r', citations: [] }] }
const run = { run_id: 'r', status: 'completed', is_active: false, processor: 'base', metadata: {} }
const times = { created_at: time, modified_at: time }
const status = {
  num_task_runs: 1,
  task_run_status_counts: { completed: 1 },
  is_active: false,
  status_message: '',
  modified_at: time,
}
const group = { taskgroup_id: 'g', metadata: null, status, created_at: time }
const monitor = {
  type: 'event_stream',
  monitor_id: 'm',
  status: 'active',
  frequency: '1d',
  processor: 'lite',
  created_at: time,
  settings: { query: 'q' },
}
const result = { url: 'https://a.example', title: 't', publish_date: null, excerpts: ['e'] }
const page = {
  events: [
    { event_type: 'event_stream', event_id: 'e2', event_group_id: 'x', event_date: null, output },
    { event_type: 'completion', timestamp: time },
    { event_type: 'error', error_message: 'm', timestamp: time },
    {
      event_type: 'snapshot',
      event_id: 'e1',
      event_group_id: 'x',
      event_date: '2026',
      changed_output: output,
      previous_output: output,
    },
  ],
  next_cursor: 'c',
  warnings: [{ type: 'warning', message: 'w', detail: null }],
}
const findAll = {
  findall_id: 'f',
  status: {
    status: 'completed',
    is_active: false,
    metrics: { generated_candidates_count: 1, matched_candidates_count: 1 },
    termination_reason: 'low_match_rate',
  },
  generator: 'base',
  metadata: {},
  ...times,
}
const candidate = {
  candidate_id: 'c',
  name: 'n',
  url: 'https://a.example',
  description: 'd',
  match_status: 'matched',
  output: { a: { value: 'v', type: 'match_condition', is_matched: true } },
  basis: [],
}
const findAllSchema = {
  objective: 'o',
  entity_type: 'e',
  match_conditions: [{ name: 'a', description: 'd' }],
  enrichments: null,
  generator: 'base',
  match_limit: 5,
}
const extracted = {
  url: 'https://a.example',
  title: 't',
  publish_date: null,
  excerpts: ['e'],
  full_content: null,
}
const extraction = {
  extract_id: 'x',
  results: [extracted],
  errors: [{ url: 'u', error_type: 'fetch_error', http_status_code: 404, content: null }],
}
const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'speed',
  choices: [{ index: 0, message: { role: 'assistant', content: '{"name":"n"}' }, finish_reason: 'stop' }],
}
const chunk = {
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'speed',
  choices: [{ index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null }],
}
const answered = {
  id: 'resp',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [
    {
      id: 'msg',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: '{"name":"n"}', annotations: [] }],
    },
  ],
}
const delta = {
  type: 'response.output_text.delta',
  item_id: 'msg',
  output_index: 0,
  content_index: 0,
  delta: 'a',
}
const progress = {
  type: 'task_run.progress_stats',
  source_stats: { num_sources_considered: 1, num_sources_read: 1, sources_read_sample: ['u'] },
  progress_meter: 50,
}
const runEvent = {
  type: 'task_run.state',
  event_id: '1',
  run: { ...run, ...times },
  input: { input: 'i', metadata: {} },
  output,
}
const statusEvent = { type: 'task_group_status', event_id: '2', status }
const errorEvent = { type: 'error', error: { ref_id: 'r', message: 'm' } }

/** The valid response to the request. */
function validResponse({ method, url = '' }: IncomingMessage): unknown {
  const path = url.split('?')[0] ?? ''
  if (path.endsWith('/search')) return { search_id: 's', results: [result], warnings: null }
  if (path.endsWith('/extract')) return extraction
  if (path.endsWith('/chat/completions')) return completion
  if (path.endsWith('/responses')) return answered
  if (path.includes('/findall/')) return validFindAll(path)
  if (path.endsWith('/memory/retrieve')) return { results: memories }
  if (path.endsWith('/input')) return { input: 'i', processor: 'base' }
  if (/\/tasks\/runs(\/r)?$/.test(path)) return { ...run, ...times }
  if (path.endsWith('/result')) return { run: { ...run, ...times }, output }
  if (path.endsWith('/events')) return page
  if (path === '/v1/monitors' && method === 'GET') return { monitors: [monitor], next_cursor: null }
  if (path.startsWith('/v1/monitors')) return monitor
  return path.endsWith('/runs') ? { status, run_ids: ['r'], run_cursor: '', event_cursor: '' } : group
}

function validFindAll(path: string): unknown {
  if (path.endsWith('/entity-search')) {
    return { entity_set_id: 's', entities: [{ name: 'n', url: 'https://a.example', description: 'd' }] }
  }
  if (path.endsWith('/result')) return { run: findAll, candidates: [candidate], last_event_id: 'f:1' }
  return /\/(ingest|extend|enrich|schema)$/.test(path) ? findAllSchema : findAll
}

const remembered = { id: 'i', input_excerpt: 'q', updated_at: time }
const memories: readonly unknown[] = [
  { ...remembered, kind: 'task', output_excerpt: 'o' },
  {
    ...remembered,
    kind: 'monitor',
    status: 'active',
    matched_events: [{ event_id: 'e', event_group_id: 'x', detected_at: time, excerpt: 'e' }],
  },
  { ...remembered, kind: 'findall', matched_count: 1 },
]

const webhooks: readonly unknown[] = [
  { type: 'task_run.status', timestamp: time, data: { ...run, ...times } },
  ...['event.detected', 'execution.completed', 'execution.failed'].map((type) => ({
    type: `monitor.${type}`,
    timestamp: time,
    data: { monitor_id: 'm', event: { event_group_id: 'x', timestamp: time, error_message: 'm' } },
  })),
]

/** Values that break a program which does not check them. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown[]>(null, '', ' ', 0, -1, 1e308, true, [], {}, '\ud800', '..', 'x'.repeat(5_000)),
  fc.constantFrom<unknown[]>({ toString: 1, valueOf: 1 }, { length: 3 }, [[null]], { __proto__: null }),
  fc.jsonValue({ maxDepth: 2 }),
)

/** Each path in a JSON value, as its keys. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, entry]) => pathsOf(entry, [...path, key]))]
}

/** The value with `change` at the path; undefined removes it. */
function withChange(value: unknown, [key, ...rest]: readonly string[], change: unknown): unknown {
  if (key === undefined) return change
  if (Array.isArray(value))
    return value.map((entry, n) => (String(n) === key ? withChange(entry, rest, change) : entry))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [
      name,
      name === key ? withChange(entry, rest, change) : entry,
    ]),
  )
}

/** Texts that are too large for a counterexample, by name. */
const LARGE: Readonly<Record<string, string>> = {
  '(deep)': `${'[{"run":'.repeat(3_000)}1${'}]'.repeat(3_000)}`,
  '(long page)': JSON.stringify({ ...page, events: Array(500).fill(page.events[0]) }),
  '(long run)': JSON.stringify({ ...runEvent, input: { input: 'x'.repeat(100_000) } }),
}

function textOf(value: unknown): string {
  // JSON.stringify returns undefined for undefined.
  return (typeof value === 'string' ? LARGE[value] : undefined) ?? JSON.stringify(value) ?? ''
}

/** A change at one path of a value, given by its index. */
const change = fc.record({ index: fc.nat(), to: fc.option(junk, { nil: undefined }) })
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never

function changed(value: unknown, { index, to }: Change): unknown {
  const paths = pathsOf(value)
  return withChange(value, paths[index % paths.length] ?? [], to)
}

const mutated = (values: readonly unknown[]) =>
  fc.tuple(fc.constantFrom(...values), change).map(([value, how]) => changed(value, how))
const anything = fc.oneof(junk, fc.constantFrom<unknown[]>(...Object.keys(LARGE)))
const streamMessages = [
  runEvent,
  statusEvent,
  errorEvent,
  progress,
  { type: 'task_run.progress_msg.plan', message: 'm', timestamp: time },
  { type: 'findall.status', timestamp: time, event_id: 'f:2', data: findAll },
  { type: 'findall.candidate.matched', timestamp: time, event_id: 'f:1', data: candidate },
  { type: 'findall.schema.updated', timestamp: time, event_id: 'f:3', data: findAllSchema },
  chunk,
  { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  {
    type: 'response.created',
    sequence_number: 0,
    response: { ...answered, status: 'in_progress', output: [] },
  },
  delta,
  { type: 'response.completed', sequence_number: 9, response: answered },
  {
    type: 'response.failed',
    sequence_number: 9,
    response: { ...answered, status: 'failed', error: { code: 'c', message: 'm' } },
  },
]
const message = fc.record({
  data: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<unknown[]>(...streamMessages) },
    { weight: 3, arbitrary: mutated(streamMessages) },
    { weight: 1, arbitrary: anything },
  ),
  id: fc.option(fc.constantFrom('1', '2', '', ' ', '0')),
})

/** One response of the service. */
const move = fc.record({
  /** The body of a JSON response: the valid one, unchanged or with a change, or another value. */
  json: fc.oneof(
    { weight: 4, arbitrary: fc.constant({}) },
    { weight: 6, arbitrary: fc.record({ change }) },
    { weight: 1, arbitrary: fc.record({ instead: anything }) },
  ),
  messages: fc.array(message, { maxLength: 6 }),
  status: fc.oneof(
    { weight: 12, arbitrary: fc.constant(200) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(201, 202, 204, 206, 301, 304, 400, 402, 403, 404, 409, 422, 429, 500, 503),
    },
  ),
  type: fc.oneof(
    { weight: 20, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom('text/html', 'application/json', 'text/event-stream', '') },
  ),
  /** Number of characters before the connection breaks; undefined for none. */
  cut: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat(400) }),
})
type Move = typeof move extends fc.Arbitrary<infer Value> ? Value : never

function play(how: Move, request: IncomingMessage, response: ServerResponse) {
  const { json, messages, status: code, type, cut } = how
  const isStream = request.headers.accept === 'text/event-stream'
  const body = 'instead' in json ? json.instead : validResponse(request)
  const text = isStream
    ? messages.map(({ data, id }) => `${id === null ? '' : `id: ${id}\n`}data: ${textOf(data)}\n\n`).join('')
    : textOf('change' in json ? changed(body, json.change) : body)
  const contentType = type ?? (isStream ? 'text/event-stream' : 'application/json')
  response.writeHead(code, { 'content-type': contentType })
  if (cut === undefined) return response.end(text)
  return response.write(` ${text.slice(0, cut)}`, () => response.destroy())
}

/** Runs everything in the next turn of the event loop, without a delay. */
const inTurn: SchedulerLike = asyncScheduler
const withoutDelay: SchedulerLike = {
  now: () => inTurn.now(),
  schedule<T>(work: (this: SchedulerAction<T>, state: T) => void, _delay?: number, state?: T) {
    return inTurn.schedule(work, 0, state as T)
  },
}

const inputs = [{ input: 'i' }]
const task = { input: 'i', processor: 'base' }
const found: FindAllRequest = {
  objective: 'o',
  entity_type: 'e',
  match_conditions: [{ name: 'a', description: 'd' }],
  generator: 'base',
  match_limit: 5,
}
const chat: ChatRequest = { model: 'speed', messages: [{ role: 'user', content: 'q' }] }
const question = { model: 'm', input: 'q' }
const Answer = z.object({ name: z.string() })
const sources: Readonly<
  Record<string, (client: ResearchClient, receiver: WebhookReceiver) => Observable<unknown>>
> = {
  search: (client) => client.search({ search_queries: ['q'] }),
  'search.each': (client) => client.search.each(['q', 'r']),
  searchBeta: (client) => client.searchBeta({ objective: 'o' }),
  'monitors.events': (client) => client.monitors.events('m', { include_completions: true }),
  'monitors.follow': (client) => client.monitors.follow('m', { after: 'e1' }),
  'monitors.create': (client) =>
    client.monitors.create({ type: 'event_stream', frequency: '1d', settings: { query: 'q' } }),
  'monitors.update': (client) => client.monitors.update('m', { frequency: '2d' }),
  'monitors.snapshots': (client) => client.monitors.snapshots('m'),
  'monitors.get': (client) => client.monitors.get('m'),
  'monitors.list': (client) => client.monitors.list(),
  'monitors.cancel': (client) => client.monitors.cancel('m'),
  'monitors.trigger': (client) => client.monitors.trigger('m'),
  'taskGroups.create': (client) => client.taskGroups.create(),
  'taskGroups.get': (client) => client.taskGroups.get('g'),
  'taskGroups.addRuns': (client) => client.taskGroups.addRuns('g', { inputs }),
  'taskGroups.addRuns, exactly once': (client) =>
    client.taskGroups.addRuns('g', { inputs }, { exactlyOnce: true, settleDelay: 0 }),
  'taskGroups.execute': (client) => client.taskGroups.execute('g', inputs, { retryFailed: 1 }),
  'taskGroups.execute, exactly once': (client) =>
    client.taskGroups.execute('g', inputs, { exactlyOnce: true, settleDelay: 0 }),
  'taskGroups.retry': (client) => client.taskGroups.retry('g', { settleDelay: 0 }),
  'taskGroups.retry, exactly once': (client) =>
    client.taskGroups.retry('g', { exactlyOnce: true, settleDelay: 0, mcpHeaders: () => ({}) }),
  'taskGroups.errors': (client) => client.taskGroups.errors('g'),
  'taskGroups.runs': (client) => client.taskGroups.runs('g', { include_output: true }),
  'taskGroups.runs, with a schema': (client) => client.taskGroups.runs('g', { schema: Answer }),
  'taskGroups.events': (client) => client.taskGroups.events('g'),
  'taskGroups.progress': (client) => client.taskGroups.progress('g'),
  watch: (client) => client.watch({ monitors: ['m'], taskGroups: ['g'] }),
  'watch.positioned': (client) => client.watch.positioned({ monitors: ['m'], taskGroups: ['g'] }),
  'watch with webhooks': (client, receiver) =>
    client.watch({ monitors: ['m'], taskGroups: ['g'], webhooks: receiver, hold: 0 }),
  'tasks.create': (client) => client.tasks.create(task),
  'tasks.get': (client) => client.tasks.get('r'),
  'tasks.input': (client) => client.tasks.input('r'),
  'tasks.result': (client) => client.tasks.result('r'),
  'tasks.result, with a schema': (client) => client.tasks.result('r', { schema: Answer }),
  'tasks.events': (client) => client.tasks.events('r'),
  'tasks.run': (client) => client.tasks.run(task),
  'taskGroups.getRun': (client) => client.taskGroups.getRun('g', 'r'),
  'findAll.ingest': (client) => client.findAll.ingest({ objective: 'o' }),
  'findAll.create': (client) => client.findAll.create(found),
  'findAll.get': (client) => client.findAll.get('f'),
  'findAll.cancel': (client) => client.findAll.cancel('f'),
  'findAll.extend': (client) => client.findAll.extend('f', { additional_match_limit: 5 }),
  'findAll.enrich': (client) =>
    client.findAll.enrich('f', { output_schema: { type: 'json', json_schema: { type: 'object' } } }),
  'findAll.schema': (client) => client.findAll.schema('f'),
  'findAll.result': (client) => client.findAll.result('f'),
  'findAll.events': (client) => client.findAll.events('f'),
  'findAll.run': (client) => client.findAll.run(found),
  'findAll.run of an objective': (client) => client.findAll.run('o'),
  'findAll.entitySearch': (client) => client.findAll.entitySearch('o', { entity_type: 'people' }),
  'memory.retrieve': (client) => client.memory.retrieve({ query: 'q' }),
  'memory.follow': (client) => client.memory.follow({ query: 'q' }),
  'memory.evict': (client) => client.memory.evict({ kind: 'task', id: 'i' }),
  'memory.clear': (client) => client.memory.clear(),
  extract: (client) => client.extract({ urls: ['https://a.example'] }),
  'chat.complete': (client) => client.chat.complete(chat),
  'chat.complete, with a schema': (client) => client.chat.complete(chat, { schema: Answer }),
  'chat.stream': (client) => client.chat.stream(chat),
  'responses.create': (client) => client.responses.create(question),
  'responses.create, with a schema': (client) => client.responses.create(question, { schema: Answer }),
  'responses.stream': (client) => client.responses.stream(question),
  get: (client) => client.get('/v1/anything'),
  post: (client) => client.post('/v1/anything', {}),
  stream: (client) => client.stream('/v1/anything'),
}

/** The errors of a service, and those of a caller's schema. */
const TYPED = [RequestError, AnswerSchemaError, OutputSchemaError]

/** Uncaught errors and unhandled rejections. */
const uncaught: unknown[] = []
const record = (error: unknown) => void uncaught.push(error)
beforeEach(() => {
  process.on('uncaughtException', record).on('unhandledRejection', record)
})
afterEach(() => {
  process.off('uncaughtException', record).off('unhandledRejection', record)
})

/** Resolves to the error of a source, or undefined when it completes. */
function endOf(source: Observable<unknown>): Promise<unknown> {
  return new Promise((resolve) => {
    source.subscribe({ error: resolve, complete: () => resolve(undefined) })
  })
}

/** RxJS rethrows an unhandled error in a timer, and Node reports an unhandled rejection after the microtasks. */
async function reported(): Promise<void> {
  await new Promise((resolve) => asyncScheduler.schedule(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}

describe('for any response of a service', () => {
  it('every call of the table of endpoints has a row', () => {
    const text = readFileSync(new URL('../../docs/reference/wire.md', import.meta.url), 'utf8')
    const table = text.split('## All endpoints')[1] ?? ''
    const cells = table.split('\n').map((line) => line.split('|')[3] ?? '')
    const calls = cells.flatMap((cell) => [...cell.matchAll(/`([\w.]+)`/g)].map(([, call = '']) => call))
    const tested = new Set(Object.keys(sources).map((name) => name.split(/[ ,]/)[0]))

    expect(calls.length).toBeGreaterThan(20)
    // `record` needs a log, and has the sources of `watch`.
    expect(calls.filter((call) => call !== 'record' && !tested.has(call))).toEqual([])
  })

  it.each(Object.entries(sources))('%s ends in values, completion or a typed error', async (_name, open) => {
    let moves: readonly Move[] = []
    let asked = 0
    const baseUrl = await serve((request, response) => {
      const next = moves[asked % moves.length]
      asked += 1
      request.resume()
      if (next === undefined || asked > MAX_RESPONSES) return answer(response, {}, 401)
      return void play(next, request, response)
    })

    const arbitraryMoves = fc.array(move, { minLength: 1, maxLength: 6 })
    const payloads = fc.array(fc.oneof(mutated(webhooks), fc.constantFrom(...webhooks)), { maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(arbitraryMoves, payloads, async (given, posted) => {
        moves = given
        asked = 0
        uncaught.length = 0
        const client = createClient({
          baseUrl,
          apiKey: 'key',
          retries: 1,
          quotas: false,
          scheduler: withoutDelay,
        })
        const secrets = 'whsec'
        const receiver = createWebhookReceiver({ secrets })
        for (const payload of posted) {
          if (typeof payload === 'object' && payload !== null)
            await receiver.handle(await signedRequest('http://localhost/', payload, { secrets }))
        }

        const end = await endOf(open(client, receiver))
        receiver.close()
        await reported()

        expect(uncaught).toEqual([])
        expect(end ?? 'complete').toSatisfy(
          (how) => how === 'complete' || TYPED.some((type) => how instanceof type),
        )
      }),
      { numRuns: 50, timeout: 30_000, interruptAfterTimeLimit: 12_000 },
    )
  })
})
