import { ArgumentError, hidden, shownUrl } from '../protocol/argument-error.ts'
import { checkDuration, checkOptions } from '../protocol/check.ts'
import type { Timeouts, WireRequest } from './exchange.ts'
import { createRedactor, secretsIn } from './redact.ts'
import type { Redact } from './redact.ts'

/** A value in a query: undefined and null are left out, a list repeats its name. */
type QueryValue = string | number | boolean | null | undefined | readonly (string | number | boolean)[]

/** One request to the service. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST'
  /** Begins with `/`; ids in it are encoded already, and it has no query. */
  readonly path: string
  readonly query?: Readonly<Record<string, QueryValue>> | undefined
  /** Sent as JSON; undefined sends no body. */
  readonly body?: unknown
  /** Headers of this request alone, on top of the transport's. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Beta features that the request asks for, as values of the beta header (§9). */
  readonly betas?: readonly string[] | undefined
  /** In place of the transport's, for a request that is known to take longer. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** Whether an answer without a body is one. Default false: it is a ProtocolError. */
  readonly mayBeEmpty?: boolean | undefined
  /** Whether it may be sent again even if the service can have acted on it. */
  readonly idempotent: boolean
}

/** Where requests go and what goes with each of them. */
export interface EndpointSettings {
  /**
   * Address of the service, `https://host` or, under a prefix, `https://host/prefix`: without credentials, query or
   * fragment. In a browser also a path, `/api`, on the page's own host.
   */
  readonly baseUrl: string
  /**
   * Goes with every request as `x-api-key` (§5), and nowhere else. `null` sends none: for a gateway that adds the key itself.
   */
  readonly apiKey: string | null
  /** Name of the header that asks for beta features (§9). Default `service-beta`. */
  readonly betaHeader?: string | undefined
  /** More headers for every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Allows plain http, which shows secrets to everybody on the way, beyond this machine. Default false. */
  readonly allowInsecure?: boolean | undefined
  /** How long to wait for what; see {@link Timeouts} for the defaults. Infinity waits for ever. */
  readonly timeouts?: Partial<Timeouts> | undefined
}

/** Makes requests ready for the wire. */
export interface Endpoint {
  prepare(request: ApiRequest, accept: string, coding: string): WireRequest
  /** Takes the secrets that every request has out of a text. */
  readonly redact: Redact
  /** What takes the secrets of a request out of a text. */
  redactorOf(request: WireRequest): Redact
}

const TIMEOUTS: Timeouts = { connect: 10_000, headers: 30_000, silence: 60_000 }

/** Headers that are the transport's to set, or HTTP's own. */
const RESERVED = new Set([
  'x-api-key',
  'accept',
  'content-type',
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
])

/** Checks the settings, throwing an ArgumentError that does not repeat what may be secret. */
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
  const own = readHeaders(settings.headers)
  const isPublic = (name: string) => name === beta
  const hasSecrets = apiKey !== null || secretsIn(own, isPublic).length > 0
  const base = parseBaseUrl(settings.baseUrl, allowInsecure || !hasSecrets)
  const timeouts = readTimeouts(settings.timeouts, TIMEOUTS)
  const redactorOf = (headers: WireRequest['headers']): Redact => {
    // Made for the first failure, since most requests have none.
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
        ...readHeaders(request.headers),
        accept,
        ...(apiKey !== null && { 'x-api-key': apiKey }),
      }
      if (body !== undefined) headers['content-type'] = 'application/json'
      const asked = [headers[beta] ?? [], readBetas(betas)].flat()
      if (asked.length > 0) headers[beta] = asked.join(',')
      return {
        origin: base.origin,
        path: base.prefix + readPath(request.path) + queryString(request.query),
        method,
        headers,
        ...(body !== undefined && { body }),
        timeouts: readTimeouts(request.timeouts, timeouts),
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
  if (url.protocol === 'http:' && !allowInsecure && !isLoopback(url.hostname)) {
    throw mustBe('an https URL, since plain http would show the key on the way (allowInsecure allows it)')
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}

function isUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value)
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && /^\/(?!\/)[!-~]*$/.test(value) && !value.includes('\\')
}

/** The address of a path on the host of the page that this runs in. */
function onThisPage(path: string): URL {
  const page = globalThis.location?.href
  if (page === undefined || !URL.canParse(path, page)) {
    const expected = 'a whole URL: a path is resolved against the address of a page, and there is none here'
    throw new ArgumentError('baseUrl', expected, path)
  }
  return new URL(path, page)
}

/** By the name alone: who resolves another name to this machine must say allowInsecure. */
function isLoopback(hostname: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|\[::1\]|(.+\.)?localhost)$/.test(hostname)
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
    // A cycle or a bigint: refused below.
  }
  // Not repeated: a body may carry the credentials of tool servers (§5).
  throw new ArgumentError('body', 'something that JSON can hold', hidden(body))
}

/** Headers with their names in lower case. Values may be secret too, so errors name the header only. */
function readHeaders(headers: unknown): Record<string, string> {
  const read: Record<string, string> = {}
  if (headers === undefined) return read
  if (typeof headers !== 'object' || headers === null)
    throw new ArgumentError('headers', 'an object', hidden(headers))
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase()
    if (!isToken(name)) throw new ArgumentError('headers', 'an object with names of headers', given)
    if (RESERVED.has(name))
      throw new ArgumentError('headers', `without ${name}, which the transport sets itself`, name)
    if (typeof value !== 'string' || !isHeaderValue(value))
      throw new ArgumentError(`headers.${name}`, 'a header value of visible ASCII characters', hidden(value))
    read[name] = value
  }
  return read
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
    if (value === 0) throw new ArgumentError(`timeouts.${name}`, 'more than 0 ms; Infinity waits for ever', 0)
  }
  return timeouts
}

function isToken(text: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text)
}

function isHeaderValue(text: string): boolean {
  return /^([!-~]([ \t!-~]*[!-~])?)?$/.test(text)
}
