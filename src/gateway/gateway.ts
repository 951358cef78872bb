import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkBoolean,
  checkDuration,
  checkInteger,
  checkObject,
  checkOptions,
  checkText,
} from '../protocol/check.ts'
import { RequestContext } from '../log/request-context.ts'
import type { LiveSnapshot } from '../protocol/live.ts'
import { asyncScheduler } from 'rxjs'
import type { Access } from './access/access.ts'
import { Authority } from './access/authority.ts'
import { LogStream } from './durable-streams/log-stream.ts'
import { Counters } from './feed/counters.ts'
import { FollowedView } from './feed/followed-view.ts'
import { viewProcess, viewProcessName } from './feed/view-process.ts'
import type { Gateway, GatewayOptions, Views } from './gateway-options.ts'
import type { Grant } from './grant.ts'
import { refusalResponse } from './http-answer.ts'
import { Lag } from './lag.ts'
import { observedAnswer } from './observed-answer.ts'
import type { GatewayObserver } from './observer.ts'
import { GatewayRequests } from './requests/requests.ts'
import { runView } from './run-view.ts'
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

/** The handler of a path. */
interface Endpoint {
  readonly methods: readonly string[]
  readonly answer: (request: Request) => Promise<Response>
}

/**
 * Serves views of a log to browsers: a client with a token gets the rows, then their changes.
 *
 * ```ts
 * import { createServer } from 'node:http'
 * import { memoryLog, openLog } from 'rivulet'
 * import { createGateway, nodeListener, view } from 'rivulet/gateway'
 *
 * const log = await openLog(memoryLog())
 * const runs = view({
 *   version: 1,
 *   types: ['task_run.state'],
 *   key: (entry) => [entry.data.run.run_id],
 *   reduce: (_, entry) => ({ status: entry.data.run.status }),
 * })
 * const gateway = createGateway({ log, views: { runs }, tokens: { secret: process.env.SECRET ?? '' } })
 * createServer(nodeListener(gateway)).listen(3000)
 * console.log(await gateway.grant({ sub: 'user_1', views: ['runs'], sources: ['*'] }))
 * ```
 *
 * @throws ArgumentError for an invalid setting.
 * @throws LogUnsupportedError in a Worker outside of a request. A gateway of another request rejects with it: create it in a Durable Object.
 */
export function createGateway<const V extends Views>(options: GatewayOptions<V>): Gateway<V> {
  checkOptions('options', options, OPTIONS)
  const { log, views, tokens, path = '/live', origins, client, maxConnections, heartbeat = 15_000 } = options
  checkObject('views', views)
  const { name: own, holdsRetention = true } = options
  checkNames(own, Object.keys(views))
  checkBoolean('holdsRetention', holdsRetention)
  checkText('path', path)
  checkDuration('heartbeat', heartbeat)
  checkInteger('heartbeat', heartbeat, 1)
  const context = new RequestContext('a gateway')
  const root = path.replace(/\/+$/, '')
  const authority = new Authority({
    log,
    tokens,
    views: Object.keys(views),
    path: root,
    origins,
    maxConnections,
  })
  const counters = new Counters()
  const followed = new Map(
    Object.entries(views).map(([name, { definition }]) => [
      name,
      new FollowedView({ name, process: viewProcessName(own, name) }, definition, log.states, counters),
    ]),
  )
  const { journal, sessions } = authority
  const requests = new GatewayRequests({ client, journal, sessions, scheduler: asyncScheduler })
  const lag = new Lag(log)
  const streams = new Streams({
    views: followed,
    heartbeat,
    behind: (names) => lag.of(names.map((name) => viewProcessName(own, name))),
    counters,
  })
  const closing = new AbortController()
  const logStream = new LogStream(log, { keepAlive: heartbeat, closing: closing.signal })
  let isClosed = false

  const granted =
    (answer: (request: Request, access: Access) => Promise<Response>) => async (request: Request) => {
      const access = await authority.authenticate(request)
      return access instanceof Response ? access : answer(request, access)
    }
  const stream = granted((request, access) => {
    const admitted = authority.admit(access)
    return admitted instanceof Response
      ? Promise.resolve(admitted)
      : streams.respond(request, access, admitted)
  })
  const readLog = granted((request, access) =>
    logStream.respond(request, access, {
      live: () => authority.admit(access),
      read: () => authority.admitRead(access),
    }),
  )
  const endpoints = new Map<string, Endpoint>([
    ['/stream', { methods: ['GET', 'POST'], answer: stream }],
    ['/log', { methods: ['GET', 'HEAD'], answer: readLog }],
    ['/session', { methods: ['POST'], answer: (request) => authority.exchange(request) }],
    ['/search', { methods: ['POST'], answer: granted((...of) => requests.search(...of)) }],
    ['/runs', { methods: ['POST'], answer: granted((...of) => requests.addRuns(...of)) }],
  ])
  const respond = async (request: Request): Promise<Response> => {
    if (isClosed) return refusalResponse('unavailable', 'the gateway is closed')
    const { pathname } = new URL(request.url)
    const endpoint = pathname.startsWith(root) ? endpoints.get(pathname.slice(root.length)) : undefined
    if (endpoint === undefined) return refusalResponse('invalid', 'there is nothing here', { status: 404 })
    const { methods, answer } = endpoint
    if (methods.includes(request.method)) return answer(request)
    return refusalResponse('invalid', `use ${methods.join(' or ')}`, {
      status: 405,
      headers: { allow: methods.join(', ') },
    })
  }
  const observed = observedAnswer(counters, root, (request) =>
    authority.protect(request, () => respond(request)),
  )
  /** Rejects in a Worker if the function would wait for ever. */
  const here =
    <Given extends readonly unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given) => {
      context.check()
      return call(...given)
    }
  const handle = here(observed)

  const running = Object.entries(views).map(async ([name, { definition }]) => {
    try {
      await runView(log, viewProcessName(own, name), viewProcess(definition, holdsRetention), closing.signal)
    } catch (error) {
      const view = followed.get(name)
      if (view !== undefined) view.failure = error
      streams.deny(name, unavailable())
      throw error
    }
    // The log was closed.
    if (!isClosed) streams.close()
  })
  const done = Promise.race([Promise.all(running), authority.failure]).then(() => {})
  const close = async () => {
    isClosed = true
    closing.abort()
    streams.close()
    requests.close()
    await Promise.allSettled(running)
    await authority.close()
  }
  return Object.assign(handle, {
    grant: here((grant: Grant) => authority.sign(grant)),
    ticket: here((grant: Grant) => authority.ticket(grant)),
    revoke: here((revocation: Parameters<Gateway<V>['revoke']>[0]) => authority.revoke(revocation)),
    snapshot: here((grant: Grant, wanted: Parameters<Gateway<V>['snapshot']>[1]): Promise<LiveSnapshot> =>
      snapshotOf(followed, authority.accessOf(grant), wanted),
    ),
    observe: (observer: GatewayObserver) => counters.observers.add(observer),
    done,
    close,
    [Symbol.asyncDispose]: close,
  })
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
