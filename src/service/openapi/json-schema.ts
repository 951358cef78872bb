import { type JsonSchema, jsonSchemaOf } from '../../protocol/requests/json-schema.ts'
import type { Shape } from '../../protocol/requests/schema.ts'
import { LIMITS } from '../http/request-limits.ts'
import { Component, RequestSchema } from './answers/kinds.ts'

/** The JSON Schema of a request's body, derived from the schema that validates it. */
export function requestJsonSchema(shape: Shape): JsonSchema {
  return jsonSchemaOf(shape, LIMITS)
}

/** The components of a document, by name. */
export class Components {
  readonly schemas = new Map<string, unknown>()
  readonly #added = new Map<string, Component['schema'] | Shape>()

  /** Adds the schema of a request's body, and returns a reference to it. */
  request(name: string, shape: Shape): JsonSchema {
    if (this.#isNew(name, shape)) this.schemas.set(name, requestJsonSchema(shape))
    return reference(name)
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
    return reference(name)
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

function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}
