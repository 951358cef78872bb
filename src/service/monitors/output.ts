import type { FieldBasis, TaskOutput } from '../../protocol/output.ts'
import type { JsonSchemaSpec } from '../../protocol/task.ts'
import type { Passage } from '../corpus/corpus.ts'
import { namedFields, sourceOf, takesNull } from './schema-fields.ts'

/** The output of an event: the passage as text, or as JSON with the fields of the monitor's schema (§2.3). */
export function passageOutput(
  passage: Passage,
  reasoning: string,
  schema: JsonSchemaSpec | undefined,
): TaskOutput {
  if (schema === undefined) {
    return { type: 'text', content: passage.text, basis: [basis('output', reasoning, 'high')] }
  }
  const content: [field: string, value: string | null][] = []
  const bases: FieldBasis[] = []
  for (const [field, property] of namedFields(schema.json_schema)) {
    const source = sourceOf(field, property)
    const value = source?.value(passage) ?? null
    if (source !== undefined && value !== null) {
      content.push([field, value])
      bases.push(basis(field, `${reasoning} The field takes ${source.name}.`, 'high'))
    } else if (takesNull(property)) {
      content.push([field, null])
      bases.push(basis(field, `${reasoning} Nothing was found for this field.`, 'low'))
    }
  }
  return { type: 'json', content: Object.fromEntries(content), basis: bases }

  function basis(field: string, why: string, confidence: 'high' | 'low'): FieldBasis {
    const { url, title, text } = passage
    return { field, reasoning: why, citations: [{ url, title, excerpts: [text] }], confidence }
  }
}
