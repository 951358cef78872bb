import { describe, expect, it, vi } from 'vitest'
import { FIND_ALL_BETA, MEMORY_BETA, WEBHOOK_BETA } from '../../../src/protocol/betas.ts'
import type { FindAllRun } from '../../../src/protocol/find-all.ts'
import type { SearchResponse } from '../../../src/protocol/search.ts'
import type { ObjectShape, Shape } from '../../../src/protocol/requests/schema.ts'
import type { Endpoint } from '../../../src/service/openapi/endpoint.ts'
import { ENDPOINTS } from '../../../src/service/openapi/endpoints.ts'
import { type Caller, running } from '../running.ts'

/** Syntax of SQL, of FTS5, of globs and of paths. */
const HOSTILE = [
  `tides'; DROP TABLE task_runs; DELETE FROM documents; --`,
  `tides" OR 1=1 NEAR/0 (* AND title:x ^ - {`,
  `tides*) OR rowid MATCH "x' UNION SELECT 1 --`,
  `tides' || char(0) || %_\\ \u0000 ../../etc/passwd`,
]
/** One of them is valid for each string that a request must have. No server listens at the URL. */
const VALUES = ['base', 'http://127.0.0.1:9/', '1d', '2025-01-01']
/** Replaced with the id of a completed run. */
const RUN = 'the-completed-run'
/** Replaced with a new name in each request. */
const NAME = 'the-new-field'
const headers = { 'service-beta': `${FIND_ALL_BETA},${MEMORY_BETA},${WEBHOOK_BETA}` }
/** The strings with a fixed form, by the end of their path. Any other takes each text. */
const FIXED = new RegExp(
  [
    String.raw`\.(?:mode|after_date|location|type|role|frequency|generator|effort|kind|since|cursor|last_event_id|status)`,
    String.raw`\.(?:include_domains|exclude_domains|event_types|urls|type|status)\[\]`,
    String.raw`_(?:run|interaction|response)_id`,
    String.raw`(?:<event_stream>|<snapshot>)\.processor`,
    String.raw`completions\.model`,
    String.raw`entity-search\.entity_type`,
  ]
    .map((end) => `${end}$`)
    .join('|'),
)
/** A string of a request: its path, and a valid request in which it is a given text. */
interface Field {
  readonly path: string
  with(text: string): unknown
}

/** A valid value, without what is optional. */
function valid(shape: Shape): unknown {
  switch (shape.kind) {
    case 'text':
      return VALUES.find((value) => shape.fits?.(value) !== false)
    case 'number':
      return shape.isMinExcluded === true ? shape.min + 1 : shape.min
    case 'boolean':
      return true
    case 'unknown':
      return 'base'
    case 'choice':
      // Only a message of the user is a question.
      return shape.values.find((value) => value === 'user') ?? shape.values[0]
    case 'list':
      return [valid(shape.item)]
    case 'record':
      return {}
    case 'json':
      return shape.role === 'schema' ? schemaOf(NAME) : {}
    case 'either':
      return valid(shape.simple)
    case 'nullable':
    case 'defaulted':
      return valid(shape.value)
    case 'object': {
      const parts = { ...shape.required, ...(shape.anyOf && firstOf(shape, shape.anyOf.names)) }
      return Object.fromEntries(
        Object.entries(parts).map(([name, part]) => [name, name === 'task_run_id' ? RUN : valid(part)]),
      )
    }
    case 'variants': {
      const [[type, variant] = ['', undefined]] = Object.entries(shape.variants)
      return { type, ...Object(variant && valid(variant)) }
    }
  }
}

function firstOf({ optional }: ObjectShape, names: readonly string[]): Record<string, Shape> {
  return Object.fromEntries(Object.entries(optional).filter(([name]) => name === names[0]))
}

function schemaOf(text: string) {
  const properties = { [text]: { type: ['string', 'null'], description: text, enum: [text, null] } }
  return { type: 'object', description: text, properties }
}

/** Each string of a request. */
function fields(shape: Shape): Field[] {
  switch (shape.kind) {
    case 'text':
    case 'choice':
    case 'unknown':
      return shape.kind === 'text' && shape.format === 'uri'
        ? [{ path: '', with: (text) => `http://127.0.0.1:9/${encodeURI(text)}` }]
        : [{ path: '', with: (text) => text }]
    case 'number':
    case 'boolean':
      return []
    case 'list':
      return within('[]', fields(shape.item), (value) => [value])
    case 'record':
      return [{ path: '{}', with: (text) => ({ [text.slice(0, 16)]: text }) }]
    case 'json':
      return [{ path: '{}', with: (text) => (shape.role === 'schema' ? schemaOf(text) : { [text]: text }) }]
    case 'either':
      return [...fields(shape.simple), ...fields(shape.other)]
    case 'nullable':
    case 'defaulted':
      return fields(shape.value)
    case 'object': {
      const base = Object(valid(shape))
      return Object.entries({ ...shape.required, ...shape.optional }).flatMap(([name, part]) =>
        within(`.${name}`, fields(part), (value) => ({ ...base, [name]: value })),
      )
    }
    case 'variants':
      return Object.entries(shape.variants).flatMap(([type, variant]) =>
        within(`<${type}>`, fields(variant), (value) => ({ type, ...Object(value) })),
      )
  }
}

function within(path: string, inner: readonly Field[], wrap: (value: unknown) => unknown): Field[] {
  return inner.map((field) => ({ path: path + field.path, with: (text) => wrap(field.with(text)) }))
}

/** A service with something of each kind, and their ids by the parameters of paths. */
async function inhabited() {
  const onError = vi.fn<(error: unknown) => void>()
  const caller = await running({ quotas: false, onError, processor: undefined })
  const { post, group, add } = caller
  const taskgroup_id = await group()
  const { run_ids } = await add(taskgroup_id, 'What are tides?')
  const of = async (path: string, body: unknown) => Object((await post(path, body, headers)).body)
  const { monitor_id } = await of('/v1/monitors', {
    type: 'event_stream',
    frequency: '1d',
    settings: { query: 'tides' },
  })
  const findall_id = await findAll(caller)
  await settled(caller)
  return { caller, onError, ids: { taskgroup_id, run_id: run_ids[0] ?? '', monitor_id, findall_id } }
}

/** Creates a FindAll run and returns its id. */
async function findAll({ post }: Caller): Promise<string> {
  const { body } = await post<FindAllRun>(
    '/v1beta/findall/runs',
    {
      objective: 'Find tides',
      entity_type: 'tides',
      match_conditions: [{ name: 'sea', description: 'The moon pulls at the sea' }],
      generator: 'base',
      match_limit: 5,
    },
    headers,
  )
  return body.findall_id
}

/** Resolves when all runs are over. */
async function settled({ service }: Caller): Promise<void> {
  const areOver = () => service.records().runs.every(({ status }) => /completed|failed/.test(status))
  await vi.waitUntil(areOver, { timeout: 10_000 })
}

let names = 0

async function send(
  caller: Caller,
  { method, path }: Endpoint,
  ids: Readonly<Record<string, string>>,
  request: unknown,
): Promise<number> {
  const at = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? name)
  names += 1
  const body = JSON.stringify(request)
    .replaceAll(RUN, ids['run_id'] ?? '')
    .replaceAll(NAME, `field_${names}`)
  if (method === 'POST') return (await caller.post(at, body, headers)).status
  const pairs = Object.entries<unknown>(JSON.parse(body)).map(([name, value]) => [name, String(value)])
  const response = await fetch(`${caller.url}${at}?${new URLSearchParams(pairs).toString()}`, {
    headers: { ...headers, 'x-api-key': caller.service.apiKey },
  })
  await response.body?.cancel()
  return response.status
}

const rows = ENDPOINTS.flatMap((endpoint) =>
  [endpoint.body?.schema, endpoint.query].flatMap((shape) => {
    const own = shape === undefined ? [] : fields(shape)
    return own.length === 0 ? [] : [[`${endpoint.method} ${endpoint.path}`, endpoint, own] as const]
  }),
)

describe.each(rows)('%s', (_, endpoint, own) => {
  it('takes syntax of SQL, of the index and of paths in each string as text, and loses nothing', async () => {
    const { caller, ids, onError } = await inhabited()
    const refused: string[] = []
    const unsound: string[] = []
    for (const { path, with: requestWith } of own) {
      // A run has a limited number of enrichments.
      const findall_id = endpoint.path.endsWith('enrich') ? await findAll(caller) : ids.findall_id
      for (const text of HOSTILE) {
        const status = await send(caller, endpoint, { ...ids, findall_id }, requestWith(text))
        if (status === 404 || status === 422) refused.push(path)
        else if (status > 204) unsound.push(`${path}: ${status}`)
      }
    }
    await settled(caller)
    const { body } = await caller.post<SearchResponse>('/v1/search', { search_queries: ['tides'] })

    expect(unsound).toEqual([])
    expect([...new Set(refused)]).toEqual(
      own.map(({ path }) => path).filter((path) => FIXED.test(endpoint.path + path)),
    )
    expect(onError.mock.calls).toEqual([])
    expect(body.results.map(({ title }) => title)).toContain('Tides')
    expect((await caller.get(`/v1/tasks/runs/${ids.run_id}`)).status).toBe(200)
    expect((await caller.get(`/v1/monitors/${ids.monitor_id}`)).status).toBe(200)
    expect((await caller.get(`/v1beta/findall/runs/${ids.findall_id}`, headers)).status).toBe(200)
  })
})
