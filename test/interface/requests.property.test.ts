import * as fc from 'fast-check'
import { ArgumentError, createClient } from 'rivulet'
import type { ErrorResponse } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { FIND_ALL_BETA, MEMORY_BETA } from '../../src/protocol/betas.ts'
import { addRunsRequest, createGroupRequest } from '../../src/protocol/requests/tasks.ts'
import { groupEventsQuery, groupRunsQuery } from '../../src/protocol/requests/tasks.ts'
import { entitySearchRequest } from '../../src/protocol/requests/find-all.ts'
import {
  memoryClearRequest,
  memoryEvictRequest,
  memoryRetrieveRequest,
} from '../../src/protocol/requests/memory.ts'
import { createMonitorRequest, updateMonitorRequest } from '../../src/protocol/requests/monitors.ts'
import { listMonitorsQuery, monitorEventsQuery } from '../../src/protocol/requests/monitors.ts'
import { holdsOneOf } from '../../src/protocol/requests/schema.ts'
import type { ObjectShape, Shape } from '../../src/protocol/requests/schema.ts'
import { extractRequest } from '../../src/protocol/requests/extract.ts'
import { searchBetaRequest, searchRequest } from '../../src/protocol/requests/search.ts'
import { querySchema } from '../../src/service/http/request-schema.ts'
import { type Caller, running } from '../service/running.ts'

// Requests are made from the schemas, so the compiler cannot know their types.
// oxlint-disable-next-line typescript/no-explicit-any
type Untyped = any

const client: Untyped = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })

interface Endpoint {
  readonly schema: Shape
  /** Calls the client, which sends nothing before it is subscribed. */
  readonly call: (request: unknown) => unknown
  /** Whether both sides accept a request that follows the schema. Default: they do. */
  readonly holds?: (request: unknown) => boolean
  readonly path: (service: Caller) => string | Promise<string>
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  extract: { schema: extractRequest, call: (request) => client.extract(request), path: () => '/v1/extract' },
  search: { schema: searchRequest, call: (request) => client.search(request), path: () => '/v1/search' },
  'beta search': {
    schema: searchBetaRequest,
    call: (request) => client.searchBeta(request),
    path: () => '/v1beta/search',
  },
  'creating a group': {
    schema: createGroupRequest,
    // Its fields are options, and unknown ones are refused.
    call: (request) => client.taskGroups.create(withoutUnknown(request)),
    path: () => '/v1/tasks/groups',
  },
  'adding runs': {
    schema: addRunsRequest,
    call: (request) => client.taskGroups.addRuns('group', request),
    path: async (service) => `/v1/tasks/groups/${await service.group()}/runs`,
  },
  'creating a monitor': {
    schema: createMonitorRequest,
    call: (request) => client.monitors.create(request),
    path: () => '/v1/monitors',
  },
  'retrieving memories': {
    schema: memoryRetrieveRequest,
    call: (request) => client.memory.retrieve(request),
    path: () => '/v1beta/memory/retrieve',
  },
  'evicting a memory': {
    schema: memoryEvictRequest,
    call: (request) => client.memory.evict(request),
    path: () => '/v1beta/memory/evict',
  },
  'clearing memories': {
    schema: memoryClearRequest,
    // Its fields are options, and unknown ones are refused.
    call: (request) => client.memory.clear(withoutUnknownField(request)),
    path: () => '/v1beta/memory/clear',
  },
  'searching for entities': {
    schema: entitySearchRequest,
    // Its fields but the objective are options, and unknown ones are refused.
    call: (request: Untyped) => {
      const { objective, ...options } = Object(withoutUnknownField(request))
      return client.findAll.entitySearch(objective, options)
    },
    path: () => '/v1beta/findall/entity-search',
  },
  'updating a monitor': {
    schema: updateMonitorRequest,
    // Its fields are options, and unknown ones are refused.
    call: (request) => client.monitors.update('monitor', withoutUnknownField(request)),
    holds: (request: Untyped) =>
      !isWithoutChange(request) && (request.settings === undefined || request.type !== undefined),
    path: async (service) => {
      const { body } = await service.post<{ monitor_id: string }>('/v1/monitors', MONITOR)
      return `/v1/monitors/${body.monitor_id}/update`
    },
  },
}

const MONITOR = { type: 'event_stream', frequency: '1d', settings: { query: 'tides' } }

/** The client refuses an update without a change, and the service changes nothing. */
function isWithoutChange(request: unknown): boolean {
  const known = withoutUnknownField(request)
  return (
    typeof known === 'object' && known !== null && !Array.isArray(known) && Object.keys(known).length === 0
  )
}

function withoutUnknownField(request: Untyped): unknown {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return request
  const { a: _, ...known } = request
  return known
}

const QUERIES: Readonly<Record<string, { schema: ObjectShape; call: (query: unknown) => unknown }>> = {
  'events of a monitor': { schema: monitorEventsQuery, call: (query) => client.monitors.events('m', query) },
  monitors: { schema: listMonitorsQuery, call: (query) => client.monitors.list(query) },
  'events of a group': { schema: groupEventsQuery, call: (query) => client.taskGroups.events('g', query) },
  'runs of a group': { schema: groupRunsQuery, call: (query) => client.taskGroups.runs('g', query) },
}

function withoutUnknown(request: Untyped): unknown {
  return request?.a === undefined ? request : {}
}

/** Each string of a schema accepts at least one of these. Nothing listens at the address. */
const TEXTS = [
  'tides',
  'de',
  '2026-01-02',
  '2026-01-02T00:00:00Z',
  '12h',
  'example.edu',
  'https://127.0.0.1:9/hook',
]
const JSON_SCHEMA = { properties: { text: { type: 'string' } } }
/** Invalid values of a field. */
const JUNK = ['', 'tides', 0, -1, 1.5, 1, true, [], ['tides'], [7], {}, { a: 1 }]

/** Values that both sides accept. */
function valid(shape: Shape): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case 'text':
      return fc.constantFrom(...TEXTS.filter((text) => shape.fits?.(text) ?? true))
    case 'number':
      // An exclusive minimum is 0.
      return fc.integer({ min: shape.isMinExcluded ? 1 : shape.min, max: Math.floor(shape.max ?? 1_000_000) })
    case 'boolean':
      return fc.boolean()
    case 'choice':
      return fc.constantFrom(...shape.values)
    case 'unknown':
      return fc.jsonValue()
    case 'json':
      return shape.role === 'schema' ? fc.constant(JSON_SCHEMA) : fc.dictionary(fc.string(), fc.integer())
    case 'record':
      return fc.dictionary(fc.string({ maxLength: 9 }), valid(shape.value), { maxKeys: 3 })
    case 'list':
      // The client refuses an empty list of inputs.
      return fc.array(valid(shape.item), { minLength: shape.limit === 'runs' ? 1 : shape.min, maxLength: 3 })
    case 'either':
      return fc.oneof(valid(shape.simple), valid(shape.other))
    case 'nullable':
      return fc.option(valid(shape.value))
    case 'defaulted':
      return valid(shape.value)
    case 'object':
      return validObject(shape)
    case 'variants':
      return fc.oneof(
        ...Object.entries(shape.variants)
          // Only the service knows which runs have completed.
          .filter(([type]) => type !== 'snapshot')
          .map(([type, variant]) => validObject(variant).map((value) => Object.assign(value, { type }))),
      )
  }
}

function validObject({ required, optional, anyOf }: ObjectShape): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries({ ...required, ...optional })
    // Only the service knows which interactions there are.
    .filter(([name]) => name !== 'previous_interaction_id')
    .map(([name, shape]) => [name, valid(shape)])
  const record = fc.record<Record<string, unknown>>(Object.fromEntries(fields), {
    requiredKeys: Object.keys(required),
  })
  return anyOf === undefined ? record : record.filter((value) => holdsOneOf(anyOf.names, value))
}

/** Replaces or removes one value of a request, except where the two sides differ. */
function broken(shape: Shape): fc.Arbitrary<unknown> {
  return fc
    .tuple(valid(shape), fc.nat(), fc.option(fc.constantFrom(...JUNK)))
    .map(([request, at, junk]) => {
      const places = placesOf(request)
      const path = places[at % places.length]
      return path === undefined ? (junk ?? 'tides') : changed(request, path, junk)
    })
    .filter((request: Untyped) => request?.inputs?.length !== 0)
}

/** As {@link broken}, without updates that change nothing. */
function brokenFor(schema: Shape): fc.Arbitrary<unknown> {
  const requests = broken(schema)
  return schema === updateMonitorRequest ? requests.filter((request) => !isWithoutChange(request)) : requests
}

function placesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return []
  const places: (readonly string[])[] = []
  for (const [name, member] of Object.entries(value)) {
    const place = path.concat(name)
    // The service has a default for a nested type, so that an empty output schema is `auto`.
    const hasDefault = ['output_schema', 'json_schema', 'event_types'].includes(name)
    const differs = hasDefault || (name === 'type' && path.length > 0)
    if (!differs) places.push(place, ...placesOf(member, place))
  }
  return places
}

/** The value with a replacement at a path, or without the member where that is null. */
function changed(value: Untyped, [name = '', ...rest]: readonly string[], to: unknown): unknown {
  const copy = Array.isArray(value) ? [...value] : { ...value }
  if (rest.length > 0) copy[name] = changed(value[name], rest, to)
  else if (to !== null) copy[name] = to
  else if (Array.isArray(copy)) copy.splice(Number(name), 1)
  else delete copy[name]
  return copy
}

function clientTakes(call: (request: unknown) => unknown, request: unknown): boolean {
  try {
    call(request)
    return true
  } catch (error) {
    if (error instanceof ArgumentError) return false
    throw error
  }
}

const BETAS = { 'service-beta': `${FIND_ALL_BETA}, ${MEMORY_BETA}` }

async function serviceTakes(service: Caller, path: string, request: unknown): Promise<boolean> {
  const { status } = await service.post(path, JSON.stringify(request), BETAS)
  expect([200, 201, 202, 204, 422]).toContain(status)
  return status !== 422
}

const service = () => running({ quotas: false })

describe.each(Object.entries(ENDPOINTS))(
  'the body of %s',
  (_, { schema, call, path, holds = () => true }) => {
    it('is accepted by client and service when it follows the schema', async () => {
      const caller = await service()
      const at = await path(caller)
      await fc.assert(
        fc.asyncProperty(valid(schema).filter(holds), async (request) => {
          expect([clientTakes(call, request), await serviceTakes(caller, at, request)]).toEqual([true, true])
        }),
        { numRuns: 60 },
      )
    })

    it('is accepted by both or refused by both when a value is wrong', async () => {
      const caller = await service()
      const at = await path(caller)
      const outcomes = new Set<boolean>()
      await fc.assert(
        fc.asyncProperty(brokenFor(schema), async (request) => {
          const isTaken = clientTakes(call, request)
          outcomes.add(isTaken)
          expect(await serviceTakes(caller, at, request)).toBe(isTaken)
        }),
        { numRuns: 200 },
      )
      expect(outcomes).toContain(false)
    })
  },
)

describe.each(Object.entries(QUERIES))('the query of %s', (_, { schema, call }) => {
  const written = (query: unknown) =>
    Object.fromEntries(Object.entries(query ?? {}).map(([name, value]) => [name, [value].flat().map(String)]))
  const isTaken = (query: unknown) => querySchema(schema).safeParse(written(query)).success
  const validQuery = validObject(schema).filter(({ timeout }) => timeout !== 0)

  it('is accepted by client and service when it follows the schema', () => {
    fc.assert(
      fc.property(validQuery, (query) => {
        expect([clientTakes(call, query), isTaken(query)]).toEqual([true, true])
      }),
    )
  })

  // All parameters are strings at the service: it cannot distinguish 1 from "1".
  it.each(Object.entries(schema.optional).filter(([, { kind }]) => kind !== 'text'))(
    'is refused by both when %s is wrong',
    (name, { kind }) => {
      const numbers = name === 'timeout' ? [-1, 1e15, 'x'] : [-1, 1.5, 0, 1e15, 'x']
      for (const wrong of kind === 'number' ? numbers : ['x', '', 7]) {
        expect([wrong, clientTakes(call, { [name]: wrong }), isTaken({ [name]: wrong })]).toEqual([
          wrong,
          false,
          false,
        ])
      }
    },
  )
})

describe('the client deliberately accepts what the embedded service refuses', () => {
  const query = 'tides'
  const monitor = { type: 'event_stream', frequency: '1d', settings: { query } }
  const inputs = [{ input: query }]
  const hook = { url: 'https://127.0.0.1:9/hook', event_types: ['of.tomorrow'] }
  const texts = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`)

  it.each<[string, string, unknown]>([
    ['more than one of its limits allows', 'search', { search_queries: texts(51) }],
    ['a run that is too long', 'adding runs', { inputs: [{ input: 'a'.repeat(25_001) }] }],
    ['more than 1,000 inputs', 'adding runs', { inputs: Array(1_001).fill(inputs[0]) }],
    [
      'an interaction that there is not',
      'adding runs',
      { inputs: [{ input: query, previous_interaction_id: 'intr_unknown' }] },
    ],
    [
      'a country that there is not',
      'search',
      { search_queries: [query], advanced_settings: { location: 'QQ' } },
    ],
    ['an unknown webhook event of a run', 'adding runs', { inputs: [{ input: query, webhook: hook }] }],
    ['an unknown webhook event of a monitor', 'creating a monitor', { ...monitor, webhook: hook }],
    [
      'a snapshot monitor of an unknown run',
      'creating a monitor',
      { ...monitor, type: 'snapshot', settings: { task_run_id: 'run' } },
    ],
    ['a query without a word', 'creating a monitor', { ...monitor, settings: { query: '?' } }],
    ['a query of 33 words', 'creating a monitor', { ...monitor, settings: { query: texts(33).join(' ') } }],
    [
      'an output schema that a passage cannot fill',
      'creating a monitor',
      { ...monitor, settings: { query, output_schema: { type: 'json', json_schema: {} } } },
    ],
  ])('%s', async (_, name, request) => {
    const { call = () => {}, path = () => '' } = ENDPOINTS[name] ?? {}
    const caller = await service()

    expect(clientTakes(call, request)).toBe(true)
    expect(await serviceTakes(caller, await path(caller), request)).toBe(false)
  })
})

describe('both refuse', () => {
  it('a time of 0 for fetching a page', async () => {
    const request = { search_queries: ['tides'], advanced_settings: { fetch_policy: { timeout_seconds: 0 } } }

    expect(clientTakes(client.search, request)).toBe(false)
    expect(await serviceTakes(await service(), '/v1/search', request)).toBe(false)
  })

  it.each([{}, { objective: ' ', search_queries: [] }])('a beta search for nothing: %j', async (request) => {
    const { status, body } = await (await service()).post<ErrorResponse>('/v1beta/search', request)

    expect(clientTakes(client.searchBeta, request)).toBe(false)
    const loc = ['body', 'search_queries']
    const error = { loc, msg: 'Expected a query or an objective', type: 'missing' }
    expect([status, body.error.detail?.['errors']]).toEqual([422, [error]])
  })
})

describe('the client deliberately refuses what the embedded service accepts', () => {
  it('null for an optional field', async () => {
    const request = { search_queries: ['tides'], objective: null }

    expect(clientTakes(client.search, request)).toBe(false)
    expect(await serviceTakes(await service(), '/v1/search', request)).toBe(true)
  })

  it.each<[string, string, unknown]>([
    [
      'a JSON schema without its type',
      'adding runs',
      { inputs: [{ input: 'tides', task_spec: { output_schema: { json_schema: JSON_SCHEMA } } }] },
    ],
    [
      'a tool server without its type',
      'adding runs',
      { inputs: [{ input: 'tides', mcp_servers: [{ url: 'https://127.0.0.1:9/', name: 'x' }] }] },
    ],
    [
      'a webhook without its event types',
      'adding runs',
      { inputs: [{ input: 'tides', webhook: { url: 'https://127.0.0.1:9/' } }] },
    ],
    ['no inputs', 'adding runs', { inputs: [] }],
    ['no change', 'updating a monitor', {}],
    ['a blank input', 'adding runs', { inputs: [{ input: ' ' }] }],
    ['a blank processor', 'adding runs', { inputs: [{ input: 'tides', processor: ' ' }] }],
    ['a blank session', 'search', { search_queries: ['tides'], session_id: ' ' }],
  ])('%s', async (_, name, request) => {
    const { call = () => {}, path = () => '' } = ENDPOINTS[name] ?? {}
    const caller = await service()

    expect(clientTakes(call, request)).toBe(false)
    expect(await serviceTakes(caller, await path(caller), request)).toBe(true)
  })

  it.each([0, 0.5])('a timeout of %d s of the events of a group', (timeout) => {
    expect(() => client.taskGroups.events('g', { timeout })).toThrow(
      'timeout must be an integer of at least 1',
    )
    expect(querySchema(groupEventsQuery).safeParse({ timeout: [String(timeout)] }).success).toBe(true)
  })

  it('a wrong limit next to an event_group_id, and unknown parameters', async () => {
    const caller = await service()
    const monitor = { type: 'event_stream', frequency: '1d', settings: { query: 'tides' } }
    const { body } = await caller.post<{ monitor_id: string }>('/v1/monitors', monitor)
    const answer = await caller.get(`/v1/monitors/${body.monitor_id}/events?event_group_id=g&limit=0&x=1`)

    expect(answer.status).toBe(200)
    expect(() => client.monitors.events('m', { event_group_id: 'g', limit: 0 })).toThrow('limit')
    expect(() => client.monitors.events('m', { x: 1 })).toThrow('no option x')
  })
})
