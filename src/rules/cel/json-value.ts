import {
  celList,
  celMap,
  isCelList,
  isCelMap,
  isCelUint,
  type CelInput,
  type CelList,
  type CelResult,
  type CelValue,
} from '@bufbuild/cel'
import { isMessage, toJson } from '@bufbuild/protobuf'
import { isReflectMessage } from '@bufbuild/protobuf/reflect'
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { Json } from '../../protocol/json.ts'
import { HASHED, spend, VALUE } from './work.ts'

/** Maximum depth of a result. */
const MAX_DEPTH = 64

/** Maximum number of values within a result. */
const MAX_VALUES = 10_000

/** The JSON that a map or list of CEL was made from. */
const ORIGINS = new WeakMap<object, object>()

/** An object and a list are read when their members are requested: the library would copy them. */
export function toCelValue(json: unknown): CelValue {
  switch (typeof json) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return json
    case 'object':
      break
    default:
      return null
  }
  if (json === null) return null
  if (Array.isArray(json)) return listOf(json)
  const fields = new JsonFields(json)
  const map = celMap(fields)
  // The library's own `has` takes a field that is null for one that is missing.
  map.has = (name) => fields.has(name)
  ORIGINS.set(map, json)
  return map
}

function listOf(json: readonly unknown[]): CelList {
  const list = json.every(isScalar) ? celList(json) : lazyList(json)
  ORIGINS.set(list, json)
  return list
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return (
    value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  )
}

/** A list whose members become values of CEL when they are read. The library takes only lists that it made itself. */
function lazyList(json: readonly unknown[]): CelList {
  const members = function* (): Generator<CelValue> {
    for (const member of json) yield toCelValue(member)
  }
  return Object.defineProperties(celList([]), {
    size: { value: json.length },
    get: {
      value: (index: number): CelValue | undefined => (index in json ? toCelValue(json[index]) : undefined),
    },
    values: { value: members },
    [Symbol.iterator]: { value: members },
  })
}

/** The own field of an object, or undefined. An error's fields count too: `source.failed` has one. */
export function fieldOf(object: object, name: string): unknown {
  if (!Object.hasOwn(object, name) && !(object instanceof Error && name === 'name')) return undefined
  return (object as Readonly<Record<string, unknown>>)[name]
}

/** The names of large objects, since listing them takes long. */
const NAMES = new WeakMap<object, readonly string[]>()
const LARGE = 100

/** The names of the fields that an object has. A field that is undefined is missing. */
export function namesOf(json: object): readonly string[] {
  const known = NAMES.get(json)
  if (known !== undefined) return known
  const names = Object.keys(json).filter((name) => fieldOf(json, name) !== undefined)
  if (names.length > LARGE) NAMES.set(json, names)
  return names
}

/** The fields of a JSON object as a map, without a copy. A field that is undefined is missing. */
class JsonFields implements ReadonlyMap<string, CelInput> {
  readonly #json: object

  constructor(json: object) {
    this.#json = json
  }

  get size(): number {
    return namesOf(this.#json).length
  }

  get(name: unknown): CelInput | undefined {
    if (typeof name !== 'string') return undefined
    const value = fieldOf(this.#json, name)
    return value === undefined ? undefined : toCelValue(value)
  }

  has(name: unknown): boolean {
    return typeof name === 'string' && fieldOf(this.#json, name) !== undefined
  }

  *keys(): MapIterator<string> {
    yield* namesOf(this.#json)
  }

  *values(): MapIterator<CelInput> {
    for (const [, value] of this.entries()) yield value
  }

  *entries(): MapIterator<[string, CelInput]> {
    for (const name of this.keys()) {
      const value = this.get(name)
      if (value !== undefined) yield [name, value]
    }
  }

  [Symbol.iterator](): MapIterator<[string, CelInput]> {
    return this.entries()
  }

  forEach(callback: (value: CelInput, name: string, map: ReadonlyMap<string, CelInput>) => void): void {
    for (const [name, value] of this.entries()) callback(value, name, this)
  }
}

/** The JSON that a value of CEL was made from, or JSON made from the value. For functions that read JSON. */
export function sourceOf(value: CelValue): unknown {
  if (typeof value !== 'object' || value === null) return value
  return originOf(value) ?? toJsonValue(value)
}

/** The JSON object or list that a value of CEL was made from; undefined for any other value. */
export function originOf(value: CelValue): object | undefined {
  return typeof value === 'object' && value !== null ? ORIGINS.get(value) : undefined
}

/**
 * A value of CEL as JSON. An integer beyond 2⁵³ is text. A timestamp and a duration are text, as `string()` writes them.
 *
 * @throws {RangeError} It is deeper than 64, has more than 10,000 values, or no JSON can hold it.
 */
export function toJsonValue(value: Exclude<CelResult, Error>, depth = 0): Json {
  if (depth > MAX_DEPTH) throw new RangeError(`the value is more than ${MAX_DEPTH} deep`)
  spend(typeof value === 'string' ? HASHED * value.length : VALUE)
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) throw new RangeError(`${value} is no value`)
      return value
    case 'bigint':
      return integer(value)
    default:
  }
  if (value === null) return null
  const origin = originOf(value)
  if (origin !== undefined) return copied(origin, depth, { left: MAX_VALUES })
  if (isCelUint(value)) return integer(value.value)
  if (isCelList(value)) return Array.from(value, (member) => toJsonValue(member, depth + 1))
  if (isCelMap(value)) {
    const fields: [string, Json][] = []
    for (const [name, member] of value) {
      const key = isCelUint(name) ? name.value : name
      fields.push([String(key), toJsonValue(member, depth + 1)])
    }
    return Object.fromEntries(fields)
  }
  if (value instanceof Uint8Array) throw new RangeError('bytes are no value; use `string(…)`')
  const message = isReflectMessage(value) ? value.message : undefined
  if (isMessage(message, TimestampSchema)) return toJson(TimestampSchema, message)
  if (isMessage(message, DurationSchema)) return toJson(DurationSchema, message)
  return String(value)
}

function integer(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

/** A copy of JSON. Members that JSON cannot have, such as those of an error, are left out. */
function copied(json: unknown, depth: number, values: { left: number }): Json {
  if (depth > MAX_DEPTH) throw new RangeError(`the value is more than ${MAX_DEPTH} deep`)
  if (typeof json === 'string') spend(HASHED * json.length)
  if (isScalar(json)) return json
  if (typeof json !== 'object' || json === null) return null
  const names = Array.isArray(json) ? json : namesOf(json)
  spend(3 * VALUE * names.length)
  values.left -= names.length
  if (values.left < 0) throw new RangeError(`the value has more than ${MAX_VALUES} values within it`)
  if (Array.isArray(json)) return json.map((member) => copied(member, depth + 1, values))
  return Object.fromEntries(
    namesOf(json).map((name) => [name, copied(fieldOf(json, name), depth + 1, values)]),
  )
}
