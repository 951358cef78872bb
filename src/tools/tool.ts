import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import { isObject } from '../protocol/json.ts'
import { checkRequest } from '../protocol/requests/check.ts'
import { type JsonSchema, jsonSchemaOf, type Limits } from '../protocol/requests/json-schema.ts'
import type { ObjectShape, Schema, Shape } from '../protocol/requests/schema.ts'
import { cutText } from '../protocol/cut-text.ts'

/** One call of a tool. */
export interface ToolCall {
  /** Aborted when the caller has cancelled the call or is gone, and when the server closes. */
  readonly signal: AbortSignal
  /** Reports progress; undefined if the caller does not ask for it. `fraction` is from 0 to 1. */
  readonly report: ((fraction: number, message: string) => void) | undefined
}

/** What a tool returns: a JSON object, and what a model should do next, if anything. */
export interface ToolResult {
  readonly value: object
  readonly next?: string | undefined
}

/** A tool for language models. */
export interface Tool {
  readonly name: string
  readonly title: string
  /** For the model. */
  readonly description: string
  /** Whether it creates nothing. */
  readonly isReadOnly: boolean
  /** The JSON Schema of its arguments, with these limits of a service. */
  input(limits?: Limits): JsonSchema
  /** Throws an ArgumentError for arguments that do not follow the schema. */
  run(given: Readonly<Record<string, unknown>>, call: ToolCall): Promise<ToolResult>
}

interface ToolDefinition<T> extends Omit<Tool, 'input' | 'run'> {
  readonly schema: Schema<T> & ObjectShape
  /** The fields of the schema that are arguments, by what they are for a model. All that is required has to be there. */
  readonly fields: Readonly<Partial<Record<keyof T & string, string>>>
  readonly run: (args: T, call: ToolCall) => Promise<ToolResult>
}

/**
 * Makes a tool whose arguments are fields of a request. The others cannot be given: a model that a text has misled must not choose where
 * webhooks go.
 */
export function defineTool<T>({ schema, fields, run, ...described }: ToolDefinition<T>): Tool {
  const hints = new Map(Object.entries<string | undefined>(fields))
  const only = (all: ObjectShape['optional']) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => hints.has(name)))
  const shape: Schema<T> = { ...schema, required: only(schema.required), optional: only(schema.optional) }

  return {
    ...described,
    input(limits) {
      const { properties, ...schemaOfArguments } = jsonSchemaOf(shape, limits)
      const withHints = Object.entries(Object(properties)).map(([name, property]) => [
        name,
        { ...Object(property), description: hints.get(name) },
      ])
      return {
        ...schemaOfArguments,
        properties: Object.fromEntries(withHints),
        additionalProperties: false,
      }
    },
    async run(given, call) {
      const args = withoutNulls(shape, given)
      const unknown = Object.keys(Object(args)).find((name) => !hints.has(name))
      if (unknown !== undefined) {
        const message = `there is no argument ${cutText(unknown, 100)}, but ${[...hints.keys()].join(', ')}`
        throw new ArgumentError('arguments', { message }, hidden(given))
      }
      checkRequest(shape, args)
      return await run(args, call)
    },
  }
}

/** A value without the fields that are null: models write null for what they leave out. Free data stays as it is. */
function withoutNulls(shape: Shape, value: unknown): unknown {
  switch (shape.kind) {
    case 'list':
      return Array.isArray(value) ? value.map((entry) => withoutNulls(shape.item, entry)) : value
    case 'either':
      return withoutNulls(shape.other, value)
    case 'nullable':
    case 'defaulted':
      return withoutNulls(shape.value, value)
    case 'object':
      return isObject(value) ? withoutNullFields({ ...shape.required, ...shape.optional }, value) : value
    case 'variants': {
      const variant = isObject(value) ? shape.variants[String(value['type'])] : undefined
      return variant === undefined ? value : withoutNulls(variant, value)
    }
    default:
      return value
  }
}

function withoutNullFields(fields: Readonly<Record<string, Shape>>, value: object): object {
  const entries = Object.entries(value).flatMap(([name, entry]): [string, unknown][] => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (entry === null && field?.kind !== 'nullable' && field?.kind !== 'unknown') return []
    return [[name, field === undefined ? entry : withoutNulls(field, entry)]]
  })
  return Object.fromEntries(entries)
}
