/**
 * The shape of a value, as data. The client's check (`check.ts`) and the service's validation are made from it. Fields that a
 * schema does not name are accepted by both. Not zod, which is too large for the client: `zod/mini` with the same schemas adds 8.5 kB to
 * the gzipped bundle, these and their check add 1.1 kB.
 */
export type Shape =
  | TextShape
  | NumberShape
  | BooleanShape
  | { readonly kind: 'unknown' }
  /** One of these strings. If it is open, the client accepts others, since a service may know more values. */
  | { readonly kind: 'choice'; readonly values: readonly string[]; readonly isOpen?: boolean }
  | ListShape
  /** An object with keys that the caller chooses. */
  | { readonly kind: 'record'; readonly value: TextShape; readonly limit: Limit; readonly maxKey?: number }
  /** Any JSON object. */
  | { readonly kind: 'json'; readonly role?: JsonRole }
  /** Discriminated by the type in JSON. */
  | { readonly kind: 'either'; readonly simple: TextShape | BooleanShape; readonly other: Shape }
  | ObjectShape
  /** Null, or a value of the shape. Elsewhere, the service takes null for absent, and the client refuses it. */
  | { readonly kind: 'nullable'; readonly value: Shape }
  /** The service takes `fallback` for an absent or null value. The client requires the value, as its types do. */
  | { readonly kind: 'defaulted'; readonly value: Shape; readonly fallback: unknown }
  /**
   * Objects discriminated by their `type`. With a `fallback` the service takes an object without a type for the first variant that has
   * one of its fields, and for `fallback` if it has no field. The client requires the type.
   */
  | {
      readonly kind: 'variants'
      readonly variants: Readonly<Record<string, ObjectShape>>
      readonly fallback?: string | undefined
    }

/** The schema of a `T`. `of` is never set: it only makes schemas of different types incompatible for the compiler. */
export type Schema<T> = Shape & { readonly of?: (value: T) => T }

/**
 * A limit that each service sets for itself. The client cannot know the service's limit, so it does not check it. The
 * embedded service's limits are in `service/http/request-limits.ts`.
 */
export type Limit =
  | 'choices'
  | 'conditions'
  | 'domains'
  | 'entries'
  | 'exclusions'
  | 'header'
  | 'headers'
  | 'messages'
  | 'name'
  | 'queries'
  | 'query'
  | 'runs'
  | 'tools'
  | 'toolServers'
  | 'url'
  | 'urls'

/** The purpose of a free JSON object. The embedded service limits its size by it. */
export type JsonRole = 'metadata' | 'schema' | 'inputSchema'

export interface BooleanShape {
  readonly kind: 'boolean'
}

export interface TextShape {
  readonly kind: 'text'
  /** A description of valid values, as in "mode must be …". */
  readonly expected: string
  readonly fits?: (text: string) => boolean
  /** The minimum number of characters. If it is given, the client also refuses white space alone. */
  readonly min?: number
  /** The maximum number of characters. */
  readonly max?: number
  readonly limit?: Limit
  /** The embedded service also checks that a country exists. */
  readonly format?: 'uri' | 'country'
  /** Whether it may contain a credential. Errors do not show the value, nor a value that may contain it. */
  readonly isSecret?: boolean
}

export interface NumberShape {
  readonly kind: 'number'
  readonly expected: string
  readonly isInteger?: boolean
  readonly min: number
  /** Whether the number must be greater than `min`. */
  readonly isMinExcluded?: boolean
  readonly max?: number
}

export interface ListShape {
  readonly kind: 'list'
  readonly item: Shape
  readonly limit: Limit
  /** The minimum number of entries: 0 or 1. */
  readonly min: number
  /** Whether one entry is accepted instead of a list. */
  readonly orOne?: boolean
}

export interface ObjectShape {
  readonly kind: 'object'
  readonly required: Readonly<Record<string, Shape>>
  readonly optional: Readonly<Record<string, Shape>>
  readonly anyOf?: AnyOf<string> | undefined
}

/** Fields of which at least one must be given and not empty. */
export interface AnyOf<Name extends string> {
  readonly names: readonly Name[]
  readonly expected: string
}

type OptionalKey<T> = { [Key in keyof T]-?: Pick<T, never> extends Pick<T, Key> ? Key : never }[keyof T]
/** A schema for each field that a `T` must have. */
export type RequiredFields<T> = { readonly [Key in Exclude<keyof T, OptionalKey<T>>]: Schema<T[Key]> }
/** A schema for each field that a `T` may have. */
export type OptionalFields<T> = { readonly [Key in OptionalKey<T>]-?: Schema<Exclude<T[Key], undefined>> }

/** {@link OptionalFields} of a `T` without required fields. */
export type OnlyOptionalFields<T> = OptionalFields<T> &
  NoInfer<Record<Exclude<keyof T, OptionalKey<T>>, never>>

/** Whether at least one of these fields is given and not empty. */
export function holdsOneOf(names: readonly string[], value: Readonly<Record<string, unknown>>): boolean {
  return names.some((name) => {
    const field = value[name]
    return typeof field === 'string' ? field.trim() !== '' : Array.isArray(field) && field.length > 0
  })
}
