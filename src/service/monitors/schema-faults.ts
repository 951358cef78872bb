import { isObject } from '../../protocol/json.ts'
import type { JsonSchema } from '../../protocol/requests/json-schema.ts'

/** The fields of a schema, each with its own schema. */
export function namedFields(schema: JsonSchema): [field: string, property: unknown][] {
  const { properties } = schema
  return isObject(properties) ? Object.entries(properties) : []
}

/** The names of the required fields of a schema. */
export function requiredFields(schema: JsonSchema): string[] {
  return Array.isArray(schema['required']) ? schema['required'].map(String) : []
}

/** A problem of one field of a schema, or of the whole schema. */
export interface SchemaFault {
  readonly field?: string
  readonly reason: string
}

/** The reasons why no event can follow a schema. Such a schema is refused at creation. */
export function schemaFaults(schema: JsonSchema): SchemaFault[] {
  const fields = new Map(namedFields(schema))
  if ((schema['type'] ?? 'object') !== 'object' || fields.size === 0)
    return [{ reason: 'Expected an object whose fields are named in properties' }]
  return requiredFields(schema)
    .filter((field) => !fields.has(field))
    .map((field) => ({ field, reason: 'Required, but not among the properties' }))
}
