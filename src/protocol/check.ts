import { ArgumentError } from './argument-error.ts'
import { isObject } from './event.ts'
import { ID_EXPECTED, isId } from './id.ts'
import { MAX_TIMER_DELAY } from './timer-limit.ts'

/*
 * Checks of arguments at the call, before any request. Each throws an {@link ArgumentError} that names the argument,
 * what was expected and what was got. Bodies and queries of requests are checked by their schemas: `requests/check.ts`.
 */

/** An id that goes into a path: text that is not empty, not a dot segment and without control characters. */
export function checkId(argument: string, value: unknown): asserts value is string {
  if (!isId(value)) throw malformedId(argument, value)
}

/** The error for what {@link checkId} refuses. */
export function malformedId(argument: string, value: unknown): ArgumentError {
  return new ArgumentError(argument, ID_EXPECTED, value)
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

/** A list with at least one entry. */
export function checkList(argument: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new ArgumentError(argument, 'a non-empty array', value)
}

/** A JSON object. */
export function checkObject(
  argument: string,
  value: unknown,
): asserts value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new ArgumentError(argument, 'an object', value)
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
