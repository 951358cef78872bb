import { ArgumentError, hidden, shownUrl } from '../protocol/argument-error.ts'
import { checkDuration, checkOptions } from '../protocol/check.ts'
import { isLoopback } from '../protocol/loopback.ts'
import type { Quota } from '../protocol/quotas.ts'
import { createRedactor, secretsIn } from '../protocol/redactor.ts'
import type { Redact } from '../protocol/redactor.ts'
import { isToken, readHeaders, reservedHeaders } from '../protocol/request-headers.ts'
import { DEFAULT_TIMEOUTS } from './exchange.ts'
import type { Timeouts, WireRequest } from './exchange.ts'

/** A value in a query. Undefined and null are omitted; a list repeats its name. */
type QueryValue = string | number | boolean | null | undefined | readonly (string | number | boolean)[]

/** One request to the service. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST'
  /** Begins with `/`, contains encoded ids, and has no query. */
  readonly path: string
  /** Parameters of the URL. An undefined one is not sent. Default: none. */
  readonly query?: Readonly<Record<string, QueryValue>> | undefined
  /** Sent as JSON; undefined sends no body. */
  readonly body?: unknown
  /** Headers of this request, in addition to the client's. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Beta features that the request asks for, as values of the beta header (§9). Default: none. */
  readonly betas?: readonly string[] | undefined
  /** Timeouts of this request, in ms. Default: those of the client. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** The least `timeouts.headers`, in ms, for a request that the service keeps waiting. Default: none. */
  readonly minHeaders?: number | undefined
  /** The least `timeouts.silence`, in ms: a shorter one of the transport is raised to it. Default: none. */
  readonly minSilence?: number | undefined
  /** Whether the response may have no body. Default false: an empty body is a ProtocolError. */
  readonly mayBeEmpty?: boolean | undefined
  /** The most retries, which replaces the transport's setting. */
  readonly retries?: number | undefined
  /** The quota that the request counts for. Default: none. */
  readonly quota?: Quota | undefined
  /** Whether it may be sent again even if the service may have acted on it. */
  readonly idempotent: boolean
}

/** The address of the service, and the headers and settings of each request. */
export interface EndpointSettings {
  /**
   * Address of the service, `https://host` or `https://host/prefix`, without credentials, query or fragment. In a browser
   * also a path on the page's own host, such as `/api`. Default: the environment variable `RIVULET_BASE_URL`.
   */
  readonly baseUrl: string
  /**
   * Sent with every request as `x-api-key` (§5), and nowhere else. `null` sends none, for a proxy that adds the key.
   * Default: the environment variable `RIVULET_API_KEY`.
   */
  readonly apiKey: string | null
  /**
   * Name of the header that requests beta features (§9). Default: the environment variable `RIVULET_BETA_HEADER`, else
   * `service-beta`.
   */
  readonly betaHeader?: string | undefined
  /** Additional headers for every request. `x-api-key`, `accept`, `content-type` and the headers of HTTP itself are refused. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Allows plain http to other machines with a key or another secret header. Loopback addresses are always allowed. Default false. */
  readonly allowInsecure?: boolean | undefined
  /** Timeouts of each request, in ms; see {@link Timeouts} for the defaults. Infinity disables one. */
  readonly timeouts?: Partial<Timeouts> | undefined
}

/** Prepares requests for the wire. */
export interface Endpoint {
  prepare(request: ApiRequest, accept: string, coding: string): WireRequest
  /** Removes the secrets that every request has from a text. */
  readonly redact: Redact
  /** Returns the function that removes the secrets of a request from a text. */
  redactorOf(request: WireRequest): Redact
}

/** Headers that the transport or HTTP sets. */
const RESERVED = reservedHeaders('x-api-key', 'accept', 'content-type')

/** Checks the settings. Throws an ArgumentError, which never contains a value that may be secret. */
export function createEndpoint(settings: EndpointSettings): Endpoint {
  const { apiKey, betaHeader = 'service-beta', allowInsecure = false } = settings
  if (apiKey !== null && (typeof apiKey !== 'string' || !/^[!-~]+$/.test(apiKey))) {
    throw new ArgumentError(
      'apiKey',
      'a non-empty string of visible ASCII characters, or null for none',
      hidden(apiKey),
    )
  }
  const beta = typeof betaHeader === 'string' ? betaHeader.toLowerCase() : ''
  if (!isToken(beta) || RESERVED.has(beta))
    throw new ArgumentError('betaHeader', 'the name of a header', betaHeader)
  const own = readHeaders(settings.headers, RESERVED)
  const isPublic = (name: string) => name === beta
  const hasSecrets = apiKey !== null || secretsIn(own, isPublic).length > 0
  const base = parseBaseUrl(settings.baseUrl, allowInsecure || !hasSecrets)
  const timeouts = readTimeouts(settings.timeouts, DEFAULT_TIMEOUTS)
  const redactorOf = (headers: WireRequest['headers']): Redact => {
    // Created at the first failure, since most requests have none.
    let redact: Redact | undefined
    return (text) => (redact ??= createRedactor(secretsIn(headers, isPublic)))(text)
  }

  return {
    redact: redactorOf({ ...own, ...(apiKey !== null && { 'x-api-key': apiKey }) }),
    prepare(request, accept, coding) {
      const { method, betas = [] } = request
      const body = request.body === undefined ? undefined : toJson(request.body)
      const headers: Record<string, string> = {
        'accept-encoding': coding,
        ...own,
        ...readHeaders(request.headers, RESERVED),
        accept,
        ...(apiKey !== null && { 'x-api-key': apiKey }),
      }
      if (body !== undefined) headers['content-type'] = 'application/json'
      const requestTimeouts = readTimeouts(request.timeouts, timeouts)
      const headersTimeout = Math.max(requestTimeouts.headers, request.minHeaders ?? 0)
      const silence = Math.max(requestTimeouts.silence, request.minSilence ?? 0)
      const requested = [headers[beta] ?? [], readBetas(betas)].flat()
      if (requested.length > 0) headers[beta] = requested.join(',')
      return {
        origin: base.origin,
        path: base.prefix + readPath(request.path) + queryString(request.query),
        method,
        headers,
        ...(body !== undefined && { body }),
        timeouts: { ...requestTimeouts, headers: headersTimeout, silence },
      }
    },
    redactorOf: ({ headers }) => redactorOf(headers),
  }
}

function parseBaseUrl(
  value: unknown,
  allowInsecure: boolean,
): { readonly origin: string; readonly prefix: string } {
  const mustBe = (expected: string) => new ArgumentError('baseUrl', expected, shownUrl(value))
  const url = isPath(value) ? onThisPage(value) : isUrl(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw mustBe('an http or https URL, such as https://research.example')
  if (url.username !== '' || url.password !== '')
    throw mustBe('a URL without credentials; the key is the setting apiKey')
  if (url.search !== '' || url.hash !== '') throw mustBe('a URL without query and fragment')
  // Another name that resolves to this machine needs allowInsecure.
  if (url.protocol === 'http:' && !allowInsecure && !isLoopback(url.hostname)) {
    throw mustBe('an https URL, since plain http would expose the key (allowInsecure allows it)')
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}

function isUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value)
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && /^\/(?!\/)[!-~]*$/.test(value) && !value.includes('\\')
}

/** The address of a path on the host of the current page. */
function onThisPage(path: string): URL {
  const page = globalThis.location?.href
  if (page === undefined || !URL.canParse(path, page)) {
    const expected = 'a whole URL: a path is resolved against the address of a page, which only a browser has'
    throw new ArgumentError('baseUrl', expected, path)
  }
  return new URL(path, page)
}

function readPath(path: unknown): string {
  if (typeof path === 'string' && /^\/[!-~]*$/.test(path) && !/[?#\\]/.test(path)) return path
  throw new ArgumentError('path', "an encoded path that begins with '/', without query", path)
}

function queryString(query: ApiRequest['query']): string {
  if (query === undefined) return ''
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue
    for (const entry of [value].flat()) params.append(name, String(entry))
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}

function toJson(body: unknown): string {
  try {
    const text: unknown = JSON.stringify(body)
    if (typeof text === 'string') return text
  } catch {
    // A cycle or a bigint is refused below.
  }
  // Hidden, since a body may contain the credentials of tool servers (§5).
  throw new ArgumentError('body', 'a JSON value', hidden(body))
}

function readBetas(betas: readonly string[]): readonly string[] {
  for (const value of betas) {
    if (!isToken(value)) throw new ArgumentError('betas', 'names of beta features', value)
  }
  return betas
}

function readTimeouts(given: Partial<Timeouts> | undefined, defaults: Timeouts): Timeouts {
  checkOptions('timeouts', given, ['connect', 'headers', 'silence'])
  const { connect = defaults.connect, headers = defaults.headers, silence = defaults.silence } = given ?? {}
  const timeouts = { connect, headers, silence }
  for (const [name, value] of Object.entries(timeouts)) {
    checkDuration(`timeouts.${name}`, value, true)
    if (value === 0) throw new ArgumentError(`timeouts.${name}`, 'more than 0 ms; Infinity disables it', 0)
  }
  return timeouts
}
