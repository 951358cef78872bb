import { isObject, isText } from '../../../protocol/json.ts'
import type { Warning } from '../../../protocol/problem.ts'
import type { JsonSchema } from '../../../protocol/requests/json-schema.ts'
import { flatten, listOf } from './flatten.ts'

/** A field of the output, from its JSON schema. */
export interface FieldSpec {
  readonly name: string
  readonly description: string
  readonly kind: (typeof KINDS)[number]
  readonly nullable: boolean
  readonly required: boolean
  /** The allowed values that can occur in a text, if the values are restricted. Empty if no value is possible. */
  readonly allowed: readonly (string | number | boolean)[] | undefined
  /** The only value that the schema allows. */
  readonly sole: { readonly value: unknown } | undefined
  readonly format: string | undefined
  /** A regular expression, from the request: it may backtrack forever. */
  readonly pattern: string | undefined
  readonly minimum: number
  readonly maximum: number
  readonly exclusiveMinimum: number
  readonly exclusiveMaximum: number
  readonly multipleOf: number | undefined
  readonly minLength: number
  readonly maxLength: number
  readonly minItems: number
  readonly maxItems: number
  /** The items of an array. */
  readonly items: FieldSpec | undefined
  /** The properties of an object. */
  readonly properties: readonly FieldSpec[]
  /** The alternatives of the field (`anyOf`, `oneOf`, several types), in order. */
  readonly alternatives: readonly FieldSpec[]
}

/** The fields of a schema, and warnings about its unsupported parts. */
export interface SchemaReading {
  /** The content, as an object with the fields as its properties. */
  readonly content: FieldSpec
  /** The fields of the first alternative. */
  readonly fields: readonly FieldSpec[]
  readonly warnings: readonly Warning[]
}

/** Maximum depth of nested objects. */
const MAX_DEPTH = 4
/** Maximum number of fields, including nested ones. */
const MAX_FIELDS = 100
/** Maximum number of warnings. Many fields may refer to the same definition, and each repeats its warnings. */
const MAX_WARNINGS = 50
/** Maximum number of schemas that are read, with each use of a definition counted. */
const MAX_SCHEMAS = 5_000

/** Keywords that are supported, or that do not affect the output. */
const KNOWN_KEYWORDS = new Set(
  (
    '$schema $id $ref $defs $comment definitions title description default examples deprecated readOnly writeOnly type ' +
    'properties required additionalProperties items enum const allOf anyOf oneOf format pattern minimum maximum ' +
    'exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems'
  ).split(' '),
)

const KINDS = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] as const

/** Where a schema stands in the whole one. */
interface FieldPlace {
  readonly name: string
  readonly path: string
  readonly required: boolean
  /** Number of levels above it. */
  readonly depth: number
}

/**
 * Reads the fields of an output schema. Parts that do not help to find answers cause a warning, never an error: the answer
 * is validated against the whole schema later.
 */
export function readSchema(root: JsonSchema): SchemaReading {
  return new SchemaReader(root).read()
}

class SchemaReader {
  readonly #root: JsonSchema
  readonly #messages = new Set<string>()
  /** Number of fields that were read. */
  #count = 0
  /** Number of schemas that were read. */
  #schemas = 0

  constructor(root: JsonSchema) {
    this.#root = root
  }

  read(): SchemaReading {
    const content = this.#readField(
      { allOf: [{ type: 'object' }, this.#root] },
      { name: '', path: '', required: true, depth: 0 },
    )
    const objects = [content, ...content.alternatives].filter(({ kind }) => kind === 'object')
    const fields = objects[0]?.properties ?? []
    if (objects.every(({ properties }) => properties.length === 0)) {
      this.#warn('the schema names no properties, so the answer has no fields')
    }
    const warnings = [...this.#messages].map((message) => ({ type: 'spec_validation_warning', message }))
    return { content, fields, warnings }
  }

  #warn(message: string): void {
    if (this.#messages.size < MAX_WARNINGS) this.#messages.add(message)
  }

  #alternativesOf(given: unknown, path: string): readonly JsonSchema[] {
    return flatten(given, {
      root: this.#root,
      take: () => ++this.#schemas <= MAX_SCHEMAS,
      warn: (message) => this.#warn(`${path}: ${message}`),
    })
  }

  #readProperties(schema: JsonSchema, path: string, depth: number): FieldSpec[] {
    const properties = isObject(schema['properties']) ? schema['properties'] : {}
    const required = new Set(listOf(schema['required']).filter(isText))
    // A required property without a schema may be anything that `additionalProperties` allows.
    const names = new Set([...Object.keys(properties), ...required])
    const isTooDeep = depth > MAX_DEPTH && names.size > 0
    if (isTooDeep)
      this.#warn(`${path} is nested more than ${MAX_DEPTH} levels deep: deeper levels are omitted`)
    const fields: FieldSpec[] = []
    for (const name of names) {
      this.#count += 1
      const isRead = !isTooDeep && this.#count <= MAX_FIELDS
      if (!isTooDeep && !isRead)
        this.#warn(`the schema has more than ${MAX_FIELDS} fields: the rest is omitted`)
      if (!isRead && !required.has(name)) continue
      const field = path === '' ? name : `${path}.${name}`
      const given = Object.hasOwn(properties, name) ? properties[name] : schema['additionalProperties']
      fields.push(
        this.#readField(isRead ? given : false, { name, path: field, required: required.has(name), depth }),
      )
    }
    return fields
  }

  #readField(given: unknown, place: FieldPlace): FieldSpec {
    const all = this.#alternativesOf(given, place.path)
    const nullable = all.some(allowsNull)
    const filled = all.filter((schema) => schema['type'] !== 'null')
    const [first, ...others] = (filled.length > 0 ? filled : all).map((schema) =>
      this.#readOne(schema, place, nullable),
    )
    // A schema that allows no value.
    const spec = first ?? this.#readOne({ enum: [] }, place, false)
    return others.length === 0 ? spec : { ...spec, alternatives: others }
  }

  #readOne(schema: JsonSchema, place: FieldPlace, nullable: boolean): FieldSpec {
    const { name, path, required, depth } = place
    for (const keyword of Object.keys(schema)) {
      if (!KNOWN_KEYWORDS.has(keyword))
        this.#warn(`${path}: the keyword ${keyword} is not used to find an answer`)
    }
    const kind = kindOf(schema)
    const values = Array.isArray(schema['enum']) ? schema['enum'] : undefined
    return {
      name,
      description: [schema['title'], schema['description']].filter(isText).join('. '),
      kind,
      nullable,
      required,
      allowed: values?.filter((value) => isOfKind(value, schema['type'] === undefined ? undefined : kind)),
      sole: values?.length === 1 ? { value: values[0] } : undefined,
      format: isText(schema['format']) ? schema['format'] : undefined,
      pattern: isText(schema['pattern']) ? schema['pattern'] : undefined,
      minimum: numberOr(schema['minimum'], -Infinity),
      maximum: numberOr(schema['maximum'], Infinity),
      exclusiveMinimum: numberOr(schema['exclusiveMinimum'], -Infinity),
      exclusiveMaximum: numberOr(schema['exclusiveMaximum'], Infinity),
      multipleOf: typeof schema['multipleOf'] === 'number' ? schema['multipleOf'] : undefined,
      minLength: numberOr(schema['minLength'], 0),
      maxLength: numberOr(schema['maxLength'], Infinity),
      minItems: numberOr(schema['minItems'], 0),
      maxItems: numberOr(schema['maxItems'], Infinity),
      items: kind === 'array' ? this.#readItems(schema['items'], place) : undefined,
      properties: kind === 'object' ? this.#readProperties(schema, path, depth + 1) : [],
      alternatives: [],
    }
  }

  /** The items of a list; strings by default. */
  #readItems(given: unknown, { name, path, depth }: FieldPlace): FieldSpec | undefined {
    if (depth >= MAX_DEPTH) return undefined
    const place = { name, path: `${path}[]`, required: true, depth: depth + 1 }
    const items = this.#readField(given ?? { type: 'string' }, place)
    if (items.kind === 'array') this.#warn(`${path}: a list of lists cannot be extracted and stays empty`)
    return items
  }
}

/** Whether a value can occur in a text, and has the kind if one is given. */
function isOfKind(value: unknown, kind: FieldSpec['kind'] | undefined): boolean {
  const type = typeof value
  if (type !== 'string' && type !== 'number' && type !== 'boolean') return false
  return kind === undefined || kind === type || (kind === 'integer' && Number.isInteger(value))
}

function allowsNull({ type, enum: values }: JsonSchema): boolean {
  if (Array.isArray(values)) return values.includes(null) && (type === undefined || type === 'null')
  return type === 'null'
}

function kindOf(schema: JsonSchema): FieldSpec['kind'] {
  const [type] = listOf(schema['type'])
  const named = KINDS.find((kind) => kind === type)
  if (named !== undefined) return named
  const values = listOf(schema['enum']).filter((value) => value !== null)
  if (Array.isArray(schema['enum']) && values.length === 0 && schema['enum'].length > 0) return 'null'
  if (isObject(schema['properties']) || Array.isArray(schema['required'])) return 'object'
  if (schema['items'] !== undefined) return 'array'
  const [first] = values
  if (typeof first === 'boolean') return 'boolean'
  return typeof first === 'number' ? 'number' : 'string'
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise
}
