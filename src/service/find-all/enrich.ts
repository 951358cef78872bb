import type { FindAllCandidate } from '../../protocol/find-all.ts'
import { isObject } from '../../protocol/event.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { Processor } from '../processor/processor.ts'
import type { PendingEnrichment } from './store.ts'

/** The default processor of enrichments; beyond the interface document. */
const DEFAULT_PROCESSOR = 'core'

/**
 * Enriches a candidate: executes a run about it, and adds each field of its output. When the run fails, the fields are null,
 * and their basis has the reason. Rejects when the signal is aborted.
 */
export async function enriched(
  { candidate, enrichment, index }: PendingEnrichment,
  processor: Processor,
  signal: AbortSignal,
): Promise<FindAllCandidate> {
  const { name, url, description } = candidate
  const { processor: named = DEFAULT_PROCESSOR, output_schema, mcp_servers } = enrichment
  const task = {
    run_id: `${candidate.candidate_id}_${index}`,
    input: {
      input: { name, url, ...(description != null && { description }) },
      processor: named,
      task_spec: { output_schema },
      ...(mcp_servers !== undefined && { mcp_servers }),
    },
    context: [],
    report: () => undefined,
  }
  let output: TaskOutput
  try {
    // A processor may ignore its signal.
    output = (await Promise.race([processor.run(task, signal), aborted(signal)])).output
    // An output that is not serializable fails the enrichment instead of the transaction that stores it.
    JSON.stringify(output)
    if (!isObject(output) || !isObject(output.content))
      throw new TypeError('the processor returned no fields')
  } catch (error) {
    signal.throwIfAborted()
    const message = error instanceof Error ? error.message : String(error)
    return withFields(candidate, failedFields(output_schema.json_schema, `The enrichment failed: ${message}`))
  }
  signal.throwIfAborted()
  const { content, basis } = output
  return withFields(candidate, { content: isObject(content) ? content : {}, basis })
}

/** Rejects when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

type Fields = Pick<TaskOutput, 'basis'> & { readonly content: Readonly<Record<string, unknown>> }

function withFields(candidate: FindAllCandidate, { content, basis }: Fields): FindAllCandidate {
  const fields = Object.entries(content).map(
    ([name, value]) => [name, { value, type: 'enrichment' }] as const,
  )
  return {
    ...candidate,
    output: { ...candidate.output, ...Object.fromEntries(fields) },
    basis: [...(candidate.basis ?? []), ...basis],
  }
}

function failedFields(schema: Readonly<Record<string, unknown>>, reasoning: string): Fields {
  const names = fieldsOf(schema)
  return {
    content: Object.fromEntries(names.map((name) => [name, null])),
    basis: names.map((field) => ({ field, reasoning, citations: [], confidence: 'low' })),
  }
}

/** The names of the fields that a schema has. */
export function fieldsOf({ properties }: Readonly<Record<string, unknown>>): string[] {
  return isObject(properties) ? Object.keys(properties) : []
}
