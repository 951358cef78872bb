import { ArgumentError } from '../../protocol/argument-error.ts'
import { isLoopback } from '../../protocol/loopback.ts'
import { refusalResponse } from '../http-answer.ts'

/** The response headers that a page may read, besides the ones that it always may. */
const EXPOSED = 'retry-after, etag, stream-next-offset, stream-up-to-date, stream-cursor, stream-closed'

/** How long a browser may keep the answer to a preflight, in seconds. */
const PREFLIGHT_AGE = '600'

/** The pages that may use a gateway, and the hosts under which it answers. */
export class Origins {
  /** Undefined for pages of this machine. */
  readonly #allowed: ReadonlySet<string> | undefined
  readonly #hosts: ReadonlySet<string>

  /** @throws ArgumentError */
  constructor(origins: readonly string[] | undefined) {
    if (origins === undefined) {
      this.#hosts = new Set()
      return
    }
    if (!Array.isArray(origins) || origins.length === 0) {
      throw new ArgumentError('origins', 'a non-empty array', origins)
    }
    for (const [at, origin] of origins.entries()) {
      if (!isOrigin(origin)) {
        throw new ArgumentError(`origins[${at}]`, 'an origin such as https://app.example', origin)
      }
    }
    this.#allowed = new Set(origins)
    this.#hosts = new Set(origins.map((origin) => new URL(origin).hostname))
  }

  /**
   * The reason to refuse a request before it is read: its host is not one of the gateway's (an attacker's page can reach the gateway when
   * its name resolves to this machine), or it comes from a page of another origin.
   */
  refusalOf(request: Request): Response | undefined {
    if (!hostsOf(request).every((host) => this.#isHost(host))) {
      return refusalResponse('forbidden', 'this gateway does not answer for this host', { status: 421 })
    }
    const origin = request.headers.get('origin')
    const isAllowed = origin === null ? isSameOrigin(request) : this.#isAllowed(origin)
    if (isAllowed) return undefined
    return refusalResponse('forbidden', 'pages of this origin may not use this gateway', {
      headers: { vary: 'Origin' },
    })
  }

  /** The answer to a preflight; undefined for another request. */
  preflight(request: Request): Response | undefined {
    const isPreflight =
      request.method === 'OPTIONS' &&
      request.headers.has('origin') &&
      request.headers.has('access-control-request-method')
    if (!isPreflight) return undefined
    const response = new Response(null, {
      status: 204,
      headers: {
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': 'authorization, content-type, last-event-id, if-none-match',
        'access-control-max-age': PREFLIGHT_AGE,
      },
    })
    this.share(request, response)
    return response
  }

  /** Lets the page that has sent the request read its response. The origin was allowed. */
  share(request: Request, { headers }: Response): void {
    headers.append('vary', 'Origin')
    const origin = request.headers.get('origin')
    if (origin === null) return
    headers.set('access-control-allow-origin', origin)
    headers.set('access-control-allow-credentials', 'true')
    headers.set('access-control-expose-headers', EXPOSED)
  }

  #isAllowed(origin: string): boolean {
    if (this.#allowed !== undefined) return this.#allowed.has(origin)
    return isOrigin(origin) && isLoopback(new URL(origin).hostname)
  }

  #isHost(host: string | undefined): boolean {
    return host !== undefined && (isLoopback(host) || this.#hosts.has(host))
  }
}

/** The hosts that a request names: in its URL, and in its header. Undefined for one that is malformed. */
function hostsOf(request: Request): readonly (string | undefined)[] {
  const { hostname } = new URL(request.url)
  const header = request.headers.get('host')
  if (header === null) return [hostname]
  // No user, path or query, which a URL would accept.
  const isHost = /^(?:\[[\da-f:.]+\]|[^\s/@?#\\:[\]]+)(?::\d{1,5})?$/i.test(header)
  const url = `http://${header}`
  return [hostname, isHost && URL.canParse(url) ? new URL(url).hostname : undefined]
}

function isOrigin(value: unknown): value is string {
  // A URL may have a `*` in its host, and here it would look like a pattern.
  if (typeof value !== 'string' || value.includes('*') || !URL.canParse(value)) return false
  const { origin, protocol } = new URL(value)
  return origin === value && (protocol === 'https:' || protocol === 'http:')
}

/**
 * Whether a request without an `Origin` comes from a page of the gateway itself, or from no page. A browser sends no `Origin` with a GET of
 * the same origin, nor with requests for images and scripts of other origins.
 */
function isSameOrigin(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  return site === null || site === 'same-origin' || site === 'none'
}
