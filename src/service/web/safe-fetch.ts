import { type Dispatcher, request as send } from 'undici'
import { createGuardedAgent } from './guarded-agent.ts'
import { isPublicAddress } from './public-address.ts'
import { ACCEPTED_CODINGS, readBody, tooLarge } from './read-body.ts'
import type { ResolveHost } from './resolve-host.ts'
import { WebError } from './web-error.ts'

/** A request to an outside address. */
export interface WebRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'POST'
  /** Headers, with lowercase names. Sent to the origin of the URL only: a redirect to another origin loses them for good. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** How long the request may take with its redirects and the body, in ms of real time. */
  readonly timeout: number
  /** Maximum size of the decoded body, in bytes. */
  readonly maxBytes: number
  /** Maximum number of redirects of a GET. Redirects of a POST are not followed. Default 5. */
  readonly maxRedirects?: number
  /** Called with the URL of each redirect before it is followed. The request rejects with the error that it rejects with. */
  readonly checkRedirect?: (url: URL) => Promise<void>
  /** The media types that a successful response may have. Default: any. */
  readonly mediaTypes?: readonly string[]
  /** Aborts the request, which rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** A complete response. */
export interface WebResponse {
  /** The URL after all redirects. */
  readonly url: string
  readonly status: number
  /** Headers, with lowercase names. If a header is repeated, the first one counts. */
  readonly headers: Readonly<Record<string, string>>
  /** The media type in lower case, without parameters; empty if the response states none. */
  readonly mediaType: string
  /** Decoded. */
  readonly body: Uint8Array
}

/** The access of the service to outside addresses. */
export interface Web {
  /**
   * Sends a request; resolves with a response of any status. Rejects with a {@link WebError} for a URL or an address that is
   * not allowed, and when the response is late, too large, cut or of another media type.
   */
  fetch(url: string, request: WebRequest): Promise<WebResponse>
  /** Aborts all requests. */
  close(): void
}

/** Settings of {@link createWeb}. */
export interface WebOptions {
  /** Whether a connection to an IP address is allowed. Default: to addresses of the public Internet. */
  readonly isAllowed?: (address: string) => boolean
  /** Default: the resolver of the operating system. */
  readonly resolve?: ResolveHost
}

const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Ports below this belong to other protocols, except for the ports of HTTP. */
const FIRST_USER_PORT = 1_024
const WEB_PORTS = new Set(['', '80', '443'])
const USER_AGENT = 'rivulet (embedded research service)'

/**
 * Creates the only access of the service to outside addresses: http and https without credentials, to allowed
 * addresses, which are checked after DNS, for each redirect, and are the ones that are connected to.
 */
export function createWeb({ isAllowed = isPublicAddress, resolve }: WebOptions = {}): Web {
  const closing = new AbortController()

  return {
    async fetch(url, request) {
      const controller = new AbortController()
      const agent = createGuardedAgent({ isAllowed, timeout: request.timeout, resolve })
      const abort = (reason: unknown) => controller.abort(reason)
      const onAbort = () => abort(request.signal?.reason)
      const onClose = () => abort(new WebError('fetch_error', 'The service is closing'))
      const timer = setTimeout(
        () => abort(new WebError('timeout', `No complete response within ${request.timeout} ms`)),
        request.timeout,
      )
      request.signal?.addEventListener('abort', onAbort)
      closing.signal.addEventListener('abort', onClose)
      try {
        if (request.signal?.aborted === true) onAbort()
        if (closing.signal.aborted) onClose()
        controller.signal.throwIfAborted()
        return await follow(url, request, agent, controller.signal)
      } catch (error) {
        controller.signal.throwIfAborted()
        throw error instanceof WebError ? error : withStatus(error)
      } finally {
        clearTimeout(timer)
        // Not awaited: a socket that is destroyed sends nothing.
        agent.destroy().catch(() => undefined)
        request.signal?.removeEventListener('abort', onAbort)
        closing.signal.removeEventListener('abort', onClose)
      }
    },
    close: () => closing.abort(),
  }
}

/** Sends the request, and follows its redirects. */
async function follow(
  first: string,
  request: WebRequest,
  agent: Dispatcher,
  signal: AbortSignal,
): Promise<WebResponse> {
  const { maxRedirects = MAX_REDIRECTS } = request
  let url = checkUrl(first)
  const { origin } = url
  let isFirstOrigin = true
  for (let redirects = 0; ; redirects += 1) {
    // Not sent again after another origin, since that origin chose the target.
    isFirstOrigin &&= url.origin === origin
    // oxlint-disable-next-line no-await-in-loop -- each redirect is known after the response
    const response = await sendOnce(url, isFirstOrigin ? request : { ...request, headers: {} }, agent, signal)
    if (!(response instanceof URL)) return response
    if (redirects >= maxRedirects) {
      throw new WebError('too_many_redirects', `More than ${maxRedirects} redirects`)
    }
    // oxlint-disable-next-line no-await-in-loop -- as above
    await request.checkRedirect?.(new URL(response))
    signal.throwIfAborted()
    url = response
  }
}

/** Sends one request. Returns the response, or the URL of a redirect. */
async function sendOnce(
  url: URL,
  { method = 'GET', headers, body, maxBytes, mediaTypes }: WebRequest,
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<WebResponse | URL> {
  const response = await send(url, {
    method,
    body: body ?? null,
    headers: {
      accept: '*/*',
      'accept-encoding': ACCEPTED_CODINGS,
      'user-agent': USER_AGENT,
      ...headers,
    },
    dispatcher,
    signal,
  })
  const { statusCode: status } = response
  // The agent is destroyed after each request. Its error must not be an uncaught one.
  response.body.on('error', () => undefined)
  const received = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, [value].flat()[0] ?? '']),
  )
  const location = received['location']
  if (method === 'GET' && REDIRECTS.has(status) && location !== undefined) {
    response.body.destroy()
    if (!URL.canParse(location, url))
      throw new WebError('fetch_error', 'The redirect is not a URL', { status })
    return checkUrl(new URL(location, url).href)
  }
  const mediaType = (received['content-type'] ?? '').split(';', 1).join('').trim().toLowerCase()
  if (mediaTypes !== undefined && status >= 200 && status <= 299 && !mediaTypes.includes(mediaType)) {
    response.body.destroy()
    const found = mediaType === '' ? 'no content type' : `the content type ${mediaType.slice(0, 100)}`
    throw new WebError('unsupported_content_type', `The response has ${found}`, { status })
  }
  if (Number(received['content-length']) > maxBytes) {
    response.body.destroy()
    throw withStatus(tooLarge(maxBytes), status)
  }
  try {
    // Without a body, these may have the coding that it would have.
    const coding = status === 204 || status === 304 ? '' : (received['content-encoding'] ?? '')
    const bytes = await readBody(response.body, coding, maxBytes)
    return { url: url.href, status, headers: received, mediaType, body: bytes }
  } catch (error) {
    response.body.destroy()
    throw withStatus(error, status)
  }
}

/** Parses a URL. Throws a WebError if it may not be fetched, whatever its address. */
function checkUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new WebError('invalid_url', 'Not an http or https URL')
  }
  if (url.username !== '' || url.password !== '') throw new WebError('invalid_url', 'The URL has credentials')
  if (!WEB_PORTS.has(url.port) && Number(url.port) < FIRST_USER_PORT) {
    throw new WebError('invalid_url', `Port ${url.port} is not used for web pages`)
  }
  url.hash = ''
  return url
}

/** The error of a request, with the status of its response if there was one. */
function withStatus(error: unknown, status?: number): WebError {
  if (error instanceof WebError) return new WebError(error.kind, error.message, { status })
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
  return new WebError('fetch_error', `The request failed${code}`, { status, cause: error })
}
