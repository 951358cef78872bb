import { AssertionError, ok } from 'node:assert'
import { inspect, isDeepStrictEqual } from 'node:util'

export { ok }

/** A condition in the place of an expected value. */
class Condition {
  readonly isMet: (value: unknown) => boolean
  readonly #text: string

  constructor(isMet: (value: unknown) => boolean, text: string) {
    this.isMet = isMet
    this.#text = text
  }

  [inspect.custom](): string {
    return this.#text
  }
}

type Constructor = abstract new (...args: never[]) => unknown

/** Any value of a primitive type, or of a class. */
export function any(type: Constructor | StringConstructor | NumberConstructor): Condition {
  return new Condition(
    (value) =>
      (type === String && typeof value === 'string') ||
      (type === Number && typeof value === 'number') ||
      value instanceof type,
    `any ${type.name}`,
  )
}

/** A text that contains another one. */
export function containing(text: string): Condition {
  return new Condition((value) => String(value).includes(text), `a text with ${inspect(text)}`)
}

/** A value for which a condition holds. */
export function satisfying(isMet: (value: unknown) => boolean): Condition {
  return new Condition(isMet, `a value for which ${String(isMet)}`)
}

/** Checks that two values are the same, by `Object.is`. */
export function same(actual: unknown, expected: unknown): void {
  if (!Object.is(actual, expected)) fail(actual, expected, 'is not')
}

/** Checks that two values have the same contents. Fields that are undefined count as absent. */
export function equal(actual: unknown, expected: unknown): void {
  if (!agree(actual, expected, false)) fail(actual, expected, 'does not equal')
}

/** Checks that a value has all fields of another one, and lists all of its items. */
export function matches(actual: unknown, expected: unknown): void {
  if (!agree(actual, expected, true)) fail(actual, expected, 'does not match')
}

/** Checks the number of items, or of characters. */
export function hasLength(actual: { readonly length: number }, expected: number): void {
  if (actual.length !== expected) fail(actual, expected, 'does not have the length')
}

/** Checks that a promise rejects with an error of a class, or with one that {@link matches}. */
export async function rejects(promise: Promise<unknown>, expected: Constructor | object): Promise<void> {
  const error = await rejectionOf(promise, expected)
  const isExpected = typeof expected === 'function' ? error instanceof expected : agree(error, expected, true)
  if (!isExpected) fail(error, expected, 'is not the expected rejection')
}

/** Checks that a promise rejects with this very value. */
export async function rejectsWith(promise: Promise<unknown>, expected: unknown): Promise<void> {
  same(await rejectionOf(promise, expected), expected)
}

function rejectionOf(promise: Promise<unknown>, expected: unknown): Promise<unknown> {
  return promise.then(
    (value) => fail(value, expected, 'is a result, and not the rejection'),
    (error: unknown) => error,
  )
}

function agree(actual: unknown, expected: unknown, isPart: boolean): boolean {
  if (expected instanceof Condition) return expected.isMet(actual)
  if (Object.is(actual, expected)) return true
  if (!isCompound(actual) || !isCompound(expected)) return false
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return false
    return expected.every((item, index) => agree(actual[index], item, isPart))
  }
  if (expected instanceof Map || expected instanceof Set) return isDeepStrictEqual(actual, expected)
  const names = new Set([...Object.keys(expected), ...(isPart ? [] : Object.keys(actual))])
  return Array.from(names).every((name) =>
    agree(Reflect.get(actual, name), Reflect.get(expected, name), isPart),
  )
}

function isCompound(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function fail(actual: unknown, expected: unknown, problem: string): never {
  const text = (value: unknown) => inspect(value, { depth: 8, maxStringLength: 500 })
  const message = `${text(actual)}\n${problem}\n${text(expected)}`
  throw new AssertionError({ message, actual, expected, operator: 'agree', stackStartFn: fail })
}
