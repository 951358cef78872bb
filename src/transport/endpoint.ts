import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration } from '../protocol/check.ts'
import type { Timeouts, WireRequest } from './exchange.ts'

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
  /** Whether it may be sent again even if the service can have acted on it. */
  readonly idempotent: boolean
}

/** Where requests go and what goes with each of them. */
export interface EndpointSettings {
  /**
   * Address of the service, `https://host` or, under a prefix, `https://host/prefix`: without credentials, query or
   * fragment.
   */
  readonly baseUrl: string
  /** Goes with every request as `x-api-key` (§5), and nowhere else. */
  readonly apiKey: string
  /** Name of the header that asks for beta features (§9). Default `service-beta`. */
  readonly betaHeader?: string | undefined
  /** More headers for every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Allows plain http, which shows the key to everybody on the way, beyond this machine. Default false. */
  readonly allowInsecure?: boolean | undefined
  /** How long to wait for what; see {@link Timeouts} for the defaults. Infinity waits for ever. */
  readonly timeouts?: Partial<Timeouts> | undefined
}

/** Makes requests ready for the wire. */
export interface Endpoint {
  prepare(request: ApiRequest, accept: string, coding: string): WireRequest
  /** Takes the key out of a text. */
  redact(text: string): string
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

/** What stands in errors for a value that may hold a secret. */
const HIDDEN = '(not shown)'

/** Checks the settings, throwing an ArgumentError that does not repeat what may be secret. */
export function createEndpoint(settings: EndpointSettings): Endpoint {
  const { apiKey, betaHeader = 'service-beta', allowInsecure = false } = settings
  const base = parseBaseUrl(settings.baseUrl, allowInsecure)
  if (typeof apiKey !== 'string' || !/^[!-~]+$/.test(apiKey)) {
    throw new ArgumentError('apiKey', 'a non-empty string of visible ASCII characters', HIDDEN)
  }
  const beta = typeof betaHeader === 'string' ? betaHeader.toLowerCase() : ''
  if (!isToken(beta) || RESERVED.has(beta))
    throw new ArgumentError('betaHeader', 'the name of a header', betaHeader)
  const own = readHeaders(settings.headers)
  const timeouts = readTimeouts(settings.timeouts, TIMEOUTS)

  return {
    prepare(request, accept, coding) {
      const { method, betas = [] } = request
      const body = request.body === undefined ? undefined : toJson(request.body)
      const headers: Record<string, string> = {
        'accept-encoding': coding,
        ...own,
        ...readHeaders(request.headers),
        accept,
        'x-api-key': apiKey,
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
    // A key too short to be one would be found in ordinary words.
    redact: (text) => (apiKey.length < 8 ? text : text.replaceAll(apiKey, HIDDEN)),
  }
}

function parseBaseUrl(
  value: unknown,
  allowInsecure: boolean,
): { readonly origin: string; readonly prefix: string } {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw baseUrlMustBe('an http or https URL')
  if (url.username !== '' || url.password !== '')
    throw baseUrlMustBe('a URL without credentials; the key is the setting apiKey')
  if (url.search !== '' || url.hash !== '') throw baseUrlMustBe('a URL without query and fragment')
  if (url.protocol === 'http:' && !allowInsecure && !isLoopback(url.hostname)) {
    throw baseUrlMustBe(
      'an https URL, since plain http would show the key on the way (allowInsecure allows it)',
    )
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}

function baseUrlMustBe(expected: string): ArgumentError {
  return new ArgumentError('baseUrl', expected, HIDDEN)
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
  throw new ArgumentError('body', 'something that JSON can hold', typeof body)
}

/** Headers with their names in lower case. Values may be secret too, so errors name the header only. */
function readHeaders(headers: unknown): Record<string, string> {
  const read: Record<string, string> = {}
  if (headers === undefined) return read
  if (typeof headers !== 'object' || headers === null)
    throw new ArgumentError('headers', 'an object', typeof headers)
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase()
    if (!isToken(name)) throw new ArgumentError('headers', 'an object with names of headers', given)
    if (RESERVED.has(name))
      throw new ArgumentError('headers', `without ${name}, which the transport sets itself`, name)
    if (typeof value !== 'string' || !isHeaderValue(value))
      throw new ArgumentError(`headers.${name}`, 'a header value of visible ASCII characters', HIDDEN)
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
