import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import type { OpenEventWriter } from '../../http/node-event-writer.ts'
import { FIND_ALL_BETA } from '../../protocol/betas.ts'
import type { FindAllEnrichment, FindAllRequest, FindAllRun } from '../../protocol/find-all.ts'
import type { ValidationIssue } from '../../protocol/problem.ts'
import type { JsonSchema } from '../../protocol/requests/json-schema.ts'
import {
  enrichRequest,
  entitySearchRequest,
  extendRequest,
  findAllEventsQuery,
  findAllRequest,
  ingestRequest,
} from '../../protocol/requests/find-all.ts'
import type { Clock } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import type { Credit } from '../credit.ts'
import { Turns } from '../turns.ts'
import { requireBeta } from '../http/betas.ts'
import { streamEvents } from '../http/event-stream.ts'
import { OpenRequests, unlessGone } from '../conversations/open-requests.ts'
import { problem } from '../http/problem.ts'
import { bodySchema, querySchema } from '../http/request-schema.ts'
import { identifier } from '../identifier.ts'
import { issue, readJson, readQuery, unprocessable } from '../http/validation.ts'
import type { SchemaChecks } from '../tasks/run-request.ts'
import { fieldsOf } from './enrich.ts'
import { findAllFeed } from './feed.ts'
import { searchEntities } from './search.ts'
import { ingest } from './ingest.ts'
import type { FindAllStore, StoredRun } from './store.ts'

/** Settings of {@link findAllRoutes}. */
export interface FindAllRoutesOptions {
  readonly store: FindAllStore
  readonly corpus: Corpus
  /** The credit that active runs reserve. */
  readonly credit: Credit
  /** Checks the schemas of requests. */
  readonly checks: SchemaChecks
  /** The clock of connections: real time, except in tests. */
  readonly clock: Clock
  /** Called when there is work for a run. */
  readonly onWork: () => void
  /** Called when a run is being cancelled. */
  readonly onCancel: (id: string) => void
  /** Opens the writer of a stream, by the path of its request. Default: without faults. */
  readonly openWriter?: ((path: string) => OpenEventWriter) | undefined
  /** Returns the position at which a stream really starts. Default: the requested one. */
  readonly startAt?: ((path: string, position: number) => number) | undefined
  /** Maximum duration of a stream, in ms of real time. */
  readonly streamDuration: number
  /** Called with errors of a stream, and the `ref_id` that the client got. */
  readonly onError: (error: unknown, ref_id: string) => void
  /** The functions that end open streams, for closing the service. */
  readonly streams: Set<() => void>
}

/** Maximum number of matches of a run, with all its extensions. */
const MAX_MATCHES = 1_000
/** Maximum number of active runs. All but two of them wait. */
const MAX_ACTIVE = 256
/** The `Retry-After` of a 503, in s. */
const RETRY_AFTER = '5'
/** Maximum number of enrichments of a run. */
const MAX_ENRICHMENTS = 10
/** The path of the schema of an enrichment in its request. */
const SCHEMA_LOC = ['body', 'output_schema', 'json_schema']

const ingestBody = bodySchema(ingestRequest)
const entitySearchBody = bodySchema(entitySearchRequest)
const createBody = bodySchema(findAllRequest)
const extendBody = bodySchema(extendRequest)
const enrichBody = bodySchema(enrichRequest)
const eventsQuery = querySchema(findAllEventsQuery)

type FindAllEnv = { Bindings: HttpBindings }

/** Routes of FindAll, mounted under `/v1beta/findall`; all beyond the interface document. */
export function findAllRoutes(options: FindAllRoutesOptions) {
  const { store, corpus } = options
  const routes = new Hono<FindAllEnv>()
  const searches = new Turns()
  const requests = new OpenRequests()
  const runOf = (c: Context<FindAllEnv, '/runs/:findall_id'>) => existingRun(store, c.req.param('findall_id'))

  routes.use(requireBeta(FIND_ALL_BETA, 'FindAll'))

  routes.post('/ingest', async (c) => {
    const { objective } = await readJson(c, ingestBody, unprocessable)
    return c.json(ingest(objective))
  })

  routes.post('/entity-search', async (c) => {
    const request = await readJson(c, entitySearchBody, unprocessable)
    const { outgoing } = c.env
    const signal = requests.open(outgoing)
    const searching = searches.take(() => searchEntities(corpus, request, signal), signal)
    const entities = await unlessGone(searching, outgoing)
    if (entities === undefined) return RESPONSE_ALREADY_SENT
    return c.json({ entity_set_id: identifier('entity_set'), entities })
  })

  routes.post('/runs', async (c) => {
    return c.json(createRun(options, await readJson(c, createBody, unprocessable)), 202)
  })
  routes.get('/runs/:findall_id', (c) => c.json(runOf(c)))
  routes.get('/runs/:findall_id/schema', (c) => c.json(store.schema(runOf(c).findall_id)))
  routes.get('/runs/:findall_id/result', (c) => {
    return c.body(resultText(store, runOf(c)), 200, { 'content-type': 'application/json' })
  })
  routes.post('/runs/:findall_id/cancel', (c) => c.json(cancelRun(options, runOf(c))))

  routes.post('/runs/:findall_id/extend', async (c) => {
    const { findall_id } = runOf(c)
    const { additional_match_limit } = await readJson(c, extendBody, unprocessable)
    extendRun(options, findall_id, additional_match_limit)
    return c.json(store.schema(findall_id))
  })

  routes.post('/runs/:findall_id/enrich', async (c) => {
    const { findall_id } = runOf(c)
    await enrichRun(options, findall_id, await readJson(c, enrichBody, unprocessable))
    return c.json(store.schema(findall_id))
  })

  routes.get('/runs/:findall_id/events', (c) => {
    streamRun(options, runOf(c).findall_id, c)
    return RESPONSE_ALREADY_SENT
  })

  return routes
}

/** The run with its candidates, as JSON. */
function resultText(store: FindAllStore, run: FindAllRun): string {
  const { findall_id: id } = run
  // The candidates are stored as text: parsing and serializing them would cost more than everything else.
  const members = [
    `"run":${JSON.stringify(run)}`,
    `"candidates":${store.candidates(id)}`,
    `"last_event_id":${JSON.stringify(store.log.cursor(id))}`,
  ]
  return `{${members.join(',')}}`
}

function cancelRun(
  { store, onCancel }: FindAllRoutesOptions,
  { findall_id: id, status }: FindAllRun,
): FindAllRun {
  if (!status.is_active) throw problem(409, `FindAll run ${id} is over: its status is ${status.status}`)
  if (status.status !== 'cancelling') store.cancel(id)
  onCancel(id)
  return existingRun(store, id)
}

function extendRun({ store, credit, onWork }: FindAllRoutesOptions, id: string, additional: number): void {
  const { status, reason, matchLimit } = storedRun(store, id)
  if (status !== 'completed' || reason !== 'match_limit_met') {
    const state = status === 'completed' ? `it ended with ${reason}` : `its status is ${status}`
    throw problem(409, `FindAll run ${id} cannot be extended: ${state}, and not with match_limit_met`)
  }
  if (matchLimit + additional > MAX_MATCHES) {
    const message = `Expected at most ${MAX_MATCHES - matchLimit}, since a run has at most ${MAX_MATCHES} matches`
    throw unprocessable([issue(['body', 'additional_match_limit'], message, 'too_big')])
  }
  requireRoom(store, credit)
  store.extend(id, additional)
  onWork()
}

async function enrichRun(
  { store, credit, checks, onWork }: FindAllRoutesOptions,
  id: string,
  enrichment: FindAllEnrichment,
): Promise<void> {
  const schema = enrichment.output_schema.json_schema
  const wrong = await schemaIssues(checks, schema)
  // Read after the check, since the run may have ended meanwhile.
  const run = storedRun(store, id)
  if (!['queued', 'running', 'completed'].includes(run.status)) {
    throw problem(409, `FindAll run ${id} cannot be enriched: its status is ${run.status}`)
  }
  const issues = enrichmentIssues(store, run, schema, wrong)
  if (issues.length > 0) throw unprocessable(issues)
  if (run.status === 'completed') requireRoom(store, credit)
  store.enrich(id, enrichment)
  onWork()
}

async function schemaIssues(checks: SchemaChecks, schema: JsonSchema): Promise<ValidationIssue[]> {
  if (fieldsOf(schema).length === 0) return []
  const wrong = await checks.checkSchema(schema)
  return wrong.map(({ path, message }) => issue([...SCHEMA_LOC, ...path], message))
}

function enrichmentIssues(
  store: FindAllStore,
  { id, request }: StoredRun,
  schema: JsonSchema,
  wrong: readonly ValidationIssue[],
): readonly ValidationIssue[] {
  const fields = fieldsOf(schema)
  const { enrichments } = store.schema(id)
  const loc = [...SCHEMA_LOC, 'properties']
  if ((enrichments ?? []).length >= MAX_ENRICHMENTS) {
    return [issue(['body'], `A run has at most ${MAX_ENRICHMENTS} enrichments`, 'too_big')]
  }
  if (fields.length === 0) return [issue(loc, 'Expected at least one property')]
  if (wrong.length > 0) return wrong
  const taken = new Set([
    ...request.match_conditions.map(({ name }) => name),
    ...(enrichments ?? []).flatMap(({ output_schema }) => fieldsOf(output_schema.json_schema)),
  ])
  return fields
    .filter((field) => taken.has(field))
    .map((field) => issue([...loc, field], 'The output of a candidate has this field already'))
}

/** Sends the events of a run to the client, after the event that it has. */
function streamRun(
  { store, clock, startAt, openWriter, streamDuration, onError, streams }: FindAllRoutesOptions,
  id: string,
  c: Context<FindAllEnv>,
): void {
  const { last_event_id = '', timeout } = readQuery(c, eventsQuery, unprocessable)
  const requested = store.log.position(id, last_event_id)
  if (requested === undefined) {
    const message = `This stream has given out no event with the id ${last_event_id}`
    throw unprocessable([issue(['query', 'last_event_id'], message)])
  }
  const position = startAt?.(c.req.path, requested) ?? requested
  const { outgoing } = c.env
  const end = streamEvents(outgoing, findAllFeed(store, id, position, clock), {
    clock,
    duration: Math.min(streamDuration, timeout === undefined ? Infinity : timeout * 1_000),
    onError,
    ...(openWriter !== undefined && { openWriter: openWriter(c.req.path) }),
  })
  streams.add(end)
  outgoing.on('close', () => streams.delete(end))
}

/** Creates a run from a valid request. Throws an HttpProblem if the run is not possible. */
export function createRun(
  { store, credit, onWork }: Pick<FindAllRoutesOptions, 'store' | 'credit' | 'onWork'>,
  request: FindAllRequest,
): FindAllRun {
  const issues = repeatedNames(request)
  if (issues.length > 0) throw unprocessable(issues)
  requireRoom(store, credit)
  const run = store.create(request)
  onWork()
  return run
}

/** The run of this id, or a 404. */
export function existingRun(store: FindAllStore, id: string): FindAllRun {
  const run = store.run(id)
  if (run === undefined) throw problem(404, `FindAll run not found: ${id}`)
  return run
}

function storedRun(store: FindAllStore, id: string): StoredRun {
  const run = store.stored(id)
  if (run === undefined) throw problem(404, `FindAll run not found: ${id}`)
  return run
}

/** Throws the 503 or 402 of a service that cannot have one more active run. */
function requireRoom(store: FindAllStore, credit: Credit): void {
  if (store.active() >= MAX_ACTIVE) {
    throw problem(503, 'Too many FindAll runs are active', null, { 'retry-after': RETRY_AFTER })
  }
  credit.require(1)
}

/** The issues of conditions with the same name, which is the name of a field of the output. */
function repeatedNames({ match_conditions }: FindAllRequest): ValidationIssue[] {
  const seen = new Set<string>()
  return match_conditions.flatMap(({ name }, index) => {
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    return [issue(['body', 'match_conditions', String(index), 'name'], `Another condition is named ${name}`)]
  })
}
