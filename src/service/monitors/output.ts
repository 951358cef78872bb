import type { FieldBasis, JsonOutput, TaskOutput } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { JsonSchema } from '../../protocol/requests/json-schema.ts'
import type { EventStreamSettings } from './request.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { type Extraction, extractFrom } from '../processor/extract-from.ts'
import { confidenceOf } from '../processor/answer/confidence.ts'
import type { News } from './news.ts'
import { namedFields, requiredFields } from './schema-faults.ts'
import { sourceOf, takesNull } from './schema-fields.ts'

/** The output of an event, and its date. */
export interface EventOutput {
  readonly date: string | null
  readonly output: TaskOutput
}

/** The confidence in a value that is stated as a field of its own, such as the document's address. */
const STATED = confidenceOf({
  likelihood: undefined,
  form: true,
  agreeing: 1,
  disagreeing: 0,
  hasRivals: false,
  nearness: 1,
  direct: true,
  own: true,
  stated: true,
  isAuthorOnly: false,
  missing: [],
})

/**
 * The outputs of events: the passage as text, or as JSON with the fields of the monitor's schema (§2.3), extracted from the passage as the
 * fields of runs are. A required field that it does not state, and that must not be null, is left out, with a warning.
 */
export async function outputsOf(
  news: readonly News[],
  { query, output_schema }: EventStreamSettings,
  isolated: Isolated,
  signal: AbortSignal,
): Promise<{ readonly outputs: readonly EventOutput[]; readonly warnings: readonly Warning[] }> {
  const outputs: EventOutput[] = []
  const missing = new Set<string>()
  for (const one of news) {
    const date = one.passage.publishDate
    if (output_schema === undefined) {
      outputs.push({
        date,
        output: { type: 'text', content: one.passage.text, basis: [stated('output', one)] },
      })
      continue
    }
    const schema = output_schema.json_schema
    const output = await jsonOutput(one, { schema, question: query, isolated, signal })
    for (const field of requiredFields(schema)) if (!Object.hasOwn(output.content, field)) missing.add(field)
    outputs.push({ date, output })
  }
  const warnings = [...missing].map((field): Warning => ({
    type: 'warning',
    message: `An event does not have the required field ${field}, as its passage does not state it: let it be null, or leave it out of required`,
  }))
  return { outputs, warnings }
}

async function jsonOutput(news: News, { schema, ...extraction }: Extraction): Promise<JsonOutput> {
  const { passage, reason } = news
  // The extraction fails without a required field, but an event must not be lost.
  const lenient = { ...schema, required: [] }
  const extracted = await extractFrom([passage], { ...extraction, schema: lenient })
  const found: JsonSchema = extracted.output.type === 'json' ? extracted.output.content : {}
  const content: [field: string, value: unknown][] = []
  const bases: FieldBasis[] = []
  for (const [field, property] of namedFields(schema)) {
    const source = sourceOf(field, property)
    const own = source?.value(news) ?? null
    const basis = extracted.output.basis.find((entry) => entry.field === field)
    const value = found[field]
    const isFound = (basis?.citations ?? []).length > 0
    if (source !== undefined && own !== null && (source.isFirst || !isFound)) {
      content.push([field, own])
      bases.push(stated(field, { ...news, reason: `${reason} The field takes ${source.name}.` }))
    } else if (value !== undefined && (isFound || Array.isArray(value))) {
      content.push([field, value])
      if (basis !== undefined) bases.push({ ...basis, reasoning: `${reason} ${basis.reasoning}` })
    } else if (takesNull(property)) {
      content.push([field, null])
      bases.push({
        field,
        reasoning: `${reason} ${basis?.reasoning ?? 'Nothing was found for this field.'}`,
        citations: [],
        confidence: 'low',
      })
    }
  }
  return { type: 'json', content: Object.fromEntries(content), basis: bases }
}

function stated(field: string, { passage: { url, title, text }, reason }: News): FieldBasis {
  return { field, reasoning: reason, citations: [{ url, title, excerpts: [text] }], confidence: STATED }
}
