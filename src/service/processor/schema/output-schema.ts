import type { OutputSchema } from '../../../protocol/task.ts'

/** The JSON schema that the content of an answer must satisfy; undefined if there is none. */
export function jsonSchemaOf(
  schema: OutputSchema | undefined,
): Readonly<Record<string, unknown>> | undefined {
  return typeof schema === 'object' && schema.type === 'json' ? schema.json_schema : undefined
}
