import { isObject } from '../json.ts'
import type { ObjectShape, Shape } from './schema.ts'

/**
 * A request as a service takes it: what has a default is there, and what is null for absent is not. The parts that the schema leaves to
 * the caller, and the fields that it does not name, stay as they are.
 */
export function withDefaults(shape: Shape, value: unknown): unknown {
  switch (shape.kind) {
    case 'list':
      return Array.isArray(value) ? value.map((entry) => withDefaults(shape.item, entry)) : value
    case 'either':
      return withDefaults(shape.other, value)
    case 'nullable':
      return value === null ? null : withDefaults(shape.value, value)
    case 'defaulted':
      return withDefaults(shape.value, value ?? shape.fallback)
    case 'object':
      return isObject(value) ? fieldsOf(shape, value) : value
    case 'variants': {
      if (!isObject(value)) return value
      const type = typeIn(shape, value)
      // Not those that every object inherits, such as `constructor`.
      const variant = Object.hasOwn(shape.variants, String(type)) ? shape.variants[String(type)] : undefined
      return variant === undefined ? value : { ...fieldsOf(variant, value), type }
    }
    default:
      return value
  }
}

function fieldsOf({ required, optional }: ObjectShape, value: Readonly<Record<string, unknown>>): object {
  const shapes = new Map(Object.entries({ ...required, ...optional }))
  const names = new Set([...Object.keys(required), ...Object.keys(value)])
  return Object.fromEntries(
    [...names].flatMap((name) => {
      const shape = shapes.get(name)
      const field = shape === undefined ? value[name] : withDefaults(shape, value[name])
      return field == null && shape?.kind !== 'nullable' ? [] : [[name, field]]
    }),
  )
}

/**
 * The type of a value that may have one of the variants: its own, else the type of the first variant that has one of its fields, else the
 * `fallback`. Undefined if it has unknown fields alone, since they may be misspelt.
 */
export function typeIn(
  { variants, fallback }: Extract<Shape, { readonly kind: 'variants' }>,
  value: Readonly<Record<string, unknown>>,
): unknown {
  const { type } = value
  if (fallback === undefined || type != null) return type
  const given = Object.keys(value).filter((name) => value[name] != null)
  if (given.length === 0) return fallback
  return Object.entries(variants).find(([, { required, optional }]) =>
    given.some((name) => Object.hasOwn(required, name) || Object.hasOwn(optional, name)),
  )?.[0]
}
