import { ID_EXPECTED, isId } from '../id.ts'
import { isCalendarDate, isCountryCode, isDomain, MAX_SECONDS } from '../limits.ts'
import type {
  AnyOf,
  BooleanShape,
  JsonRole,
  Limit,
  ObjectShape,
  OnlyOptionalFields,
  OptionalFields,
  RequiredFields,
  Schema,
  TextShape,
} from './schema.ts'

type Strings = Readonly<Record<string, string>>

/* The kinds of schemas of requests. Imported as `s`, as zod is as `z`. */

/** Any string of at most `max` characters. Default: of any length. */
export function anyText(limit?: Limit, max?: number): Schema<string> & TextShape {
  const expected = max === undefined ? 'a string' : `a string of at most ${max} characters`
  return { kind: 'text', expected, max, limit }
}

/** A string that is not empty. The client also refuses white space alone. */
export function text(limit?: Limit): Schema<string> & TextShape {
  return { kind: 'text', expected: 'a non-empty string', min: 1, limit }
}

/** A search query: not blank. */
export const query: Schema<string> = { ...text('query'), fits: isFilled }

/** A string that passes the test. */
export function textThat(fits: (text: string) => boolean, expected: string): Schema<string> & TextShape {
  return { kind: 'text', expected, fits }
}

/** The address of a page: an http or https URL without credentials. */
const pageUrl: Schema<string> & TextShape = {
  kind: 'text',
  expected: 'an http or https URL without credentials',
  fits: isWebUrl,
  limit: 'url',
  format: 'uri',
}

/** The URL of a document, as a search returns it. A document of a local folder without a site has a `file:` URL. */
export const documentUrl: Schema<string> = {
  kind: 'text',
  expected: 'an http, https or file URL without credentials',
  fits: (given) => isWebUrl(given) || (given.startsWith('file://') && URL.canParse(given)),
  limit: 'url',
}

/** Like {@link pageUrl}, for a webhook or a tool server. */
export const webUrl: Schema<string> = {
  ...pageUrl,
  expected: 'a percent-encoded http or https URL without credentials',
  fits: (given) => isWebUrl(given) && URI.test(given),
  isSecret: true,
}

/** An ISO 3166-1 alpha-2 country code (§2.8, §4.7). */
export const country: Schema<string> = {
  ...textThat(isCountryCode, 'a country code of two letters (ISO 3166-1 alpha-2)'),
  format: 'country',
}

/** A calendar date (§2.8). */
export const date = textThat(isCalendarDate, 'a date, YYYY-MM-DD')

/** An id of the service. */
export const id = textThat(isId, ID_EXPECTED)

/** A domain or a suffix of domains (§2.8). */
export const domain = textThat(isDomain, 'a domain such as example.org, or a suffix such as .edu')

/** An integer of at least `min`, and at most `max`. */
export function integer(min: number, max?: number): Schema<number> {
  const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`
  return { kind: 'number', expected: `an integer ${range}`, isInteger: true, min, max }
}

/** A time in s, in a query. */
export const seconds: Schema<number> = {
  kind: 'number',
  expected: `a number from 0 to ${MAX_SECONDS}`,
  min: 0,
  max: MAX_SECONDS,
}

/** A number greater than 0. */
export const positive: Schema<number> = {
  kind: 'number',
  expected: 'a number greater than 0',
  min: 0,
  isMinExcluded: true,
}

/** True or false. */
export const flag: Schema<boolean> & BooleanShape = { kind: 'boolean' }

/** Anything. */
export const unknown: Schema<unknown> = { kind: 'unknown' }

/** One of these strings. */
export function oneOf<Value extends string>(values: readonly Value[]): Schema<Value> {
  return { kind: 'choice', values }
}

/** One of these strings, or another that the service knows. */
export function openOneOf(values: readonly string[]): Schema<string> {
  return { kind: 'choice', values, isOpen: true }
}

/** A list of at least `min` entries. */
export function list<Item>(item: Schema<Item>, limit: Limit, min = 0): Schema<readonly Item[]> {
  return { kind: 'list', item, limit, min }
}

/** An entry, or a list of at least one entry. */
export function oneOrMore<Item>(item: Schema<Item>): Schema<Item | readonly Item[]> {
  return { kind: 'list', item, limit: 'choices', min: 1, orOne: true }
}

/** An object of strings with keys that the caller chooses, of at most `maxKey` characters. */
export function record(value: TextShape, limit: Limit, maxKey?: number): Schema<Strings> {
  return { kind: 'record', value, limit, maxKey }
}

/** Any JSON object. */
export function json(role?: JsonRole): Schema<Readonly<Record<string, unknown>>> {
  return { kind: 'json', role }
}

/** A string, or true or false; or else an object or a list. */
export function either<Simple extends string | boolean, Other>(
  simple: Schema<Simple> & (TextShape | BooleanShape),
  other: Schema<Other>,
): Schema<Simple | Other> {
  return { kind: 'either', simple, other }
}

/** Null, or a value of the schema. */
export function orNull<Value>(value: Schema<Value>): Schema<Value | null> {
  return { kind: 'nullable', value }
}

/** A value that the service lets a caller omit: it takes `fallback` then. The client requires it, as its types do. */
export function withDefault<Value>(value: Schema<Value>, fallback: Value): Schema<Value> {
  return { kind: 'defaulted', value, fallback }
}

/** An object with these fields. The compiler checks them against the fields of `T`. */
export function object<T>(required: RequiredFields<T>, optional: OptionalFields<T>): Schema<T> & ObjectShape {
  return { kind: 'object', required, optional }
}

/** An object whose fields are all optional. At least one of `anyOf` must be given and not empty. */
export function options<T>(
  optional: OnlyOptionalFields<T>,
  anyOf?: AnyOf<Extract<keyof T, string>>,
): Schema<T> & ObjectShape {
  return { kind: 'object', required: {}, optional, anyOf }
}

/**
 * Objects discriminated by their `type`. The compiler checks each against its member of the union `T`. With `fallback` the service
 * accepts an object without a type: it is the first variant that has one of its fields, and `fallback` if it has no field.
 */
export function variants<T extends { readonly type: string }>(
  objects: {
    readonly [Type in T['type']]: Schema<Omit<Extract<T, { readonly type: Type }>, 'type'>> & ObjectShape
  },
  fallback?: T['type'],
): Schema<T> {
  return { kind: 'variants', variants: objects, fallback }
}

/**
 * The characters of a URI: its authority, then its path and query, then its fragment. No two parts match the same characters, so it takes
 * linear time.
 */
const URI =
  /^https?:\/\/(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})+)(?::\d*)?(?:[/?](?:[\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*)?(?:#(?:[\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*)?$/i

function isFilled(given: string): boolean {
  return given.trim() !== ''
}

function isWebUrl(given: string): boolean {
  const url = URL.canParse(given) ? new URL(given) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}
