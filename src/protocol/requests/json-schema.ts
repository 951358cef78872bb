import type { Limit, ObjectShape, Shape, TextShape } from './schema.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** The figures of a service's limits. A client knows none. */
export type Limits = Readonly<Partial<Record<Limit, number>>>

/** The JSON Schema of a shape, as far as JSON Schema can express it. */
export function jsonSchemaOf(shape: Shape, limits: Limits = {}): JsonSchema {
  const of = (part: Shape) => jsonSchemaOf(part, limits)
  switch (shape.kind) {
    case 'text':
      return text(shape, limits)
    case 'number': {
      const { isInteger, isMinExcluded, min, max } = shape
      const minimum = isMinExcluded === true ? { exclusiveMinimum: min } : { minimum: min }
      return present({ type: isInteger === true ? 'integer' : 'number', ...minimum, maximum: max })
    }
    case 'boolean':
      return { type: 'boolean' }
    case 'unknown':
      return {}
    case 'choice':
      return { type: 'string', enum: shape.values }
    case 'list':
      return present({
        type: 'array',
        items: of(shape.item),
        minItems: shape.min || undefined,
        maxItems: limits[shape.limit],
      })
    case 'record':
      return present({
        type: 'object',
        propertyNames: present({ maxLength: shape.maxKey ?? limits.name }),
        additionalProperties: of(shape.value),
        maxProperties: limits[shape.limit],
      })
    case 'json':
      if (shape.role === 'inputSchema') return INPUT_SCHEMA
      return present({
        type: 'object',
        maxProperties: shape.role === 'metadata' ? limits.entries : undefined,
      })
    case 'either':
      return { anyOf: [of(shape.simple), of(shape.other)] }
    case 'nullable':
      return { anyOf: [of(shape.value), { type: 'null' }] }
    case 'defaulted':
      return { ...of(shape.value), default: shape.fallback }
    case 'object':
      return object(shape, {}, limits)
    case 'variants':
      return {
        anyOf: Object.entries(shape.variants).map(([type, variant]) =>
          shape.fallback === undefined
            ? object(variant, { type: { const: type } }, limits, ['type'])
            : object(variant, { type: { const: type, default: type } }, limits),
        ),
      }
  }
}

/** The forms of an input schema. Any other object is accepted too, since nothing is read from it. */
const INPUT_SCHEMA: JsonSchema = {
  type: 'object',
  anyOf: [
    {
      properties: { type: { const: 'json', default: 'json' }, json_schema: { type: 'object' } },
      required: ['json_schema'],
    },
    {
      properties: { type: { const: 'text', default: 'text' }, description: { type: ['string', 'null'] } },
    },
  ],
}

function text({ expected, fits, min, max, limit, format }: TextShape, limits: Limits): JsonSchema {
  return present({
    type: 'string',
    // A minimum says all of "a non-empty string".
    description: fits !== undefined && min === undefined ? expected : undefined,
    minLength: min,
    maxLength: max ?? (limit && limits[limit]),
    format: format === 'uri' ? format : undefined,
  })
}

/** An object, with more properties than its shape has. */
function object(
  { required, optional }: ObjectShape,
  others: Readonly<Record<string, JsonSchema>>,
  limits: Limits,
  othersRequired: readonly string[] = [],
): JsonSchema {
  const schemas = Object.entries({ ...required, ...optional }).map(([name, field]) => [
    name,
    jsonSchemaOf(field, limits),
  ])
  // A field with a default may be left out.
  const fields = Object.entries(required).filter(([, { kind }]) => kind !== 'defaulted')
  const names = [...othersRequired, ...fields.map(([name]) => name)]
  return present({
    type: 'object',
    properties: { ...others, ...Object.fromEntries(schemas) },
    required: names.length > 0 ? names : undefined,
  })
}

/** The schema without the keywords that are undefined. */
function present(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined))
}
