import { isObject, isText } from '../../protocol/event.ts'
import type { Warning } from '../../protocol/problem.ts'

/** A field of the output, from its JSON schema. */
export interface FieldSpec {
  readonly name: string
  readonly description: string
  readonly kind: 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object'
  readonly nullable: boolean
  readonly required: boolean
  /** The allowed values, if they are restricted. */
  readonly allowed: readonly (string | number | boolean)[] | undefined
  readonly format: string | undefined
  readonly minimum: number
  readonly maximum: number
  readonly minLength: number
  readonly maxLength: number
  readonly maxItems: number
  /** The items of an array. */
  readonly items: FieldSpec | undefined
  /** The properties of an object. */
  readonly properties: readonly FieldSpec[]
}

/** The fields of a schema, and warnings about its unsupported parts. */
export interface SchemaReading {
  readonly fields: readonly FieldSpec[]
  readonly warnings: readonly Warning[]
}

/** Maximum depth of nested objects. */
const MAX_DEPTH = 4
/** Maximum number of fields, including nested ones. */
const MAX_FIELDS = 100
/** Maximum number of warnings. Many fields may refer to the same definition, and each repeats its warnings. */
const MAX_WARNINGS = 50
/** Maximum length of a chain of references. */
const MAX_REFERENCES = 8

/** Keywords that are supported, or that do not affect the output. */
const KNOWN_KEYWORDS = new Set(
  (
    '$schema $id $ref $defs $comment definitions title description default examples deprecated readOnly writeOnly type ' +
    'properties required additionalProperties items enum const anyOf oneOf format minimum maximum minLength maxLength maxItems'
  ).split(' '),
)

const KINDS = ['string', 'number', 'integer', 'boolean', 'array', 'object'] as const

type Schema = Readonly<Record<string, unknown>>

/** Reads the fields of an output schema. Unsupported parts cause a warning, never an error. */
export function readSchema(root: Schema): SchemaReading {
  const messages = new Set<string>()
  let count = 0

  function warn(message: string): void {
    if (messages.size < MAX_WARNINGS) messages.add(message)
  }

  function readProperties(schema: Schema, path: string, depth: number): FieldSpec[] {
    const properties = isObject(schema['properties']) ? Object.entries(schema['properties']) : []
    if (depth > MAX_DEPTH && properties.length > 0) {
      warn(`${path} is nested more than ${MAX_DEPTH} levels deep: deeper levels are omitted`)
      return []
    }
    const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
    const fields: FieldSpec[] = []
    for (const [name, property] of properties) {
      count += 1
      if (count > MAX_FIELDS) {
        warn(`the schema has more than ${MAX_FIELDS} fields: the rest is omitted`)
        break
      }
      const field = path === '' ? name : `${path}.${name}`
      fields.push(read(property, name, field, required.has(name), depth))
    }
    return fields
  }

  function read(given: unknown, name: string, path: string, required: boolean, depth: number): FieldSpec {
    const { schema, nullable } = resolve(given, path)
    for (const keyword of Object.keys(schema)) {
      if (!KNOWN_KEYWORDS.has(keyword)) warn(`${path}: the keyword ${keyword} is ignored`)
    }
    const kind = kindOf(schema)
    const items = kind === 'array' ? readItems(schema['items'], name, path, depth) : undefined
    if (items?.kind === 'object' || items?.kind === 'array') {
      warn(`${path}: a list of ${items.kind}s cannot be extracted and stays empty`)
    }
    const allowed = allowedValues(schema)
    return {
      name,
      description: [schema['title'], schema['description']].filter(isText).join('. '),
      kind,
      nullable: nullable || (Array.isArray(schema['enum']) && schema['enum'].includes(null)),
      required,
      allowed,
      format: isText(schema['format']) ? schema['format'] : undefined,
      minimum: numberOr(schema['minimum'], -Infinity),
      maximum: numberOr(schema['maximum'], Infinity),
      minLength: numberOr(schema['minLength'], 0),
      maxLength: numberOr(schema['maxLength'], Infinity),
      maxItems: numberOr(schema['maxItems'], Infinity),
      items,
      properties: kind === 'object' ? readProperties(schema, path, depth + 1) : [],
    }
  }

  /** The items of a list; strings by default. */
  function readItems(given: unknown, name: string, path: string, depth: number): FieldSpec | undefined {
    if (depth >= MAX_DEPTH) return undefined
    return read(given ?? { type: 'string' }, name, `${path}[]`, true, depth + 1)
  }

  /** Resolves references, and selects one of several branches. */
  function resolve(given: unknown, path: string): { schema: Schema; nullable: boolean } {
    let schema: Schema = isObject(given) ? given : {}
    let nullable = false
    for (let hop = 0; hop < MAX_REFERENCES; hop++) {
      nullable ||= typesOf(schema).includes('null')
      const branches = [schema['anyOf'], schema['oneOf']].find((list) => Array.isArray(list))
      if (isText(schema['$ref'])) {
        const target = targetOf(root, schema['$ref'])
        if (target === undefined) warn(`${path}: the reference ${schema['$ref']} cannot be resolved`)
        schema = { ...target, ...without(schema, '$ref') }
      } else if (Array.isArray(branches)) {
        const choices = branches.filter((branch) => isObject(branch))
        const filled = choices.filter((branch) => branch['type'] !== 'null')
        nullable ||= filled.length < choices.length
        if (filled.length > 1) warn(`${path}: only the first of several alternatives is used`)
        schema = { ...without(schema, 'anyOf', 'oneOf'), ...filled[0] }
      } else return { schema, nullable }
    }
    warn(`${path}: its references are circular`)
    return { schema: {}, nullable }
  }

  const { schema } = resolve(root, 'the schema')
  const fields = readProperties(schema, '', 1)
  if (fields.length === 0) warn('the schema names no properties, so the answer has no fields')
  const warnings = [...messages].map((message) => ({ type: 'spec_validation_warning', message }))
  return { fields, warnings }
}

function kindOf(schema: Schema): FieldSpec['kind'] {
  const named = KINDS.find((kind) => typesOf(schema).includes(kind))
  if (named !== undefined) return named
  if (isObject(schema['properties'])) return 'object'
  if (schema['items'] !== undefined) return 'array'
  const [first] = allowedValues(schema) ?? []
  if (typeof first === 'boolean') return 'boolean'
  return typeof first === 'number' ? 'number' : 'string'
}

function typesOf(schema: Schema): readonly unknown[] {
  const type = schema['type']
  return Array.isArray(type) ? type : [type]
}

function allowedValues(schema: Schema): readonly (string | number | boolean)[] | undefined {
  const values = 'const' in schema ? [schema['const']] : schema['enum']
  if (!Array.isArray(values)) return undefined
  return values.filter((value) => ['string', 'number', 'boolean'].includes(typeof value))
}

/** The target of a reference within the schema (`#/$defs/name`). */
function targetOf(root: Schema, reference: string): Schema | undefined {
  if (!reference.startsWith('#')) return undefined
  let target: unknown = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined
  }
  return isObject(target) ? target : undefined
}

function without(schema: Schema, ...names: string[]): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !names.includes(name)))
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise
}
