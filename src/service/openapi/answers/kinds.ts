import type { JsonSchema } from '../../../protocol/requests/json-schema.ts'
import type { Schema, Shape } from '../../../protocol/requests/schema.ts'

/* The kinds of schemas of responses, named like the kinds for requests. Each is a JSON Schema. Imported as `s`. */

/** A JSON Schema, or a component that the document has once. */
export type AnyAnswer = JsonSchema | Component

/** The schema of a `T`. `of` is never set: it only makes schemas of different types incompatible for the compiler. */
export type AnswerSchema<T> = AnyAnswer & { readonly of?: (value: T) => T }

/** A schema with a name, which others refer to. */
export class Component {
  readonly name: string
  /** A JSON Schema, or the schema of a request. */
  readonly schema: JsonSchema | RequestSchema

  constructor(name: string, schema: JsonSchema | RequestSchema) {
    this.name = name
    this.schema = schema
  }
}

/** The schema of a request, from which a JSON Schema is derived when the document is made. */
export class RequestSchema {
  readonly schema: Shape

  constructor(schema: Shape) {
    this.schema = schema
  }
}

type OptionalKey<T> = { [Key in keyof T]-?: Pick<T, never> extends Pick<T, Key> ? Key : never }[keyof T]
type Required<T> = { readonly [Key in Exclude<keyof T, OptionalKey<T>>]: AnswerSchema<T[Key]> }
type Optional<T> = { readonly [Key in OptionalKey<T>]-?: AnswerSchema<Exclude<T[Key], undefined>> }

/** The members of `T` whose discriminator may have the value. */
type UnionMember<T, Key extends keyof T, Value> = T extends unknown
  ? Value extends T[Key]
    ? T
    : never
  : never

/** Any string. */
export const text: AnswerSchema<string> = { type: 'string' }

/** An id. */
export const id: AnswerSchema<string> = { type: 'string', minLength: 1 }

/** A time, RFC 3339. */
export const timestamp: AnswerSchema<string> = { type: 'string', format: 'date-time' }

/** A URL. */
export const url: AnswerSchema<string> = { type: 'string', minLength: 1 }

/** An integer of at least 0. */
export const count: AnswerSchema<number> = { type: 'integer', minimum: 0 }

/** A number from `minimum` to `maximum`. */
export function numberFrom(minimum: number, maximum: number): AnswerSchema<number> {
  return { type: 'number', minimum, maximum }
}

/** True or false. */
export const flag: AnswerSchema<boolean> = { type: 'boolean' }

/** Anything. */
export const unknown: AnswerSchema<unknown> = {}

/** A string or a number. */
export const textOrNumber: AnswerSchema<string | number> = { type: ['string', 'number'] }

/** Null. */
export const nothing: AnswerSchema<null> = { type: 'null' }

/** Any JSON object. */
export const json: AnswerSchema<Readonly<Record<string, unknown>>> = { type: 'object' }

/** One of these values. */
export function oneOf<const Value extends string>(values: readonly Value[]): AnswerSchema<Value> {
  return values.length === 1 ? { const: values[0] } : { type: 'string', enum: values }
}

/** One of these strings, or another that the service may add. */
export function openOneOf<Value extends string>(examples: readonly string[]): AnswerSchema<Value> {
  return { type: 'string', examples }
}

/** A list. */
export function list<Item>(item: AnswerSchema<Item>): AnswerSchema<readonly Item[]> {
  return { type: 'array', items: item }
}

/** An object with keys that are not known beforehand. */
export function record<Value>(value: AnswerSchema<Value>): AnswerSchema<Readonly<Record<string, Value>>> {
  return { type: 'object', additionalProperties: value }
}

/** An object with some of these keys. */
export function someOf<Key extends string, Value>(
  keys: readonly Key[],
  value: AnswerSchema<Value>,
): AnswerSchema<Readonly<Partial<Record<Key, Value>>>> {
  return { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, value])) }
}

/** Null, or a value of the schema. */
export function orNull<Value>(value: AnswerSchema<Value>): AnswerSchema<Value | null> {
  return { anyOf: [value, nothing] }
}

/** An object with these fields. The compiler checks them against the fields of `T`. */
export function object<T>(required: Required<T>, optional: Optional<T>): AnswerSchema<T> {
  return { type: 'object', required: Object.keys(required), properties: { ...required, ...optional } }
}

/** A schema that the document has once, under this name. */
export function component<T>(name: string, schema: AnswerSchema<T>): AnswerSchema<T> {
  return schema instanceof Component ? new Component(name, schema.schema) : new Component(name, schema)
}

/** A value that a request had, as the service stored it. */
export function requested<T>(name: string, schema: Schema<T>): AnswerSchema<T> {
  return new Component(name, new RequestSchema(schema))
}

/** The members of a union. The compiler checks that there is one for each value of the discriminator. */
export function variants<T, Key extends keyof T & string>(members: {
  readonly [Value in Extract<T[Key], string>]: AnswerSchema<UnionMember<T, Key, Value>>
}): AnswerSchema<T> {
  return { anyOf: [...new Set(Object.values<AnyAnswer>(members))] }
}
