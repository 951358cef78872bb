import { ArgumentError, hidden } from './argument-error.ts'
import { isObject } from './json.ts'

/** Headers that HTTP itself sets. */
const OF_HTTP = [
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
]

/** The names of headers that a user cannot set: those of HTTP itself, and these. */
export function reservedHeaders(...names: readonly string[]): ReadonlySet<string> {
  return new Set([...OF_HTTP, ...names])
}

/**
 * Headers with their names in lower case. Undefined stands for none.
 *
 * @throws {ArgumentError} for what cannot be a header, and for a reserved one. It names only the header, since its value may be secret.
 */
export function readHeaders(headers: unknown, reserved: ReadonlySet<string>): Record<string, string> {
  const read: Record<string, string> = {}
  if (headers === undefined) return read
  // `Headers` and a `Map` have no entries of their own: they would be lost.
  if (!isObject(headers) || Symbol.iterator in headers)
    throw new ArgumentError('headers', 'an object', hidden(headers))
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase()
    if (!isToken(name)) throw new ArgumentError('headers', 'an object whose keys are header names', given)
    if (reserved.has(name))
      throw new ArgumentError('headers', `without ${name}, which the library sets itself`, name)
    if (typeof value !== 'string' || !isHeaderValue(value))
      throw new ArgumentError(`headers.${name}`, 'a header value of visible ASCII characters', hidden(value))
    read[name] = value
  }
  return read
}

/** Whether it can be the name of a header. */
export function isToken(text: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text)
}

function isHeaderValue(text: string): boolean {
  return /^([!-~]([ \t!-~]*[!-~])?)?$/.test(text)
}
