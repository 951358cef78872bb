import { isObject } from '../../protocol/event.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import { compileSchema, jsonSchemaOf } from './json-schema.ts'
import type { Processor } from './processor.ts'

/** A processor whose answers satisfy their JSON schema: of an answer that does not, the run fails with the reason. */
export function validating(processor: Processor): Processor {
  return {
    async run(task, signal) {
      const result = await processor.run(task, signal)
      const schema = jsonSchemaOf(task.input.task_spec?.output_schema)
      if (schema !== undefined && isObject(result.output)) assertValid(result.output, schema)
      return result
    },
  }
}

function assertValid(output: TaskOutput, schema: Readonly<Record<string, unknown>>): void {
  if (output.type !== 'json') {
    throw new Error('The answer is text, but the output schema asks for JSON')
  }
  const issue = compileSchema(schema).validate(output.content)
  if (issue === undefined) return
  throw new Error(`The answer does not satisfy the output schema. ${fieldName(issue.path)}: ${issue.message}`)
}

function fieldName(path: readonly string[]): string {
  return path.length === 0 ? 'The content' : path.join('.')
}
