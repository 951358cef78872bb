import { ArgumentError, hidden } from '../argument-error.ts'
import { checkBoolean, checkOneOf } from '../check.ts'
import { isObject } from '../json.ts'
import { holdsOneOf } from './schema.ts'
import type { BooleanShape, ListShape, NumberShape, ObjectShape, Schema, Shape, TextShape } from './schema.ts'

/**
 * Checks the body or the query of a request at the call. Throws an {@link ArgumentError} that names the first invalid field,
 * the expected and the given value.
 */
export function checkRequest<T>(schema: Schema<T>, request: unknown): asserts request is T {
  check(schema, 'request', request, '')
}

/**
 * The path of the first field of a valid request, at any depth, that the schema does not name; undefined if it names all. The parts that
 * the schema leaves to the caller are not checked: the fields of a free JSON object, and the keys of a record.
 */
export function unnamedField(shape: Shape, value: unknown, path = ''): string | undefined {
  switch (shape.kind) {
    case 'list':
      if (!Array.isArray(value)) return unnamedField(shape.item, value, path)
      return firstOf(value.entries(), ([index, entry]) =>
        unnamedField(shape.item, entry, `${path}[${index}]`),
      )
    case 'either':
      return unnamedField(shape.other, value, path)
    case 'nullable':
    case 'defaulted':
      return unnamedField(shape.value, value, path)
    case 'object':
      return unnamedAmong({ ...shape.required, ...shape.optional }, value, path)
    case 'variants': {
      const variant = isObject(value) ? shape.variants[String(value['type'])] : undefined
      const type: Shape = { kind: 'unknown' }
      return variant && unnamedAmong({ ...variant.required, ...variant.optional, type }, value, path)
    }
    default:
      return undefined
  }
}

function unnamedAmong(
  fields: Readonly<Record<string, Shape>>,
  value: unknown,
  path: string,
): string | undefined {
  if (!isObject(value)) return undefined
  return firstOf(Object.entries(value), ([name, entry]) => {
    const field = path === '' ? name : `${path}.${name}`
    // Not those that every object inherits, such as `constructor`.
    const shape = Object.hasOwn(fields, name) ? fields[name] : undefined
    return shape === undefined ? field : unnamedField(shape, entry, field)
  })
}

/** The first result that is not undefined. */
function firstOf<Item>(items: Iterable<Item>, find: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** The names of a query's parameters. */
export function namesOf(query: ObjectShape): string[] {
  return Object.keys(query.optional)
}

/** Checks a value. `prefix` comes before the names of its fields. */
function check(shape: Shape, argument: string, value: unknown, prefix = `${argument}.`): void {
  switch (shape.kind) {
    case 'text':
      return demand(isText(shape, value), shape, argument, shape.expected, value)
    case 'number':
      return demand(isNumber(shape, value), shape, argument, shape.expected, value)
    case 'boolean':
      return checkBoolean(argument, value)
    case 'unknown':
      return
    case 'choice':
      if (shape.isOpen !== true) return checkOneOf(argument, value, shape.values)
      return demand(typeof value === 'string', shape, argument, 'a string', value)
    case 'list':
      return checkList(shape, argument, value)
    case 'record':
      demand(isPlainObject(value), shape, argument, 'a plain object', value)
      for (const [key, entry] of Object.entries(value)) {
        const keys = `an object with keys of at most ${shape.maxKey} characters`
        demand(key.length <= (shape.maxKey ?? Infinity), shape, argument, keys, key)
        check(shape.value, prefix + key, entry)
      }
      return
    case 'json':
      return demand(isPlainObject(value), shape, argument, 'a plain object', value)
    case 'either': {
      const { simple, other } = shape
      if (typeof value === (simple.kind === 'text' ? 'string' : 'boolean'))
        return check(simple, argument, value)
      const [isOther, expected] =
        other.kind === 'list' ? [Array.isArray(value), 'a list'] : [isObject(value), 'an object']
      demand(isOther, shape, argument, `${expectedOf(simple)} or ${expected}`, value)
      return check(other, argument, value, prefix)
    }
    case 'nullable':
      if (value !== null) check(shape.value, argument, value)
      return
    case 'defaulted':
      return check(shape.value, argument, value, prefix)
    case 'object':
      return checkFields(shape, argument, value, prefix)
    case 'variants': {
      demand(isObject(value), shape, argument, 'an object', value)
      checkOneOf(`${prefix}type`, value['type'], Object.keys(shape.variants))
      const variant = shape.variants[String(value['type'])]
      if (variant !== undefined) checkFields(variant, argument, value, prefix)
    }
  }
}

function expectedOf(simple: TextShape | BooleanShape): string {
  return simple.kind === 'text' ? simple.expected : 'true, false'
}

function checkList(shape: ListShape, argument: string, value: unknown): void {
  const { item, min, orOne } = shape
  if (orOne === true && !Array.isArray(value)) return check(item, argument, value)
  const isList = Array.isArray(value) && value.length >= min
  demand(isList, shape, argument, min > 0 ? 'a non-empty array' : 'an array', value)
  for (const [index, entry] of value.entries()) check(item, `${argument}[${index}]`, entry)
}

function checkFields(shape: ObjectShape, argument: string, value: unknown, prefix: string): void {
  const { required, optional, anyOf } = shape
  demand(isObject(value), shape, argument, 'an object', value)
  for (const name in required) if (required[name]) check(required[name], prefix + name, value[name])
  for (const name in optional)
    if (value[name] !== undefined && optional[name]) check(optional[name], prefix + name, value[name])
  if (anyOf === undefined || holdsOneOf(anyOf.names, value)) return
  const message = `${argument} has neither ${anyOf.names.join(' nor ')}; it needs one of them`
  throw new ArgumentError(argument, { message }, shown(shape, value))
}

function isText({ fits, min, max = Infinity }: TextShape, value: unknown): boolean {
  if (typeof value !== 'string' || value.length > max) return false
  return (min === undefined || value.trim() !== '') && (fits === undefined || fits(value))
}

function isNumber({ isInteger, min, isMinExcluded, max = Infinity }: NumberShape, value: unknown): boolean {
  const isKind = isInteger === true ? Number.isSafeInteger(value) : Number.isFinite(value)
  if (!isKind || typeof value !== 'number' || value > max) return false
  return isMinExcluded === true ? value > min : value >= min
}

/** Whether JSON keeps all of it. A `Map` would be sent as an empty object, a `Date` as a string. */
function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // The Object.prototype of another realm has no prototype either.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function demand(
  holds: boolean,
  shape: Shape,
  argument: string,
  expected: string,
  value: unknown,
): asserts holds {
  if (!holds) throw new ArgumentError(argument, expected, shown(shape, value))
}

/** The value for an error: hidden if a secret may be in it. */
function shown(shape: Shape, value: unknown): unknown {
  return mayHoldSecret(shape) ? hidden(value) : value
}

function mayHoldSecret(shape: object): boolean {
  return 'isSecret' in shape || Object.values(shape).some((part) => isObject(part) && mayHoldSecret(part))
}
