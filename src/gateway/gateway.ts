import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkBoolean,
  checkDuration,
  checkInteger,
  checkMethods,
  checkObject,
  checkOptions,
  checkText,
} from '../protocol/check.ts'
import { FencedError, LogFileError, LogInUseError, LogServerError } from '../log/errors.ts'
import { checkLog } from '../protocol/check-log.ts'
import type { EventLog } from '../log/event-log/event-log.ts'
import type { ProcessOptions } from '../log/process/process.ts'
import { RequestContext } from '../log/event-log/request-context.ts'
import { isObject } from '../protocol/json.ts'
import type { LiveSnapshot } from '../protocol/live.ts'
import { asyncScheduler } from 'rxjs'
import type { Access } from './access/access.ts'
import { Authority } from './access/authority.ts'
import { LogStream } from './durable-streams/log-stream.ts'
import { Counters } from './feed/counters.ts'
import { FollowedView } from './feed/followed-view.ts'
import { viewProcess, viewProcessName } from './feed/view-process.ts'
import type { Gateway, GatewayClient, GatewayOptions, Views } from './gateway-options.ts'
import type { Grant } from './grant.ts'
import { refusalCode, refusalResponse } from './http-answer.ts'
import { Lag } from './lag.ts'
import type { GatewayEndpoint, GatewayObserver } from './observer.ts'
import { GatewayRequests } from './requests/requests.ts'
import { snapshotOf } from './stream/snapshot.ts'
import { Streams, unavailable } from './stream/streams.ts'

const OPTIONS = Object.keys({
  log: true,
  views: true,
  name: true,
  holdsRetention: true,
  tokens: true,
  path: true,
  origins: true,
  client: true,
  maxConnections: true,
  heartbeat: true,
} satisfies Record<keyof GatewayOptions<Views>, true>)

/**
 * Serves views of a log to browsers: a client with a token gets the rows, then their changes.
 *
 * ```ts
 * import { createServer } from 'node:http'
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { createGateway, nodeListener, view } from 'rivulet/gateway'
 *
 * const log = await openLog(memoryStore())
 * const runs = view({
 *   version: 1,
 *   types: ['task_run.state'],
 *   key: (entry) => [entry.data.run.run_id],
 *   reduce: (_, entry) => ({ status: entry.data.run.status }),
 * })
 * const gateway = createGateway({ log, views: { runs }, tokens: { secret: process.env.RIVULET_TOKEN_SECRET ?? '' } })
 * createServer(nodeListener(gateway)).listen(3000)
 * console.log(await gateway.grant({ sub: 'user_1', views: ['runs'], sources: ['*'] }))
 * ```
 *
 * @throws ArgumentError for an invalid setting.
 * @throws LogUnsupportedError in a Worker outside of a request. A gateway of another request rejects with it: create it in a Durable Object.
 */
export function createGateway<const V extends Views>(options: GatewayOptions<V>): Gateway<V> {
  checkOptions('options', options ?? null, OPTIONS)
  const { log, views, name, tokens, path = '/live', origins, client, maxConnections } = options
  const { holdsRetention = true, heartbeat = 15_000 } = options
  checkLog(log)
  checkObject('views', views)
  checkNames(name, Object.keys(views))
  for (const [at, each] of Object.entries(views)) {
    if (!isObject(Object(each).definition))
      throw new ArgumentError(`views.${at}`, 'a view, made by `view`', each)
  }
  if (client !== undefined) {
    checkMethods('client', client, 'a client', ['search'])
    checkMethods('client.taskGroups', client.taskGroups, 'those of a client', ['addRuns'])
  }
  checkBoolean('holdsRetention', holdsRetention)
  checkText('path', path)
  checkDuration('heartbeat', heartbeat)
  checkInteger('heartbeat', heartbeat, 1)
  const context = new RequestContext('a gateway')
  const root = path.replace(/\/+$/, '')
  const settings = {
    log,
    views,
    name,
    holdsRetention,
    tokens,
    root,
    origins,
    client,
    maxConnections,
    heartbeat,
  }
  const gateway = new RunningGateway(settings)
  const { authority } = gateway
  /** Rejects in a Worker if the function would wait for ever. */
  const here =
    <Given extends readonly unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given) => {
      context.check()
      return call(...given)
    }
  const close = () => gateway.close()
  return Object.assign(
    here((request: Request) => gateway.handle(request)),
    {
      grant: here((grant: Grant) => authority.sign(grant)),
      ticket: here((grant: Grant) => authority.ticket(grant)),
      revoke: here((revocation: Parameters<Gateway<V>['revoke']>[0]) => authority.revoke(revocation)),
      snapshot: here((grant: Grant, wanted: Parameters<Gateway<V>['snapshot']>[1]): Promise<LiveSnapshot> =>
        snapshotOf(gateway.views, authority.accessOf(grant), wanted),
      ),
      observe: (observer: GatewayObserver) => gateway.counters.observers.add(observer),
      done: gateway.done,
      close,
      [Symbol.asyncDispose]: close,
    },
  )
}

/** Names are parts of the processes' names, which a `/` separates. */
function checkNames(gateway: unknown, views: readonly string[]): void {
  if (gateway !== undefined && !(typeof gateway === 'string' && /^[a-z\d][\w.-]{0,63}$/i.test(gateway))) {
    const expected = 'a letter or digit, and up to 63 letters, digits, `.`, `_` and `-` after it'
    throw new ArgumentError('name', expected, gateway)
  }
  const wrong = views.find((view) => view.includes('/'))
  if (wrong !== undefined) throw new ArgumentError('views', 'views with names without a `/`', wrong)
}

/** Paths that metrics name. */
const ENDPOINTS: ReadonlyMap<string, GatewayEndpoint> = new Map(
  (['stream', 'session', 'search', 'runs', 'log'] as const).map((name) => [`/${name}`, name]),
)

/** How long after a transient failure a process is run again, in ms. */
const RETRY = 1_000

/** The settings of a gateway, checked. */
interface Settings extends Pick<GatewayOptions<Views>, 'log' | 'views' | 'tokens'> {
  readonly name: string | undefined
  readonly holdsRetention: boolean
  /** Path at which it is mounted, without a slash at its end. */
  readonly root: string
  readonly origins: readonly string[] | undefined
  readonly client: GatewayClient | undefined
  readonly maxConnections: number | undefined
  readonly heartbeat: number
}

/** The handler of a path. */
interface Endpoint {
  readonly methods: readonly string[]
  readonly answer: (request: Request) => Promise<Response>
}

/** What the requests of a gateway share, and the processes of its views, which run until it is closed. */
class RunningGateway {
  readonly authority: Authority
  readonly counters = new Counters()
  readonly views: ReadonlyMap<string, FollowedView>
  /** Rejects when a view can no longer be maintained, or revocations no longer stored. */
  readonly done: Promise<void>
  readonly #settings: Settings
  readonly #requests: GatewayRequests
  readonly #streams: Streams
  readonly #logStream: LogStream
  readonly #endpoints: ReadonlyMap<string, Endpoint>
  readonly #maintained: readonly Promise<void>[]
  readonly #closing = new AbortController()

  constructor(settings: Settings) {
    const { log, views, holdsRetention, tokens, root, origins, client, maxConnections, heartbeat } = settings
    this.#settings = settings
    const names = Object.keys(views)
    this.authority = new Authority({ log, tokens, views: names, path: root, origins, maxConnections })
    this.views = new Map(
      Object.entries(views).map(([name, { definition }]) => {
        const process = this.#processOf(name)
        return [name, new FollowedView({ name, process }, definition, log.states, this.counters)]
      }),
    )
    const { journal, sessions } = this.authority
    this.#requests = new GatewayRequests({ client, journal, sessions, scheduler: asyncScheduler })
    const lag = new Lag(log)
    this.#streams = new Streams({
      views: this.views,
      heartbeat,
      behind: (followed) => lag.of(followed.map((name) => this.#processOf(name))),
      counters: this.counters,
    })
    this.#logStream = new LogStream(log, { keepAlive: heartbeat, closing: this.#closing.signal })
    this.#endpoints = this.#routes()
    this.#maintained = Object.entries(views).map(([name, { definition }]) =>
      this.#maintain(name, viewProcess(definition, holdsRetention)),
    )
    this.done = Promise.race([Promise.all(this.#maintained), this.authority.failure]).then(() => {})
  }

  /** Answers a request, while observers look on. */
  async handle(request: Request): Promise<Response> {
    const { observers } = this.counters
    const answer = () => this.authority.protect(request, () => this.#respond(request))
    if (observers.isEmpty) return answer()
    const { method } = request
    const endpoint = ENDPOINTS.get(this.#pathOf(request) ?? '') ?? 'other'
    const response = await observers.around(answer, (observer, proceed) =>
      observer.request === undefined ? proceed() : observer.request({ endpoint, method }, proceed),
    )
    const code = refusalCode(response)
    if (code !== undefined) this.counters.refused(endpoint, code)
    return response
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#streams.close()
    this.#requests.close()
    await Promise.allSettled(this.#maintained)
    await this.authority.close()
  }

  #processOf(view: string): string {
    return viewProcessName(this.#settings.name, view)
  }

  #routes(): Map<string, Endpoint> {
    const granted =
      (answer: (request: Request, access: Access) => Promise<Response>) => async (request: Request) => {
        const access = await this.authority.authenticate(request)
        return access instanceof Response ? access : answer(request, access)
      }
    const stream = granted(async (request, access) => {
      const admitted = this.authority.admit(access)
      return admitted instanceof Response ? admitted : this.#streams.respond(request, access, admitted)
    })
    const readLog = granted((request, access) =>
      this.#logStream.respond(request, access, {
        live: () => this.authority.admit(access),
        read: () => this.authority.admitRead(access),
      }),
    )
    return new Map<string, Endpoint>([
      ['/stream', { methods: ['GET', 'POST'], answer: stream }],
      ['/log', { methods: ['GET', 'HEAD'], answer: readLog }],
      ['/session', { methods: ['POST'], answer: (request) => this.authority.exchange(request) }],
      ['/search', { methods: ['POST'], answer: granted((...of) => this.#requests.search(...of)) }],
      ['/runs', { methods: ['POST'], answer: granted((...of) => this.#requests.addRuns(...of)) }],
    ])
  }

  /** The path of a request below the gateway's; undefined for another one. */
  #pathOf(request: Request): string | undefined {
    const { root } = this.#settings
    const { pathname } = new URL(request.url)
    return pathname.startsWith(root) ? pathname.slice(root.length) : undefined
  }

  async #respond(request: Request): Promise<Response> {
    if (this.#closing.signal.aborted) return refusalResponse('unavailable', 'the gateway is closed')
    const path = this.#pathOf(request)
    const endpoint = path === undefined ? undefined : this.#endpoints.get(path)
    if (endpoint === undefined) return refusalResponse('invalid', 'there is nothing here', { status: 404 })
    const { methods, answer } = endpoint
    if (methods.includes(request.method)) return answer(request)
    return refusalResponse('invalid', `use ${methods.join(' or ')}`, {
      status: 405,
      headers: { allow: methods.join(', ') },
    })
  }

  /** Runs the process of a view until the gateway or the log is closed. */
  async #maintain(name: string, process: ProcessOptions<unknown>): Promise<void> {
    try {
      await runProcess(this.#settings.log, this.#processOf(name), process, this.#closing.signal)
    } catch (error) {
      const view = this.views.get(name)
      if (view !== undefined) view.failure = error
      this.#streams.deny(name, unavailable())
      throw error
    }
    // The log was closed.
    if (!this.#closing.signal.aborted) this.#streams.close()
  }
}

/**
 * Runs a process until the signal is aborted or the log closed. Waits while another gateway runs it, in any process
 * that opens the log, and continues when that gateway ends. Rejects with an error that is not transient.
 *
 * @param name The name of the process.
 */
async function runProcess(
  log: EventLog,
  name: string,
  options: ProcessOptions<unknown>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    // It waits for its name until it is stopped.
    const wait = new AbortController().signal
    const process = log.process(name, { ...options, wait })
    const stop = () => void process.stop().catch(() => {})
    signal.addEventListener('abort', stop)
    try {
      await process.done
      return
    } catch (error) {
      if (!isTransient(error)) throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
    await pause(signal)
  }
}

/** Whether it may work later: another run has it, or the file was busy. */
function isTransient(error: unknown): boolean {
  if (error instanceof LogInUseError || error instanceof FencedError) return true
  return (error instanceof LogFileError || error instanceof LogServerError) && error.retryable
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, RETRY)
    signal.addEventListener('abort', end)
  })
}
