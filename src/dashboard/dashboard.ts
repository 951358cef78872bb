/// <reference lib="esnext.disposable" preserve="true" />
import { randomBytes } from 'node:crypto'
import { Origins } from '../gateway/access/origins.ts'
import { createGateway } from '../gateway/gateway.ts'
import type { GatewayClient } from '../gateway/gateway-options.ts'
import type { Grant } from '../gateway/grant.ts'
import { refusalResponse } from '../gateway/http-answer.ts'
import { checkLog } from '../protocol/check-log.ts'
import type { EventLog } from '../log/event-log/event-log.ts'
import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import { checkFunction, checkMethods, checkOptions, checkText } from '../protocol/check.ts'
import { MAX_RUNS_PER_REQUEST } from '../protocol/limits.ts'
import { Assets, htmlResponse } from './assets.ts'
import { DashboardKey } from './dashboard-key.ts'
import { findDocument } from './documents.ts'
import type { FindDocument } from './documents.ts'
import { secured } from './headers.ts'
import { NO_KEY_HTML, WELCOME_HTML } from './html.ts'
import { LazyGateway } from './lazy-gateway.ts'
import { StatusReader } from './status.ts'
import { dashboardViews } from './views.ts'

/** Settings of {@link createDashboard}. */
export interface DashboardOptions {
  /** The log that it shows. Its views are processes of this log. */
  readonly log: EventLog
  /** Client for searches and added runs. Default: none, and the page offers neither. */
  readonly client?: GatewayClient
  /** Finds a document that is cited, so that the page can show an excerpt in it. Default: it links to the document's URL. */
  readonly documents?: FindDocument
  /** Origins at which it is served, such as `https://logs.example`. Default: this machine, at any port. */
  readonly origins?: readonly string[]
  /** The secret in its address, of at least 16 characters. Default: 32 random bytes. */
  readonly key?: string
}

/** A page over a log: a function from `Request` to `Response`, which `nodeListener` mounts on `node:http`. */
export interface Dashboard extends AsyncDisposable {
  (request: Request): Promise<Response>
  /** The address to open in a browser, with the key, if the dashboard is served at the given address: `http://127.0.0.1:8080`. */
  address(base: string): string
  /** Rejects when a view can no longer be processed. Resolves after `close`. */
  readonly done: Promise<void>
  close(): Promise<void>
}

const OPTIONS = Object.keys({
  log: true,
  client: true,
  documents: true,
  origins: true,
  key: true,
} satisfies Record<keyof DashboardOptions, true>)

/** The subject of the page in the gateway's grants and events. */
const SUBJECT = 'dashboard'

const MIN_KEY = 16

/** Path at which the gateway is mounted. */
const LIVE = '/live'

/**
 * Creates the dashboard of a log: a page with monitors, task groups, alerts, searches and the log itself, up to date while it is open.
 * Its views are made when it is first opened. It needs no other server, and loads nothing from elsewhere. Everyone with the key in its
 * address sees the whole log.
 *
 * @throws ArgumentError for an invalid setting.
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { openLog } from 'rivulet/log'
 * import { createDashboard } from 'rivulet/dashboard'
 * import { sqliteStore } from 'rivulet/log/sqlite'
 * import { nodeListener } from 'rivulet/webhooks'
 *
 * const log = await openLog(sqliteStore('rivulet.db'))
 * const dashboard = createDashboard({ log })
 * createServer(nodeListener(dashboard)).listen(8080, '127.0.0.1')
 * console.log(dashboard.address('http://127.0.0.1:8080'))
 * ```
 */
export function createDashboard(options: DashboardOptions): Dashboard {
  checkOptions('options', options ?? null, OPTIONS)
  const { log, client, documents, origins } = options
  const key = options.key ?? randomBytes(32).toString('base64url')
  checkLog(log)
  checkText('key', key)
  if (key.length < MIN_KEY) {
    throw new ArgumentError('key', `of at least ${MIN_KEY} characters`, hidden(key))
  }
  if (client !== undefined) checkMethods('client', client, 'a client', ['search'])
  if (documents !== undefined) checkFunction('documents', documents)

  const gateway = new LazyGateway(() =>
    createGateway({
      log,
      views: dashboardViews,
      name: 'dashboard',
      // It may never be opened again.
      holdsRetention: false,
      // Its tokens end with it. A page that is still open gets a new one.
      tokens: { secret: randomBytes(32).toString('base64url'), audience: 'rivulet-dashboard' },
      path: LIVE,
      ...(origins !== undefined && { origins }),
      ...(client !== undefined && { client }),
    }),
  )
  const can = {
    search: client !== undefined,
    addRuns: client !== undefined,
    documents: documents !== undefined,
  }
  const server = new DashboardServer({
    gateway,
    grant: grantOf(client !== undefined),
    status: new StatusReader(log, can),
    key: new DashboardKey(key),
    origins: new Origins(origins),
    isListed: origins !== undefined,
    documents,
  })
  const handle = (request: Request) => server.handle(request)
  const close = () => gateway.close()
  return Object.assign(handle, {
    address: (base: string) => {
      const url = new URL('/', base)
      url.searchParams.set('key', key)
      return url.href
    },
    done: gateway.done,
    close,
    [Symbol.asyncDispose]: close,
  })
}

/** The rights of the page: all that it shows and does. */
function grantOf(hasClient: boolean): Grant {
  return {
    sub: SUBJECT,
    views: Object.keys(dashboardViews),
    sources: ['*'],
    // It searches while its user types, and adds as many runs as fit into a request.
    ...(hasClient && {
      requests: {
        search: { perMinute: 120 },
        addRuns: { groups: ['*'], processors: ['*'], perMinute: MAX_RUNS_PER_REQUEST },
      },
    }),
  }
}

interface ServerParts {
  readonly gateway: LazyGateway
  readonly grant: Grant
  readonly status: StatusReader
  readonly key: DashboardKey
  readonly origins: Origins
  /** Whether the origins are listed. Otherwise a page has the origin of its own requests. */
  readonly isListed: boolean
  readonly documents: FindDocument | undefined
}

/** Answers the requests to a dashboard. */
class DashboardServer {
  readonly #parts: ServerParts
  readonly #assets = new Assets()

  constructor(parts: ServerParts) {
    this.#parts = parts
  }

  async handle(request: Request): Promise<Response> {
    return secured(await this.#answer(request))
  }

  async #answer(request: Request): Promise<Response> {
    const { gateway, key, origins, isListed } = this.#parts
    const url = new URL(request.url)
    const isPage = url.pathname === '/'
    // Links to the page may be anywhere. The data that it shows needs the cookie, which browsers do not send with links from other sites.
    const refusal = origins.refusalOf(isPage ? withoutOrigin(request) : request)
    if (refusal !== undefined) return refusal
    // Browsers send the cookie also with requests of pages at other ports of this machine.
    if (!isPage && !isListed && isFromElsewhere(request, url)) {
      return refusalResponse('forbidden', 'pages of this origin may not use this dashboard')
    }
    // The gateway has its own tokens.
    if (url.pathname.startsWith(`${LIVE}/`)) return gateway.handle(request)
    const isRead = request.method === 'GET'
    const given = url.searchParams.get('key')
    if (isRead && url.pathname === '/' && given !== null && key.fits(given)) {
      return htmlResponse(WELCOME_HTML, 200, { 'set-cookie': key.setCookie(url), refresh: '0; url=/' })
    }
    if (!key.isIn(request)) {
      if (isRead && url.pathname === '/') return htmlResponse(NO_KEY_HTML, 401)
      return refusalResponse('unauthenticated', 'the request needs the cookie of the dashboard')
    }
    return (
      (await this.#route(request, url)) ??
      refusalResponse('invalid', 'there is nothing here', { status: 404 })
    )
  }

  async #route(request: Request, url: URL): Promise<Response | undefined> {
    const { gateway, grant, status, documents } = this.#parts
    if (request.method === 'POST') {
      return url.pathname === '/token' ? gateway.token(grant) : undefined
    }
    if (request.method !== 'GET') return undefined
    switch (url.pathname) {
      case '/':
        return this.#assets.page()
      case '/status':
        return jsonResponse(await status.read())
      case '/document': {
        const found = await findDocument(documents, url.searchParams.get('url'))
        return found && jsonResponse(found)
      }
    }
    const [, folder, name = '', ...rest] = url.pathname.split('/')
    return folder === 'assets' && rest.length === 0 ? this.#assets.file(name, request) : undefined
  }
}

/** Whether it was sent by a page of another host or port. The origin was checked; a server before this one may add TLS. */
function isFromElsewhere({ headers }: Request, { host }: URL): boolean {
  const origin = headers.get('origin')
  return origin !== null && new URL(origin).host !== host
}

/** The request with only the headers that name its host. */
function withoutOrigin({ url, headers }: Request): Request {
  const host = headers.get('host')
  return new Request(url, { headers: host === null ? {} : { host } })
}

function jsonResponse(value: unknown): Response {
  return Response.json(value, { headers: { 'cache-control': 'no-store' } })
}
