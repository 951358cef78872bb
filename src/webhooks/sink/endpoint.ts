import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkOptions } from '../../protocol/check.ts'

/** Credentials of a receiver. */
export type Credentials =
  | { readonly bearer: string; readonly user?: undefined; readonly password?: undefined }
  | { readonly user: string; readonly password: string; readonly bearer?: undefined }

/** The target of requests. */
export interface Endpoint {
  /** URL without user and password. */
  readonly url: string
  /** The origin of the URL, which may be shown. */
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  /** Texts that an error must not contain. */
  readonly secrets: readonly string[]
}

/** A text that is part of a header. */
const HEADER_TEXT = /^[\u0021-\u007E]+$/

/**
 * Checks a URL and the credentials for it. User and password of the URL become a header, since `fetch` refuses them.
 *
 * @param path Appended to the path of the URL, unless the path ends with it.
 * @throws {ArgumentError} for a text that is not an http or https URL. The error does not show it.
 */
export function endpointOf(argument: string, value: unknown, credentials?: unknown, path = ''): Endpoint {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ArgumentError(argument, 'a URL of http or https', hidden(value))
  }
  const { origin, username, password } = url
  url.username = ''
  url.password = ''
  url.hash = ''
  if (!url.pathname.endsWith(path)) url.pathname = url.pathname.replace(/\/$/, '') + path
  const inUrl = username !== '' || password !== ''
  if (inUrl && credentials !== undefined) {
    throw new ArgumentError('auth', 'absent if the URL has a user', hidden(credentials))
  }
  const { authorization, secrets } = inUrl
    ? basic(decoded(username), decoded(password))
    : authorizationOf(credentials)
  return {
    url: url.href,
    origin,
    headers: authorization === undefined ? {} : { authorization },
    secrets: [...secrets, ...secretParts(url)],
  }
}

/** Parts of a URL that an answer may repeat: the path and the query of a webhook's URL are often its secret. */
function secretParts({ href, pathname, search, searchParams }: URL): readonly string[] {
  const parts = [href, pathname + search, pathname, ...pathname.split('/'), ...search.slice(1).split(/[&=]/)]
  const texts = [...parts, ...parts.map(decoded), ...searchParams.values()]
  return [...new Set(texts)].filter((text) => text.length >= 8)
}

interface Authorization {
  readonly authorization: string | undefined
  readonly secrets: readonly string[]
}

function authorizationOf(credentials: unknown): Authorization {
  if (credentials === undefined) return { authorization: undefined, secrets: [] }
  checkOptions('auth', credentials, ['bearer', 'user', 'password'])
  const { bearer, user, password } = credentials as Readonly<Record<string, unknown>>
  if (typeof bearer === 'string' && user === undefined && password === undefined) {
    if (!HEADER_TEXT.test(bearer)) throw new ArgumentError('auth.bearer', 'visible ASCII', hidden(bearer))
    return { authorization: `Bearer ${bearer}`, secrets: [bearer] }
  }
  if (
    typeof user === 'string' &&
    typeof password === 'string' &&
    bearer === undefined &&
    !user.includes(':')
  ) {
    return basic(user, password)
  }
  throw new ArgumentError('auth', '{ bearer } or { user, password }', hidden(credentials))
}

function basic(user: string, password: string): Authorization {
  const encoded = base64(new TextEncoder().encode(`${user}:${password}`))
  return { authorization: `Basic ${encoded}`, secrets: [encoded, ...(password === '' ? [] : [password])] }
}

/** Bytes in Base64. */
export function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
