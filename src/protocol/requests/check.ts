import { ArgumentError, hidden } from '../argument-error.ts'
import { checkBoolean, checkObject, checkOneOf } from '../check.ts'
import { isObject } from '../event.ts'
import { holdsOneOf } from './schema.ts'
import type { ListShape, NumberShape, ObjectShape, Schema, Shape, TextShape } from './schema.ts'

/**
 * Checks the body or the query of a request at the call. Throws an {@link ArgumentError} that names the first field that does
 * not fit, what was expected and what was given.
 */
export function checkRequest<T>(schema: Schema<T>, request: unknown): asserts request is T {
  check(schema, 'request', request, '')
}

/** The names of a query's parameters. */
export function namesOf(query: ObjectShape): string[] {
  return Object.keys(query.optional)
}

/** Checks a value. `prefix` comes before the names of its fields. */
function check(shape: Shape, argument: string, value: unknown, prefix = `${argument}.`): void {
  switch (shape.kind) {
    case 'text':
      return demand(isText(shape, value), argument, shape.expected, shown(shape, value))
    case 'number':
      return demand(isNumber(shape, value), argument, shape.expected, value)
    case 'boolean':
      return checkBoolean(argument, value)
    case 'unknown':
      return
    case 'choice':
      if (shape.isOpen !== true) return checkOneOf(argument, value, shape.values)
      return demand(typeof value === 'string', argument, 'a string', value)
    case 'list':
      return checkList(shape, argument, value)
    case 'record':
      demand(isObject(value), argument, 'an object', shown(shape.value, value))
      for (const [key, entry] of Object.entries(value)) {
        const keys = `an object with keys of at most ${shape.maxKey} characters`
        demand(key.length <= (shape.maxKey ?? Infinity), argument, keys, key)
        check(shape.value, prefix + key, entry)
      }
      return
    case 'json':
      return checkObject(argument, value)
    case 'either':
      if (typeof value === 'string') return check(shape.text, argument, value)
      demand(isObject(value), argument, `${shape.text.expected} or an object`, value)
      return check(shape.object, argument, value)
    case 'object':
      return checkFields(shape, argument, value, prefix)
    case 'variants': {
      checkObject(argument, value)
      checkOneOf(`${prefix}type`, value['type'], Object.keys(shape.variants))
      const variant = shape.variants[String(value['type'])]
      if (variant !== undefined) checkFields(variant, argument, value, prefix)
    }
  }
}

function checkList({ item, min, orOne }: ListShape, argument: string, value: unknown): void {
  if (orOne === true && !Array.isArray(value)) return check(item, argument, value)
  const isList = Array.isArray(value) && value.length >= min
  demand(isList, argument, min > 0 ? 'a non-empty array' : 'an array', value)
  for (const [index, entry] of value.entries()) check(item, `${argument}[${index}]`, entry)
}

function checkFields(
  { required, optional, anyOf }: ObjectShape,
  argument: string,
  value: unknown,
  prefix: string,
): void {
  checkObject(argument, value)
  for (const name in required) if (required[name]) check(required[name], prefix + name, value[name])
  for (const name in optional)
    if (value[name] !== undefined && optional[name]) check(optional[name], prefix + name, value[name])
  if (anyOf === undefined || holdsOneOf(anyOf.names, value)) return
  const message = `${argument} has neither ${anyOf.names.join(' nor ')}; it needs one of them`
  throw new ArgumentError(argument, { message }, value)
}

function isText({ fits, max = Infinity }: TextShape, value: unknown): boolean {
  return typeof value === 'string' && value.length <= max && (fits === undefined || fits(value))
}

function shown({ isSecret }: TextShape, value: unknown): unknown {
  return isSecret === true ? hidden(value) : value
}

function isNumber({ isInteger, min, max = Infinity }: NumberShape, value: unknown): boolean {
  const isKind = isInteger === true ? Number.isSafeInteger(value) : Number.isFinite(value)
  return isKind && typeof value === 'number' && value >= min && value <= max
}

function demand(holds: boolean, argument: string, expected: string, value: unknown): asserts holds {
  if (!holds) throw new ArgumentError(argument, expected, value)
}
