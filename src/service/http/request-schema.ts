import * as z from 'zod'
import { isObject } from '../../protocol/json.ts'
import { typeIn } from '../../protocol/requests/defaults.ts'
import { holdsOneOf } from '../../protocol/requests/schema.ts'
import type { NumberShape, ObjectShape, Schema, Shape, TextShape } from '../../protocol/requests/schema.ts'
import { isCountry } from './countries.ts'
import { atMost, jsonObject, LIMITS, list, record } from './request-limits.ts'

/** The zod schema of a request's body, with the limits of this service. Null means that an optional field is absent. */
export function bodySchema<T>(schema: Schema<T>): z.ZodType<T>
export function bodySchema(shape: Shape): z.ZodType {
  return toZod(shape)
}

/** The zod schema of a query. Its input has a list of values for each parameter, as `Context.req.queries()` returns. */
export function querySchema<T>(schema: Schema<T> & ObjectShape): z.ZodType<T>
export function querySchema({ optional }: ObjectShape): z.ZodType {
  return z.object(mapFields(optional, (shape) => parameter(shape).optional()))
}

function toZod(shape: Shape): z.ZodType {
  switch (shape.kind) {
    case 'text':
      return text(shape)
    case 'number':
      return number(shape)
    case 'boolean':
      return z.boolean()
    case 'unknown':
      return z.unknown()
    case 'choice':
      return z.enum(shape.values)
    case 'list':
      return list(toZod(shape.item), shape.limit, shape.min)
    case 'record':
      return record(text(shape.value), shape.limit, shape.maxKey)
    case 'json':
      return jsonObject(shape.role)
    case 'either':
      return z.union([toZod(shape.simple), toZod(shape.other)], { error: eitherError(shape) })
    case 'nullable':
      return toZod(shape.value).nullable()
    case 'defaulted':
      return z.preprocess((value) => value ?? undefined, toZod(shape.value).default(shape.fallback))
    case 'object':
      return object(shape)
    case 'variants':
      return variants(shape)
  }
}

/** Objects discriminated by their `type`, which may have a default. */
function variants(shape: ShapeOf<'variants'>): z.ZodType {
  const { fallback } = shape
  const [first, ...others] = Object.entries(shape.variants).map(([name, variant]) => {
    const type = z.literal(name)
    return z.object({ type: fallback === undefined ? type : type.default(name), ...fields(variant) })
  })
  if (first === undefined) throw new TypeError('there are no variants')
  const union = z.discriminatedUnion('type', [first, ...others])
  if (fallback === undefined) return union
  return z.preprocess((value) => (isObject(value) ? { ...value, type: typeIn(shape, value) } : value), union)
}

type ShapeOf<Kind extends Shape['kind']> = Extract<Shape, { readonly kind: Kind }>

/** A string. A string that is too long is not tested further. */
function text({ expected, fits, min, max, limit, format }: TextShape): z.ZodType<string> {
  const error = `Expected ${expected}`
  const most = max ?? (limit && LIMITS[limit])
  let schema = z.string()
  if (min !== undefined) schema = schema.min(min, { error })
  if (most !== undefined) schema = schema.max(most, atMost(most, 'characters'))
  const formatted = format === 'uri' ? schema.pipe(z.url({ protocol: /^https?$/, error })) : schema
  if (fits === undefined) return formatted
  const when = ({ issues }: z.core.ParsePayload) => issues.length === 0
  const fitting = formatted.refine(fits, { error, when })
  if (format !== 'country') return fitting
  return fitting.refine(isCountry, { error: 'There is no such country in ISO 3166-1', when })
}

/** The first issue of the variant that the input is, or an error if it is neither. */
function eitherError({
  simple,
  other,
}: ShapeOf<'either'>): z.core.$ZodErrorMap<z.core.$ZodIssueInvalidUnion> {
  const isList = other.kind === 'list'
  const expected = simple.kind === 'text' ? simple.expected : 'true, false'
  return ({ input, errors }) => {
    const isOther = isList ? Array.isArray(input) : isObject(input)
    const issue = isOther ? errors?.[1]?.[0] : undefined
    if (issue === undefined) return `Expected ${expected} or ${isList ? 'a list' : 'an object'}`
    const found = issue.path.reduce<unknown>((value, key) => Object(value)[key], input)
    const message = `${issue.path.join('.')}: ${found === undefined ? 'Field required' : issue.message}`
    const variant = other.kind === 'variants' ? variantOf(other, input) : undefined
    return variant === undefined ? message : `as ${variant}, ${message}`
  }
}

/** The type of the variant that the input is, if there is such a variant. */
function variantOf(shape: ShapeOf<'variants'>, input: unknown): string | undefined {
  const type = isObject(input) ? typeIn(shape, input) : undefined
  return typeof type === 'string' && Object.hasOwn(shape.variants, type) ? type : undefined
}

function number({ expected, isInteger, min, isMinExcluded, max }: NumberShape): z.ZodNumber {
  const error = `Expected ${expected}`
  const kind = isInteger === true ? z.int({ error, abort: true }) : z.number({ error })
  const schema = isMinExcluded === true ? kind.gt(min, { error }) : kind.min(min, { error })
  return max === undefined ? schema : schema.max(max, { error })
}

function object(shape: ObjectShape): z.ZodType {
  const schema = z.object(fields(shape))
  const { anyOf } = shape
  if (anyOf === undefined) return schema
  return schema.refine((value) => holdsOneOf(anyOf.names, value), {
    error: `Expected ${anyOf.expected}`,
    path: anyOf.names.slice(-1),
    params: { type: 'missing' },
  })
}

function fields({ required, optional }: ObjectShape): Record<string, z.ZodType> {
  return {
    ...mapFields(required, toZod),
    ...mapFields(optional, (shape) =>
      shape.kind === 'nullable'
        ? toZod(shape).optional()
        : z.preprocess((value) => value ?? undefined, toZod(shape).optional()),
    ),
  }
}

function mapFields(
  given: ObjectShape['optional'],
  map: (shape: Shape) => z.ZodType,
): Record<string, z.ZodType> {
  return Object.fromEntries(Object.entries(given).map(([name, shape]) => [name, map(shape)]))
}

/** A query parameter, unless it is a list. If such a parameter is repeated, the first value is used. */
function parameter(shape: Shape): z.ZodType {
  if (shape.kind === 'list') return z.preprocess(splitAtCommas, toZod(shape))
  return z.preprocess((values) => (Array.isArray(values) ? values[0] : undefined), parsed(shape).optional())
}

/** A list in a query: repeated, or written with commas. An empty entry of several is an absent one. */
function splitAtCommas(values: unknown): unknown {
  if (!Array.isArray(values)) return values
  const entries = values.flatMap((value) => String(value).split(','))
  return entries.length === 1 ? entries : entries.filter((entry) => entry !== '')
}

/** A value of a query parameter, parsed. */
function parsed(shape: Shape): z.ZodType {
  if (shape.kind === 'boolean')
    return z
      .enum(['true', 'false', '1', '0'])
      .transform((value) => value === 'true' || value === '1')
      .pipe(z.boolean())
  if (shape.kind !== 'number') return toZod(shape)
  // Without a sign, an exponent, white space and a fraction of an integer, which `Number` accepts.
  const digits = shape.isInteger === true ? /^\d+$/ : /^\d{1,9}(\.\d{1,3})?$/
  return z.string().regex(digits, `Expected ${shape.expected}`).transform(Number).pipe(number(shape))
}
