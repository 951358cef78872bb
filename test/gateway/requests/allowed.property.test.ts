import * as fc from 'fast-check'
import { asyncScheduler } from 'rxjs'
import { expect, it } from 'vitest'
import type { Access } from '../../../src/gateway/access/access.ts'
import type { GatewayClient } from '../../../src/gateway/gateway-options.ts'
import { GatewayRequests } from '../../../src/gateway/requests/requests.ts'
import { authority } from '../access/scene.ts'

/** Below this, a page may write what it likes. */
const FREE = null
/** A value without fields. */
const LEAF = undefined

interface Fields {
  readonly [name: string]: Fields | typeof FREE | typeof LEAF
}

const SOURCE_POLICY: Fields = { include_domains: LEAF, exclude_domains: LEAF, after_date: LEAF }
const TASK_SPEC: Fields = {
  output_schema: { type: LEAF, json_schema: FREE, description: LEAF },
  input_schema: FREE,
}

/** All that a page may send, to the leaves. A field that the interface gets is not here until it is known to be harmless. */
const ALLOWED = {
  search: {
    search_queries: LEAF,
    objective: LEAF,
    mode: LEAF,
    max_chars_total: LEAF,
    client_model: LEAF,
    session_id: LEAF,
    advanced_settings: {
      max_results: LEAF,
      location: LEAF,
      source_policy: SOURCE_POLICY,
      excerpt_settings: { max_chars_per_result: LEAF },
      fetch_policy: { max_age_seconds: LEAF, timeout_seconds: LEAF, disable_cache_fallback: LEAF },
    },
  },
  runs: {
    inputs: {
      input: FREE,
      processor: LEAF,
      metadata: FREE,
      source_policy: SOURCE_POLICY,
      advanced_settings: { location: LEAF },
      task_spec: TASK_SPEC,
    },
    default_task_spec: TASK_SPEC,
  },
} satisfies Readonly<Record<string, Fields>>

/** The paths of fields that are not allowed. Indexes are not in them. */
function notAllowed(value: unknown, fields: Fields | null | undefined, path = ''): readonly string[] {
  if (fields === FREE || typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap((each) => notAllowed(each, fields, path))
  return Object.entries(value).flatMap(([name, each]) =>
    fields !== LEAF && Object.hasOwn(fields, name)
      ? notAllowed(each, fields[name], `${path}.${name}`)
      : [`${path}.${name}`],
  )
}

const policy = fc.record(
  { include_domains: fc.constant(['a.example']), after_date: fc.constant('2026-01-31') },
  { requiredKeys: [] },
)
const free = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 })
const spec = fc.record(
  {
    output_schema: fc.oneof(
      fc.constant('a text'),
      fc.record({ type: fc.constant('json'), json_schema: free }),
      fc.record({ type: fc.constantFrom('text', 'auto') }),
    ),
    input_schema: fc.oneof(fc.constant('a text'), free),
  },
  { requiredKeys: [] },
)
const bodies = {
  search: fc.record(
    {
      search_queries: fc.constant(['q']),
      objective: fc.string(),
      mode: fc.constantFrom('fast', 'advanced'),
      max_chars_total: fc.constant(1_000),
      client_model: fc.string(),
      advanced_settings: fc.record(
        {
          max_results: fc.constant(5),
          location: fc.constant('de'),
          source_policy: policy,
          excerpt_settings: fc.record({ max_chars_per_result: fc.constant(100) }, { requiredKeys: [] }),
          fetch_policy: fc.record({ max_age_seconds: fc.constant(600) }, { requiredKeys: [] }),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['search_queries'] },
  ),
  runs: fc.record(
    {
      inputs: fc.array(
        fc.record(
          {
            input: fc.oneof(fc.constant('x'), free),
            metadata: free,
            source_policy: policy,
            advanced_settings: fc.record({ location: fc.constant('de') }, { requiredKeys: [] }),
            task_spec: spec,
          },
          { requiredKeys: ['input'] },
        ),
        { minLength: 1, maxLength: 3 },
      ),
      default_task_spec: spec,
    },
    { requiredKeys: ['inputs'] },
  ),
}

/** Each object within a body, also the body itself and free ones. */
function objectsOf(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  const within = Object.values(value).flatMap(objectsOf)
  return Array.isArray(value) ? within : [value, ...within]
}

const names = fc.oneof(
  fc.constantFrom('webhook', 'mcp_servers', 'session_id', 'memory_scope_key', 'previous_interaction_id'),
  fc.constantFrom('enable_events', 'url', 'type', 'processor', 'constructor', '__proto__', 'toString'),
  fc.string(),
)

it.each(['search', 'runs'] as const)(
  'what reaches the service of a request for %s has no field that is not allowed, and is whole',
  async (kind) => {
    const own = await authority()
    const access = (sub: string): Access =>
      own.accessOf({
        sub,
        requests: {
          search: { perMinute: 1_000_000 },
          addRuns: { groups: ['*'], perMinute: 1_000_000, processors: ['*'] },
        },
      })
    let sent: unknown
    const take = (request: unknown) => {
      sent = request
      return Promise.resolve({} as never)
    }
    const client: GatewayClient = { search: take, taskGroups: { addRuns: (_, request) => take(request) } }
    const { sessions } = own
    const requests = new GatewayRequests({
      client,
      journal: { record: async () => {} },
      sessions,
      scheduler: asyncScheduler,
    })
    const body = bodies[kind] as fc.Arbitrary<object>
    const extras = fc.array(fc.tuple(fc.nat(), names, fc.jsonValue({ maxDepth: 2 })), { maxLength: 3 })

    await fc.assert(
      fc.asyncProperty(body, extras, async (valid, added) => {
        sent = undefined
        const given: object = structuredClone(valid)
        for (const [at, name, value] of added) {
          const objects = objectsOf(given)
          Object.defineProperty(objects[at % objects.length], name, {
            value,
            enumerable: true,
            configurable: true,
            writable: true,
          })
        }
        const request = new Request(`http://localhost/live/${kind}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(kind === 'runs' ? { ...given, group: 'tgrp_1' } : given),
        })
        const response =
          kind === 'search'
            ? await requests.search(request, access('ada'))
            : await requests.addRuns(request, access('ada'))

        const isSent = sent !== undefined
        expect(response.status).toBeOneOf(isSent ? [200] : [400, 403])
        expect(notAllowed(sent, ALLOWED[kind])).toEqual([])
        expect([undefined, JSON.parse(JSON.stringify(given))]).toContainEqual(sent)
        // Nothing is refused that is allowed.
        expect(isSent || added.length > 0).toBe(true)
      }),
      { numRuns: 300 },
    )
  },
)
