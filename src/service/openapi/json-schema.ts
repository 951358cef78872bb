import { type JsonSchema, jsonSchemaOf } from '../../protocol/requests/json-schema.ts'
import type { Shape } from '../../protocol/requests/schema.ts'
import { LIMITS } from '../http/request-limits.ts'
import { type AnyAnswer, Component, RequestSchema } from './answers/kinds.ts'

/** The JSON Schema of a request's body, derived from the schema that validates it. */
export function requestJsonSchema(shape: Shape): JsonSchema {
  return jsonSchemaOf(shape, LIMITS)
}

/** A self-contained JSON Schema of a response, for the results of tools. */
export function selfContained(answer: AnyAnswer): JsonSchema {
  const components = new Components('#/$defs/')
  const root = answer instanceof Component ? answer.schema : answer
  return { ...Object(components.resolve(root)), $defs: Object.fromEntries(components.schemas) }
}

/** The components of a document, by name. */
export class Components {
  readonly schemas = new Map<string, unknown>()
  readonly #prefix: string
  readonly #added = new Map<string, Component['schema'] | Shape>()

  /** @param prefix The beginning of references. */
  constructor(prefix = '#/components/schemas/') {
    this.#prefix = prefix
  }

  /** Adds the schema of a request's body, with the fields that are `ignored` in it, and returns a reference to it. */
  request(name: string, shape: Shape, ignored: readonly string[] = []): JsonSchema {
    if (this.#isNew(name, shape)) {
      const { properties, ...schema } = requestJsonSchema(shape)
      const others = ignored.map((field) => [field, { description: 'Accepted and ignored' }])
      const all = { ...Object(properties), ...Object.fromEntries(others) }
      this.schemas.set(name, properties === undefined ? schema : { ...schema, properties: all })
    }
    return { $ref: this.#prefix + name }
  }

  /** The schema with references to components, which are added. */
  resolve(schema: unknown): unknown {
    if (schema instanceof Component) return this.#component(schema)
    if (Array.isArray(schema)) return schema.map((part) => this.resolve(part))
    if (typeof schema !== 'object' || schema === null) return schema
    const members = Object.entries(schema).filter(([, part]) => part !== undefined)
    return Object.fromEntries(members.map(([name, part]) => [name, this.resolve(part)]))
  }

  #component({ name, schema }: Component): JsonSchema {
    if (schema instanceof RequestSchema) return this.request(name, schema.schema)
    if (this.#isNew(name, schema)) {
      // Keeps the order in which components are first used.
      this.schemas.set(name, undefined)
      this.schemas.set(name, this.resolve(schema))
    }
    return { $ref: this.#prefix + name }
  }

  /** Whether a name is not used yet. Two schemas of one name would be an error of the table. */
  #isNew(name: string, schema: Component['schema'] | Shape): boolean {
    const previous = this.#added.get(name)
    if (previous === undefined) {
      this.#added.set(name, schema)
      return true
    }
    if (previous !== schema) throw new Error(`two schemas are named ${name}`)
    return false
  }
}
