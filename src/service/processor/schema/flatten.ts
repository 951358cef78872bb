import { isObject, isText } from '../../../protocol/json.ts'
import type { JsonSchema } from '../../../protocol/requests/json-schema.ts'

/** Settings of {@link flatten}. */
export interface FlattenOptions {
  /** The schema that references point into. */
  readonly root: JsonSchema
  /** Returns false when no more schemas may be read, so that the work is bounded. */
  readonly take: () => boolean
  /** Called for what cannot be read. */
  readonly warn: (message: string) => void
}

/** Maximum length of a chain of references and of parts within parts. */
const MAX_REFERENCES = 16
/** Maximum number of alternatives of a field. */
const MAX_ALTERNATIVES = 16

/**
 * The alternatives of a schema, in order, each without `$ref`, `allOf`, `anyOf`, `oneOf` and `const`, and with one type
 * at most. Empty if the schema allows no value. Not every value of an alternative satisfies the schema: `oneOf` also
 * excludes the values of the others.
 */
export function flatten(given: unknown, options: FlattenOptions): readonly JsonSchema[] {
  return branches(given, options, 0).flatMap(byType).slice(0, MAX_ALTERNATIVES)
}

function branches(given: unknown, options: FlattenOptions, hops: number): readonly JsonSchema[] {
  if (given === false) return []
  if (!isObject(given)) return [{}]
  if (hops > MAX_REFERENCES) {
    options.warn('its references are circular')
    return [{}]
  }
  if (!options.take()) {
    options.warn('it is too large, and a part of it is not read')
    return [{}]
  }
  const { $ref, allOf, anyOf, oneOf, ...own } = given
  const inner = (schema: unknown) => branches(schema, options, hops + 1)
  const parts: (readonly JsonSchema[])[] = [[withoutConst(own)]]
  if (isText($ref)) {
    const target = targetOf(options.root, $ref)
    if (target === undefined) options.warn(`the reference ${$ref} cannot be resolved`)
    parts.push(inner(target))
  }
  if (Array.isArray(allOf)) parts.push(...allOf.map(inner))
  for (const choices of [anyOf, oneOf]) if (Array.isArray(choices)) parts.push(choices.flatMap(inner))
  return parts.reduce((left, right) => combine(left, right))
}

/** Every alternative of one list together with every alternative of the other. */
function combine(left: readonly JsonSchema[], right: readonly JsonSchema[]): readonly JsonSchema[] {
  const all: JsonSchema[] = []
  for (const a of left) {
    for (const b of right) {
      const merged = merge(a, b)
      if (merged !== undefined) all.push(merged)
      if (all.length === MAX_ALTERNATIVES) return all
    }
  }
  return all
}

/** A schema for the values that satisfy both; undefined if there are none. Keywords that cannot be merged are the first's. */
function merge(a: JsonSchema, b: JsonSchema): JsonSchema | undefined {
  const merged: Record<string, unknown> = { ...b, ...a }
  for (const [keyword, join] of Object.entries(JOINS)) {
    if (a[keyword] !== undefined && b[keyword] !== undefined) merged[keyword] = join(a[keyword], b[keyword])
  }
  if (isEmpty(merged['enum']) || isEmpty(merged['type'])) return undefined
  const properties = mergedProperties(a, b)
  return properties === undefined ? merged : { ...merged, properties }
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}

type Join = (a: unknown, b: unknown) => unknown

const larger: Join = (a, b) => Math.max(Number(a), Number(b))
const smaller: Join = (a, b) => Math.min(Number(a), Number(b))
const both: Join = (a, b) => ({ allOf: [a, b] })

/** How two values of a keyword are joined, so that a value satisfies both. */
const JOINS: Readonly<Record<string, Join>> = {
  minimum: larger,
  exclusiveMinimum: larger,
  minLength: larger,
  minItems: larger,
  maximum: smaller,
  exclusiveMaximum: smaller,
  maxLength: smaller,
  maxItems: smaller,
  items: both,
  additionalProperties: both,
  required: (a, b) => [...new Set([...listOf(a), ...listOf(b)])],
  enum: (a, b) => {
    const allowed = new Set(listOf(b).map((value) => JSON.stringify(value)))
    return listOf(a).filter((value) => allowed.has(JSON.stringify(value)))
  },
  type: (a, b) => {
    const [left, right] = [listOf(a), listOf(b)]
    const has = (types: readonly unknown[], type: unknown) =>
      types.includes(type) || (type === 'integer' && types.includes('number'))
    return [
      ...new Set([...left.filter((type) => has(right, type)), ...right.filter((type) => has(left, type))]),
    ]
  },
}

/** The properties of both schemas. One that the other schema forbids is left out. */
function mergedProperties(a: JsonSchema, b: JsonSchema): JsonSchema | undefined {
  const [left, right] = [propertiesOf(a), propertiesOf(b)]
  if (left === undefined && right === undefined) return undefined
  const names = new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})])
  const entries: [string, unknown][] = []
  for (const name of names) {
    const parts = [part(a, left, name), part(b, right, name)].filter((schema) => schema !== undefined)
    if (!parts.includes(false)) entries.push([name, parts.length === 1 ? parts[0] : { allOf: parts }])
  }
  return Object.fromEntries(entries)
}

function part(
  { additionalProperties }: JsonSchema,
  properties: JsonSchema | undefined,
  name: string,
): unknown {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name]
  return additionalProperties === false ? false : undefined
}

function propertiesOf({ properties }: JsonSchema): JsonSchema | undefined {
  return isObject(properties) ? properties : undefined
}

function withoutConst({ const: only, ...schema }: JsonSchema): JsonSchema {
  return only === undefined ? schema : (merge({ enum: [only] }, schema) ?? { ...schema, enum: [] })
}

/** One schema for each type that the schema names. */
function byType(schema: JsonSchema): readonly JsonSchema[] {
  const types = listOf(schema['type'])
  return types.length < 2 ? [schema] : types.map((type) => Object.assign({}, schema, { type }))
}

/** A keyword's value as a list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value]
}

/** The target of a reference within the schema (`#/$defs/name`). */
function targetOf(root: JsonSchema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined
  let target: unknown = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
    const isMember = typeof target === 'object' && target !== null && Object.hasOwn(target, key)
    target = isMember ? Object.entries(target ?? {}).find(([name]) => name === key)?.[1] : undefined
  }
  return target
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
