import {
  celList,
  celMap,
  isCelList,
  isCelMap,
  isCelUint,
  type CelInput,
  type CelResult,
  type CelValue,
} from '@bufbuild/cel'
import { isMessage, toJson } from '@bufbuild/protobuf'
import { isReflectMessage } from '@bufbuild/protobuf/reflect'
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { Json } from '../../protocol/json.ts'

/** Maximum depth of lists within lists, and of a result. */
const MAX_DEPTH = 64

/** The JSON that a map or list of CEL was made from. */
const ORIGINS = new WeakMap<object, unknown>()

/**
 * A JSON value as CEL value. An object is read when it is asked for a field: the library would copy it. A number is a double.
 *
 * @throws {RangeError} Lists are nested too deep.
 */
export function toCelValue(json: unknown, depth = 0): CelValue {
  switch (typeof json) {
    case 'string':
    case 'number':
    case 'boolean':
      return json
    case 'bigint':
      return json
    case 'object':
      break
    default:
      return null
  }
  if (json === null) return null
  if (Array.isArray(json)) return listOf(json, depth)
  const fields = new JsonFields(json)
  const map = celMap(fields)
  // The library's own `has` takes a field that is null for one that is missing.
  map.has = (name) => fields.has(name)
  ORIGINS.set(map, json)
  return map
}

function listOf(json: readonly unknown[], depth: number): CelValue {
  if (depth > MAX_DEPTH) throw new RangeError(`lists are more than ${MAX_DEPTH} deep`)
  const list = celList(json.map((member): CelInput => toCelValue(member, depth + 1)))
  ORIGINS.set(list, json)
  return list
}

/** The own field of an object, or undefined. An error's fields count too: `source.failed` has one. */
export function fieldOf(object: object, name: string): unknown {
  if (!Object.hasOwn(object, name) && !(object instanceof Error && name === 'name')) return undefined
  return (object as Readonly<Record<string, unknown>>)[name]
}

/** The fields of a JSON object as a map, without a copy. A field that is undefined is missing. */
class JsonFields implements ReadonlyMap<string, CelInput> {
  readonly #json: object

  constructor(json: object) {
    this.#json = json
  }

  get size(): number {
    let size = 0
    for (const _ of this.keys()) size++
    return size
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
    for (const name of Object.keys(this.#json)) if (this.has(name)) yield name
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

/** What a value of CEL was made from, or the JSON for it. For the functions of the field, which read JSON. */
export function sourceOf(value: CelValue): unknown {
  if (typeof value !== 'object' || value === null) return value
  return ORIGINS.has(value) ? ORIGINS.get(value) : toJsonValue(value)
}

/**
 * A value of CEL as JSON. An integer beyond 2⁵³ is text. A timestamp and a duration are text, as `string()` writes them.
 *
 * @throws {RangeError} It is deeper than 64, or no JSON can hold it.
 */
export function toJsonValue(value: Exclude<CelResult, Error>, depth = 0): Json {
  if (depth > MAX_DEPTH) throw new RangeError(`the value is more than ${MAX_DEPTH} deep`)
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
