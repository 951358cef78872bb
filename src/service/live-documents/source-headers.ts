import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { isObject } from '../../protocol/json.ts'

/** Headers of requests, by the origin that gets them. */
export type SourceHeaders = ReadonlyMap<string, Readonly<Record<string, string>>>

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
/** Visible ASCII, spaces and tabs. */
const VALUE = /^[\t\x20-\x7e]+$/
/** Headers of the connection, and those that the service sets itself. */
const RESERVED = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'if-modified-since',
  'if-none-match',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/**
 * Checks the headers for the origins of sources. `urls` are the sources.
 *
 * @throws ArgumentError for an origin without a source, or a header that cannot be sent. The message has no value.
 */
export function checkSourceHeaders(argument: string, given: unknown, urls: readonly string[]): SourceHeaders {
  if (!isObject(given)) throw new ArgumentError(argument, 'an object', hidden(given))
  const origins = new Set(urls.map((url) => new URL(url).origin))
  return new Map(
    Object.entries(given).map(([origin, headers]) => {
      if (!origins.has(origin)) {
        const expected = 'an object whose keys are origins of sources, such as https://wiki.example'
        throw new ArgumentError(argument, expected, hidden(origin))
      }
      return [origin, checkHeaders(argument, headers)]
    }),
  )
}

function checkHeaders(argument: string, headers: unknown): Record<string, string> {
  if (!isObject(headers))
    throw new ArgumentError(argument, 'an object of headers for each origin', hidden(headers))
  const checked: Record<string, string> = {}
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase()
    if (!NAME.test(name) || RESERVED.has(name) || typeof value !== 'string' || !VALUE.test(value)) {
      const expected =
        'an object of headers that the service does not set itself, with values of visible ASCII characters'
      throw new ArgumentError(argument, expected, hidden(value))
    }
    checked[name] = value
  }
  return checked
}
