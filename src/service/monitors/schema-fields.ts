import { isObject } from '../../protocol/event.ts'
import type { Passage } from '../corpus/corpus.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** The part of a passage that fills a field of a schema. */
export interface FieldSource {
  /** Its description in the reasoning. */
  readonly name: string
  /** Null if the document does not have it. */
  value(passage: Passage): string | null
}

const URL_FIELD: FieldSource = { name: "the document's address", value: ({ url }) => url }
const TITLE_FIELD: FieldSource = { name: "the document's title", value: ({ title }) => title }
const DATE_FIELD: FieldSource = { name: "the document's date", value: ({ publishDate }) => publishDate }
const TEXT_FIELD: FieldSource = { name: 'the passage, word for word', value: ({ text }) => text }

/** Sources by the field's name and format. The first that matches is used. */
const SOURCES: readonly {
  readonly name: RegExp
  readonly formats: readonly unknown[]
  source: FieldSource
}[] = [
  { name: /(?:^|_)(?:url|uri|link)$/i, formats: [undefined, 'uri'], source: URL_FIELD },
  { name: /(?:^|_)(?:title|headline|name)$/i, formats: [undefined], source: TITLE_FIELD },
  { name: /(?:^|_)(?:date|published|published_at)$/i, formats: [undefined, 'date'], source: DATE_FIELD },
  { name: /^/, formats: [undefined], source: TEXT_FIELD },
]

/** Keywords that restrict a string in ways that a passage may violate. */
const RESTRICTIONS = 'enum const pattern minLength maxLength $ref anyOf oneOf allOf not'.split(' ')

/** The fields of a schema, each with its own schema. */
export function namedFields(schema: JsonObject): [field: string, property: unknown][] {
  const { properties } = schema
  return isObject(properties) ? Object.entries(properties) : []
}

/** The source that fills a field, by the field's name; undefined if there is none. */
export function sourceOf(field: string, property: unknown): FieldSource | undefined {
  if (!isObject(property) || !types(property).includes('string')) return undefined
  if (RESTRICTIONS.some((keyword) => keyword in property)) return undefined
  const source = SOURCES.find(({ name }) => name.test(field))
  return source?.formats.includes(property['format']) ? source.source : undefined
}

/** Whether a field may be null. */
export function takesNull(property: unknown): boolean {
  return isObject(property) && types(property).includes('null')
}

/** A problem of one field of a schema, or of the whole schema. */
export interface SchemaFault {
  readonly field?: string
  readonly reason: string
}

/**
 * The reasons why events may violate a schema, mostly required fields that a passage may not fill. Such a schema is refused
 * at creation.
 */
export function schemaFaults(schema: JsonObject): SchemaFault[] {
  const fields = new Map(namedFields(schema))
  if ((schema['type'] ?? 'object') !== 'object' || fields.size === 0)
    return [{ reason: 'Expected an object whose fields are named in properties' }]
  const required = Array.isArray(schema['required']) ? schema['required'].map(String) : []
  return required.flatMap((field): SchemaFault[] => {
    const property = fields.get(field)
    if (property === undefined) return [{ field, reason: 'Required, but not among the properties' }]
    if (takesNull(property)) return []
    const source = sourceOf(field, property)
    if (source !== undefined && source !== DATE_FIELD) return []
    const what = source === DATE_FIELD ? 'Not every document has a date' : 'A passage cannot fill this field'
    return [{ field, reason: `${what}: leave it out of required, or let it be null` }]
  })
}

function types(property: JsonObject): unknown[] {
  const type = property['type'] ?? 'string'
  return Array.isArray(type) ? type : [type]
}
