import type { SchedulerLike } from 'rxjs'
import { BodyIntake } from '../../http/body-intake.ts'
import { LogClosedError } from '../../log/errors.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { isObject, isText } from '../../protocol/json.ts'
import { isId } from '../../protocol/id.ts'
import { searchEvent } from '../../protocol/gateway-event.ts'
import type { GatewaySearch } from '../../protocol/gateway.ts'
import { MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import { checkRequest, unnamedField } from '../../protocol/requests/check.ts'
import { list } from '../../protocol/requests/kinds.ts'
import type { ObjectShape, Schema, Shape } from '../../protocol/requests/schema.ts'
import { searchRequest } from '../../protocol/requests/search.ts'
import { addRunsRequest, runInput } from '../../protocol/requests/tasks.ts'
import type { SearchRequest, SearchResponse } from '../../protocol/search.ts'
import type { RunInput } from '../../protocol/task.ts'
import type { Access } from '../access/access.ts'
import type { Authority } from '../access/authority.ts'
import { jsonBody } from '../access/request-body.ts'
import { SubjectConnections } from '../access/subject-connections.ts'
import type { GatewayClient } from '../gateway-options.ts'
import type { GrantedRequests } from '../grant.ts'
import { refusalResponse, serviceRefusal } from '../http-answer.ts'
import type { Journal } from '../journal.ts'
import { bounded } from '../views/bounded.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Default of `requests.search.perMinute` of a grant. */
const SEARCHES = 30

/** Default of `requests.addRuns.perMinute` of a grant. */
const RUNS = 100

const KIB = 1024
const MIB = 1024 * KIB

/** Maximum number of requests of one subject to add runs at the same time. */
const MAX_RUNNING = 4

/** How long a body may take to arrive, in ms. */
const BODY_TIMEOUT = 10_000

/** Maximum size of the part of a search that is recorded, in bytes of JSON. */
const MAX_RECORDED_REQUEST = 8 * KIB
const MAX_RECORDED_RESPONSE = 56 * KIB

/**
 * The fields of an input that a page may send. Fields that make the service call other servers (`webhook`, `mcp_servers`) are not among
 * them, nor fields that refer to requests of other subjects (`memory_scope_key`, `previous_interaction_id`).
 */
const INPUT_FIELDS: readonly string[] = [
  'input',
  'processor',
  'metadata',
  'source_policy',
  'advanced_settings',
  'task_spec',
] satisfies (keyof RunInput)[]

/** A request to add runs, as a page may send it. */
const PAGE_RUNS: Shape = {
  ...addRunsRequest,
  required: { inputs: list<unknown>(only(runInput, INPUT_FIELDS), 'runs') },
}

/** Settings of {@link GatewayRequests}. */
export interface RequestsOptions {
  /** Undefined if every request is refused. */
  readonly client: GatewayClient | undefined
  readonly journal: Pick<Journal, 'record'>
  readonly sessions: Authority['sessions']
  readonly scheduler: SchedulerLike
}

/** Makes requests to the service for pages, which have no key. */
export class GatewayRequests {
  readonly #client: GatewayClient | undefined
  readonly #journal: Pick<Journal, 'record'>
  readonly #sessions: Authority['sessions']
  readonly #scheduler: SchedulerLike
  readonly #searches = new MinuteLimits()
  readonly #runs = new MinuteLimits()
  readonly #searchBodies = new BodyIntake({
    maxBodyBytes: 64 * KIB,
    maxBytesInFlight: 8 * MIB,
    bodyTimeout: BODY_TIMEOUT,
  })
  readonly #runsBodies = new BodyIntake({
    maxBodyBytes: 4 * MIB,
    maxBytesInFlight: 32 * MIB,
    bodyTimeout: BODY_TIMEOUT,
  })
  /** The running requests of each subject. They are limited, so that the bodies of one subject leave room for the bodies of others. */
  readonly #running = new SubjectConnections(MAX_RUNNING)
  readonly #closing = new AbortController()

  constructor({ client, journal, sessions, scheduler }: RequestsOptions) {
    this.#client = client
    this.#journal = journal
    this.#sessions = sessions
    this.#scheduler = scheduler
  }

  /** Answers `POST …/search` with the response of the service, without omitted fields. It is recorded in the log. */
  async search(request: Request, access: Access): Promise<Response> {
    const granted = access.requests.search
    if (this.#client === undefined || granted === undefined) return forbidden('search')
    const { perMinute = SEARCHES } = granted
    const wait = this.#searches.take(access.sub, 1, perMinute, this.#scheduler.now())
    if (wait > 0) return tooMany(`at most ${perMinute} searches a minute`, wait)
    const body = await jsonBody(request, this.#searchBodies)
    if (body instanceof Response) return body
    const checked = await this.#ownSession(access, checkedBody(searchRequest, searchRequest, body))
    if (checked instanceof Response) return checked
    let response: SearchResponse
    try {
      response = await this.#client.search(checked, { signal: this.#signalOf(request) })
    } catch (error) {
      return serviceRefusal(error, false)
    }
    // A client of one's own may return anything.
    if (!isObject(response)) return serviceRefusal(undefined, false)
    await this.#record(access, checked, response)
    const { session_id } = response
    if (!isText(session_id)) return answered(access, response, false)
    const session = await this.#sessions.seal(session_id, access.sub)
    return answered(access, { ...response, session_id: session }, false)
  }

  /** Answers `POST …/runs`, whose body is the body of the service's call with the `group`. It is sent to the service once. */
  async addRuns(request: Request, access: Access): Promise<Response> {
    const granted = access.requests.addRuns
    if (this.#client === undefined || granted === undefined) return forbidden('adding runs')
    const release = this.#running.open(access.sub)
    if (release instanceof Response) return release
    try {
      return await this.#addRuns(request, access, this.#client, granted)
    } finally {
      release()
    }
  }

  async #addRuns(
    request: Request,
    access: Access,
    { taskGroups }: GatewayClient,
    { groups, perMinute = RUNS, processors = [] }: NonNullable<GrantedRequests['addRuns']>,
  ): Promise<Response> {
    const body = await jsonBody(request, this.#runsBodies)
    if (body instanceof Response) return body
    const { group, ...rest } = body
    if (!isId(group)) return refusalResponse('invalid', 'group must be an id')
    if (!groups.includes(group) && !groups.includes('*')) return forbidden('adding runs to this group')
    const checked = checkedBody(addRunsRequest, PAGE_RUNS, rest)
    if (checked instanceof Response) return checked
    const { inputs } = checked
    const max = Math.min(MAX_RUNS_PER_REQUEST, perMinute)
    if (inputs.length === 0 || inputs.length > max) {
      return refusalResponse('invalid', `inputs must be 1 to ${max}`)
    }
    const isAllowed = ({ processor }: RunInput) =>
      processor === undefined || processors.includes(processor) || processors.includes('*')
    if (!inputs.every(isAllowed)) return forbidden('this processor')
    const wait = this.#runs.take(access.sub, inputs.length, perMinute, this.#scheduler.now())
    if (wait > 0) return tooMany(`at most ${perMinute} runs a minute`, wait)
    try {
      const response = await taskGroups.addRuns(group, checked, { signal: this.#signalOf(request) })
      return answered(access, response, true)
    } catch (error) {
      return serviceRefusal(error, true)
    }
  }

  /** Aborts the requests that are running. */
  close(): void {
    this.#closing.abort(new LogClosedError('the gateway'))
  }

  /** A signal that is aborted when the page is gone, or the gateway closes. */
  #signalOf(request: Request): AbortSignal {
    return AbortSignal.any([request.signal, this.#closing.signal])
  }

  /** The request with the session as the service knows it, or the response that refuses one that was not given to this subject. */
  async #ownSession({ sub }: Access, request: SearchRequest | Response): Promise<SearchRequest | Response> {
    if (request instanceof Response || request.session_id === undefined) return request
    const session = await this.#sessions.unseal(request.session_id, sub)
    if (session === undefined) return forbidden('session_id: it is not of an answer to this subject')
    return { ...request, session_id: session }
  }

  async #record(access: Access, request: SearchRequest, response: SearchResponse): Promise<void> {
    const asked = bounded<SearchRequest, SearchRequest>(request, MAX_RECORDED_REQUEST, { search_queries: [] })
    const found = bounded<SearchResponse, SearchResponse>(response, MAX_RECORDED_RESPONSE, { results: [] })
    const session = [response.session_id, request.session_id].find(isId) ?? access.grant
    const data: GatewaySearch = {
      sub: access.sub,
      session,
      request: asked.value,
      response: found.value,
      ...((asked.isTruncated || found.isTruncated) && { truncated: true }),
    }
    try {
      await this.#journal.record(searchEvent(data, crypto.randomUUID(), this.#scheduler.now()))
    } catch {
      // The subject already has its answer. If the log refuses the entry, it refuses others too, and the gateway's `done` rejects.
    }
  }
}

/** Some fields of an object. */
function only({ kind, required, optional }: ObjectShape, names: readonly string[]): ObjectShape {
  const these = (fields: ObjectShape['required']) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)))
  return { kind, required: these(required), optional: these(optional) }
}

/**
 * The body as a request of this schema, or the response that refuses it.
 *
 * @param allowed The fields that a page may send. Other fields, at any depth, are refused, since they would be sent with the gateway's key.
 */
function checkedBody<T>(
  schema: Schema<T>,
  allowed: Shape,
  body: Readonly<Record<string, unknown>>,
): T | Response {
  try {
    const request: unknown = body
    checkRequest(schema, request)
    const unknown = unnamedField(schema, request)
    if (unknown !== undefined) return refusalResponse('invalid', `there is no field ${shown(unknown)}`)
    const withheld = unnamedField(allowed, request)
    return withheld === undefined ? request : forbidden(`the field ${shown(withheld)}`)
  } catch (error) {
    if (error instanceof ArgumentError) return refusalResponse('invalid', cutText(error.message, 300))
    // It is nested so deeply that it overflows the stack.
    return refusalResponse('invalid', 'the body cannot be checked')
  }
}

/** The path of a field, for a message: a page chooses its names. */
function shown(path: string): string {
  return path.length > 200 ? `${cutText(path, 200)}…` : path
}

/** An answer of the service. */
function answered(access: Access, response: unknown, isWrite: boolean): Response {
  try {
    if (!isObject(response)) return serviceRefusal(undefined, isWrite)
    return Response.json(access.omit(response), { headers: { 'cache-control': 'no-store' } })
  } catch (error) {
    // It cannot be written as JSON.
    return serviceRefusal(error, isWrite)
  }
}

function forbidden(what: string): Response {
  return refusalResponse('forbidden', `the grant does not allow ${what}`)
}

function tooMany(limit: string, retryAfter: number): Response {
  return refusalResponse('too_many', limit, { retryAfter })
}

/** The most subjects whose use is counted. Beyond this number, the subject that has used nothing for the longest time is forgotten. */
const MAX_SUBJECTS = 50_000

/** The use of a subject. */
interface Used {
  /** The amount in use at the time `at`. It drains at the rate of the limit. */
  amount: number
  /** Time of the amount, Unix ms. */
  at: number
}

/** Counts what subjects use, against limits per minute. */
class MinuteLimits {
  readonly #used = new Map<string, Used>()

  /** Counts an amount, and returns 0; or the time to wait, in ms, if the limit has no room for it. */
  take(subject: string, amount: number, perMinute: number, now: number): number {
    const rate = perMinute / 60_000
    const { amount: before, at } = this.#used.get(subject) ?? { amount: 0, at: now }
    const used = Math.max(0, before - Math.max(0, now - at) * rate)
    const excess = used + amount - perMinute
    if (excess > 0) return Math.ceil(excess / rate)
    // The last subject in the map is the most recently used one.
    this.#used.delete(subject)
    this.#used.set(subject, { amount: used + amount, at: now })
    const [oldest] = this.#used.keys()
    if (this.#used.size > MAX_SUBJECTS && oldest !== undefined) this.#used.delete(oldest)
    return 0
  }
}
