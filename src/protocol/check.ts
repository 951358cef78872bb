import { ArgumentError, hidden } from './argument-error.ts'
import { isObject } from './event.ts'
import { isId } from './id.ts'
import {
  isCalendarDate,
  isCountryCode,
  isDomain,
  MAX_METADATA_KEY,
  MAX_METADATA_VALUE,
  MAX_PAGE_LIMIT,
  parseFrequency,
} from './limits.ts'
import { RUN_STATUSES } from './task.ts'
import { MAX_TIMER_DELAY } from './timer-limit.ts'

/**
 * Checks of arguments at the call, before any request. Each throws an {@link ArgumentError} that names the argument,
 * what was expected and what was got.
 */
type Check = (argument: string, value: unknown) => void

/** Checks those of an object's fields that are given. `prefix` comes before their names in errors. */
export function checkGiven<T extends object>(
  object: T,
  checks: { readonly [Name in keyof T]?: Check },
  prefix = '',
): void {
  for (const name in checks) if (object[name] !== undefined) checks[name]?.(prefix + name, object[name])
}

/** A JSON object; of its fields, those that are given are checked. */
export function checkFields(
  argument: string,
  value: unknown,
  checks: Readonly<Record<string, Check>>,
): asserts value is Readonly<Record<string, unknown>> {
  checkObject(argument, value)
  checkGiven(value, checks, `${argument}.`)
}

/** An id that goes into a path: text that is not empty, not a dot segment and without control characters. */
export function checkId(argument: string, value: unknown): asserts value is string {
  if (!isId(value)) throw malformedId(argument, value)
}

/** The error for what {@link checkId} refuses. */
export function malformedId(argument: string, value: unknown): ArgumentError {
  return new ArgumentError(argument, 'an id, a non-empty string of at most 512 characters', value)
}

/** Text with something in it. */
export function checkText(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value.trim() === '')
    throw new ArgumentError(argument, 'a non-empty string', value)
}

/** A whole number from `min` to `max`. */
export function checkInteger(argument: string, value: unknown, min: number, max?: number): void {
  if (!Number.isSafeInteger(value) || !isWithin(value, min, max))
    throw new ArgumentError(argument, `an integer ${rangeOf(min, max)}`, value)
}

/** A whole number of at least 1. */
export function checkCount(argument: string, value: unknown): void {
  checkInteger(argument, value, 1)
}

/** A time in ms: finite, not negative, at most `max`; `Infinity` where `orNever` says that it means never. */
export function checkDuration(argument: string, value: unknown, orNever = false, max?: number): void {
  if (!isWithin(value, 0, max) && !(orNever && value === Infinity))
    throw new ArgumentError(argument, `a number of milliseconds ${rangeOf(0, max)}`, value)
}

/** A time in ms that a timer can wait; `Infinity` where `orNever` says that it means never. */
export function checkWait(argument: string, value: unknown, orNever = false): void {
  checkDuration(argument, value, orNever, MAX_TIMER_DELAY)
}

/** Whether it is a finite number within these bounds. */
function isWithin(value: unknown, min: number, max = Number.MAX_VALUE): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

function rangeOf(min: number, max?: number): string {
  return max === undefined ? `of at least ${min}` : `from ${min} to ${max}`
}

/** An AbortSignal. */
export function checkSignal(argument: string, value: unknown): void {
  if (!(value instanceof AbortSignal)) throw new ArgumentError(argument, 'an AbortSignal', value)
}

/** True or false. */
export function checkBoolean(argument: string, value: unknown): void {
  if (typeof value !== 'boolean') throw new ArgumentError(argument, 'a boolean', value)
}

/** One of a closed list. */
export function checkOneOf(argument: string, value: unknown, allowed: readonly unknown[]): void {
  if (!allowed.includes(value)) throw new ArgumentError(argument, `one of ${allowed.join(', ')}`, value)
}

/** Events a page, 1 to 100 (§4.1). */
export function checkPageLimit(argument: string, value: unknown): void {
  checkInteger(argument, value, 1, MAX_PAGE_LIMIT)
}

/** A status of §2.7. */
export function checkRunStatus(argument: string, value: unknown): void {
  checkOneOf(argument, value, RUN_STATUSES)
}

/** A calendar date, YYYY-MM-DD. */
function checkDate(argument: string, value: unknown): void {
  if (typeof value !== 'string' || !isCalendarDate(value))
    throw new ArgumentError(argument, 'a date, YYYY-MM-DD', value)
}

/** An ISO 3166-1 alpha-2 country code. */
export function checkCountryCode(argument: string, value: unknown): void {
  if (typeof value !== 'string' || !isCountryCode(value))
    throw new ArgumentError(argument, 'a country code of two letters (ISO 3166-1 alpha-2)', value)
}

/** A number and `h`, `d` or `w`, within 1h to 30d (§2.1). */
export function checkFrequency(argument: string, value: unknown): void {
  if (typeof value !== 'string' || parseFrequency(value) === undefined)
    throw new ArgumentError(argument, 'a frequency from 1h to 30d, such as 12h, 1d or 2w', value)
}

/** An http or https URL without credentials in it. */
function checkUrl(argument: string, value: unknown): void {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    // Its password may be what is wrong with it, and the path of a webhook is often secret too.
    throw new ArgumentError(argument, 'an http or https URL without credentials', hidden(value))
  }
}

/** Where webhooks go, and which (§6.1). */
export function checkWebhook(argument: string, value: unknown): void {
  checkObject(argument, value)
  checkUrl(`${argument}.url`, value['url'])
  checkTexts(`${argument}.event_types`, value['event_types'])
}

/** A list with at least one entry. */
export function checkList(argument: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new ArgumentError(argument, 'a non-empty array', value)
}

/** A list of at least one text. */
export function checkTexts(argument: string, value: unknown): void {
  checkList(argument, value)
  for (const [index, entry] of value.entries()) checkText(`${argument}[${index}]`, entry)
}

/** A JSON object. */
export function checkObject(
  argument: string,
  value: unknown,
): asserts value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new ArgumentError(argument, 'an object', value)
}

/** A monitor's metadata: strings, keys of at most 16 characters and values of at most 512 (§8). */
export function checkMonitorMetadata(argument: string, value: unknown): void {
  checkObject(argument, value)
  for (const [key, entry] of Object.entries(value)) {
    if (key.length > MAX_METADATA_KEY)
      throw new ArgumentError(argument, `an object with keys of at most ${MAX_METADATA_KEY} characters`, key)
    if (typeof entry !== 'string' || entry.length > MAX_METADATA_VALUE) {
      const expected = `a string of at most ${MAX_METADATA_VALUE} characters`
      throw new ArgumentError(`${argument}.${key}`, expected, entry)
    }
  }
}

/** Domains or suffixes and a date (§2.8). */
export function checkSourcePolicy(argument: string, value: unknown): void {
  checkFields(argument, value, {
    include_domains: checkDomains,
    exclude_domains: checkDomains,
    after_date: checkDate,
  })
}

function checkDomains(argument: string, value: unknown): void {
  const wrong: readonly unknown[] = Array.isArray(value)
    ? value.filter((domain) => typeof domain !== 'string' || !isDomain(domain))
    : [value]
  if (wrong.length > 0)
    throw new ArgumentError(argument, 'an array of domains such as example.org or .edu', wrong[0])
}

/**
 * Options of a call: undefined, or an object without any name but these. Others are refused by name, with the nearest
 * known one, since a misspelled option would otherwise do nothing.
 */
export function checkOptions(argument: string, value: unknown, knownNames: readonly string[]): void {
  if (value === undefined) return
  checkObject(argument, value)
  const unknown = Object.keys(value).find((name) => !knownNames.includes(name))
  if (unknown === undefined) return
  const nearest = nearestOf(unknown, knownNames)
  const hint =
    nearest === undefined ? `known are ${knownNames.toSorted().join(', ')}` : `did you mean ${nearest}?`
  // The value is left out: it may be a key under a wrong name.
  const shown = unknown.slice(0, 60)
  throw new ArgumentError(shown, { message: `${argument} has no option ${shown}; ${hint}` }, undefined)
}

/** The name that is one or two mistakes away, or differs in its spelling of words alone. */
function nearestOf(given: string, names: readonly string[]): string | undefined {
  const plain = (name: string) => name.replaceAll(/[^a-z0-9]/gi, '').toLowerCase()
  const ranked = names
    .map((name) => ({ name, distance: editDistance(plain(given.slice(0, 60)), plain(name)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const [best] = ranked
  if (best === undefined || best.distance > Math.max(1, Math.min(3, best.name.length / 3))) return undefined
  return best.name
}

/** How many characters have to be put in, left out or changed to get from one text to the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [at, character] of Array.from(from).entries()) {
    const next = [at + 1]
    for (let column = 1; column <= to.length; column++) {
      const changed = (row[column - 1] ?? 0) + (to[column - 1] === character ? 0 : 1)
      next.push(Math.min((row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1, changed))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
