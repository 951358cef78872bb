import { isObject } from '../../protocol/json.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { jsonSchemaOf } from './schema/output-schema.ts'
import type { Processor } from './processor.ts'

/** A processor whose answers satisfy their JSON schema: of an answer that does not, the run fails with the reason. */
export function validating(processor: Processor, isolated: Pick<Isolated, 'validate'>): Processor {
  return {
    async run(task, signal) {
      const result = await processor.run(task, signal)
      const schema = jsonSchemaOf(task.input.task_spec?.output_schema)
      if (schema !== undefined && isObject(result.output)) await assertValid(isolated, result.output, schema)
      return result
    },
  }
}

async function assertValid(
  isolated: Pick<Isolated, 'validate'>,
  output: TaskOutput,
  schema: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (output.type !== 'json') {
    throw new Error('The answer is text, but the output schema asks for JSON')
  }
  const issue = await isolated.validate(schema, output.content)
  if (issue === undefined) return
  throw new Error(`The answer does not satisfy the output schema. ${fieldName(issue.path)}: ${issue.message}`)
}

function fieldName(path: readonly string[]): string {
  return path.length === 0 ? 'The content' : path.join('.')
}
