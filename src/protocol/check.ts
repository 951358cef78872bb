import { ArgumentError } from './argument-error.ts'
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

/**
 * Checks of arguments at the call, before any request. Each throws an {@link ArgumentError} that names the argument,
 * what was expected and what was got.
 */

/** An id that goes into a path: text that is not empty, not a dot segment and without control characters. */
export function checkId(argument: string, value: unknown): asserts value is string {
  // A dot segment survives encodeURIComponent and would lead to another path.
  const fits =
    typeof value === 'string' &&
    value.isWellFormed() &&
    value.length > 0 &&
    value.length <= 512 &&
    !/^\.\.?$/.test(value)
  // oxlint-disable-next-line no-control-regex
  if (!fits || /[\u0000-\u001F\u007F]/.test(value))
    throw new ArgumentError(argument, 'an id, a non-empty string of at most 512 characters', value)
}

/** Text with something in it. */
export function checkText(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value.trim() === '')
    throw new ArgumentError(argument, 'a non-empty string', value)
}

/** A whole number from `min` to `max`. */
export function checkInteger(
  argument: string,
  value: unknown,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  throw new ArgumentError(argument, `an integer ${range}`, value)
}

/** A time in ms: finite, not negative; `Infinity` where `orNever` says that it means never. */
export function checkDuration(argument: string, value: unknown, orNever = false): void {
  if (typeof value === 'number' && value >= 0 && (Number.isFinite(value) || (orNever && value === Infinity)))
    return
  throw new ArgumentError(argument, 'a number of milliseconds, 0 or more', value)
}

/** The longest that a timer can wait, in ms, some 24 days; one takes anything above for nothing. */
export const LONGEST_WAIT = 2 ** 31 - 1

/** A time in ms that a timer can wait; `Infinity` where `orNever` says that it means never. */
export function checkWait(argument: string, value: unknown, orNever = false): void {
  if (typeof value === 'number' && value >= 0 && (value <= LONGEST_WAIT || (orNever && value === Infinity)))
    return
  throw new ArgumentError(argument, `a number of milliseconds from 0 to ${LONGEST_WAIT}`, value)
}

/** An AbortSignal. */
export function checkSignal(argument: string, value: unknown): void {
  if (value instanceof AbortSignal) return
  throw new ArgumentError(argument, 'an AbortSignal', value)
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
  if (typeof value !== 'string' || !isCountryCode(value)) {
    throw new ArgumentError(argument, 'a country code of two letters (ISO 3166-1 alpha-2)', value)
  }
}

/** A number and `h`, `d` or `w`, within 1h to 30d (§2.1). */
export function checkFrequency(argument: string, value: unknown): void {
  if (typeof value !== 'string' || parseFrequency(value) === undefined) {
    throw new ArgumentError(argument, 'a frequency from 1h to 30d, such as 12h, 1d or 2w', value)
  }
}

/** An http or https URL without credentials in it. */
export function checkUrl(argument: string, value: unknown): void {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    // The value is not repeated: what is wrong with it may be the password in it.
    throw new ArgumentError(argument, 'an http or https URL without credentials', typeof value)
  }
}

/** A list with at least one entry and at most `max`. */
export function checkList(
  argument: string,
  value: unknown,
  max = Number.MAX_SAFE_INTEGER,
): asserts value is readonly unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= max) return
  throw new ArgumentError(
    argument,
    max === Number.MAX_SAFE_INTEGER ? 'a non-empty array' : `an array of 1 to ${max}`,
    value,
  )
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
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ArgumentError(argument, 'an object', value)
}

/** A monitor's metadata: strings, keys of at most 16 characters and values of at most 512 (§8). */
export function checkMonitorMetadata(argument: string, value: unknown): void {
  checkObject(argument, value)
  for (const [key, entry] of Object.entries(value)) {
    if (key.length > MAX_METADATA_KEY) {
      throw new ArgumentError(argument, `an object with keys of at most ${MAX_METADATA_KEY} characters`, key)
    }
    if (typeof entry !== 'string' || entry.length > MAX_METADATA_VALUE) {
      throw new ArgumentError(
        `${argument}.${key}`,
        `a string of at most ${MAX_METADATA_VALUE} characters`,
        entry,
      )
    }
  }
}

/** Domains or suffixes and a date (§2.8). */
export function checkSourcePolicy(argument: string, value: unknown): void {
  checkObject(argument, value)
  for (const name of ['include_domains', 'exclude_domains'] as const) {
    const domains = value[name]
    if (domains === undefined) continue
    if (!Array.isArray(domains))
      throw new ArgumentError(`${argument}.${name}`, 'an array of domains', domains)
    for (const domain of domains) {
      if (typeof domain !== 'string' || !isDomain(domain)) {
        throw new ArgumentError(
          `${argument}.${name}`,
          'an array of domains such as example.org or .edu',
          domain,
        )
      }
    }
  }
  if (value['after_date'] !== undefined) checkDate(`${argument}.after_date`, value['after_date'])
}
