import { ArgumentError, hidden } from './argument-error.ts'
import { isObject } from './json.ts'
import { ID_EXPECTED, isId } from './id.ts'
import { MAX_TIMER_DELAY } from './timer-limit.ts'
import { cutText } from './cut-text.ts'

/*
 * Checks of arguments at the call, before any request. Each throws an {@link ArgumentError} that names the argument, the
 * expected and the given value. `requests/check.ts` checks bodies and queries of requests with their schemas.
 */

/** An id in a path: a string that is not empty, not a dot segment and has no control characters. */
export function checkId(argument: string, value: unknown): asserts value is string {
  if (!isId(value)) throw malformedId(argument, value)
}

/** The error of {@link checkId}. */
export function malformedId(argument: string, value: unknown): ArgumentError {
  return new ArgumentError(argument, ID_EXPECTED, value)
}

/** A string that is not blank. */
export function checkText(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value.trim() === '')
    throw new ArgumentError(argument, 'a non-empty string', value)
}

/** An integer from `min` to `max`. */
export function checkInteger(argument: string, value: unknown, min: number, max?: number): void {
  if (!Number.isSafeInteger(value) || !isWithin(value, min, max))
    throw new ArgumentError(argument, `an integer ${rangeOf(min, max)}`, value)
}

/** A time in ms: finite, not negative, at most `max`. With `orNever`, `Infinity` is accepted and means never. */
export function checkDuration(argument: string, value: unknown, orNever = false, max?: number): void {
  if (!isWithin(value, 0, max) && !(orNever && value === Infinity))
    throw new ArgumentError(argument, `a number of milliseconds ${rangeOf(0, max)}`, value)
}

/** A point in time: Unix time in ms, finite. */
export function checkTime(argument: string, value: unknown): void {
  if (!Number.isFinite(value)) throw new ArgumentError(argument, 'Unix time in ms', value)
}

/** A time in ms within the limit of `setTimeout`. With `orNever`, `Infinity` is accepted and means never. */
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

/** A scheduler of RxJS. */
export function checkScheduler(argument: string, value: unknown): void {
  if (!isObject(value) || typeof value['schedule'] !== 'function')
    throw new ArgumentError(argument, 'a scheduler of RxJS', value)
}

/** A function. */
export function checkFunction(argument: string, value: unknown): void {
  if (typeof value !== 'function') throw new ArgumentError(argument, 'a function', value)
}

/** Functions by their names, each of which may be absent. */
export function checkOptionalFunctions(given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given)) if (value !== undefined) checkFunction(name, value)
}

/** Something with these methods, such as an open log. */
export function checkMethods(
  argument: string,
  value: unknown,
  expected: string,
  methods: readonly string[],
): void {
  // A text has methods too, such as `search`. A gateway is a function.
  const isPrimitive = Object(value) !== value
  const has = (method: string) => typeof Object(value)[method] === 'function'
  if (isPrimitive || !methods.every(has)) throw new ArgumentError(argument, expected, hidden(value))
}

/** True or false. */
export function checkBoolean(argument: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw new ArgumentError(argument, 'a boolean', value)
}

/** Checks that a value is one of the allowed ones. */
export function checkOneOf(argument: string, value: unknown, allowed: readonly unknown[]): void {
  if (!allowed.includes(value)) throw new ArgumentError(argument, `one of ${allowed.join(', ')}`, value)
}

/** A list of at least one entry. */
export function checkList(argument: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new ArgumentError(argument, 'a non-empty array', value)
}

/** An object that is not an array. */
export function checkObject(
  argument: string,
  value: unknown,
): asserts value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new ArgumentError(argument, 'an object', value)
}

/** Checks that options have only known names. The error suggests the nearest one. Undefined is accepted. */
export function checkOptions(argument: string, value: unknown, knownNames: readonly string[]): void {
  if (value === undefined) return
  // Some options are secret, so the value is hidden: a key may be given instead of the options.
  if (!isObject(value)) throw new ArgumentError(argument, 'an object', hidden(value))
  const unknown = Object.keys(value).find((name) => !knownNames.includes(name))
  if (unknown === undefined) return
  const nearest = nearestName(unknown, knownNames)
  const hint =
    nearest === undefined ? `known are ${knownNames.toSorted().join(', ')}` : `did you mean ${nearest}?`
  // Without the value: it may be a secret under a misspelled name.
  const shown = cutText(unknown, 60)
  throw new ArgumentError(shown, { message: `${argument} has no option ${shown}; ${hint}` }, undefined)
}

/**
 * The known name with the smallest edit distance, ignoring case and punctuation; undefined if none is near.
 *
 * @param maxDistance The greatest distance at which a known name is near. Default: a third of its length, from 1 to 3.
 */
export function nearestName(
  given: string,
  names: readonly string[],
  maxDistance = (known: string) => Math.max(1, Math.min(3, known.length / 3)),
): string | undefined {
  const plain = (name: string) => name.replaceAll(/[^a-z0-9]/gi, '').toLowerCase()
  const ranked = names
    .map((name) => ({ name, distance: editDistance(plain(given.slice(0, 60)), plain(name)) }))
    .toSorted((a, b) => a.distance - b.distance)
  return ranked.find(({ name, distance }) => distance <= maxDistance(name))?.name
}

/** Number of characters to insert, delete, change, or swap with the next one. */
function editDistance(from: string, to: string): number {
  let before: readonly number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  const characters = Array.from(from)
  for (const [index, character] of characters.entries()) {
    const next = [index + 1]
    for (let column = 1; column <= to.length; column++) {
      const changed = (row[column - 1] ?? 0) + (to[column - 1] === character ? 0 : 1)
      const isSwapped = to[column - 2] === character && to[column - 1] === characters[index - 1]
      const swapped = isSwapped ? (before[column - 2] ?? 0) + 1 : Infinity
      next.push(Math.min((row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1, changed, swapped))
    }
    before = row
    row = next
  }
  return row.at(-1) ?? 0
}
