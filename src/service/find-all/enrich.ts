import type { FindAllCandidate } from '../../protocol/find-all.ts'
import { isObject } from '../../protocol/json.ts'
import type { FieldBasis, McpToolCall, TaskOutput } from '../../protocol/output.ts'
import type { McpServer } from '../../protocol/task.ts'
import { identifier } from '../identifier.ts'
import type { Processor, ProcessorResult } from '../processor/processor.ts'
import type { PendingEnrichment } from './store.ts'

/** The default processor of enrichments; beyond the interface document. */
const DEFAULT_PROCESSOR = 'core'

/**
 * Enriches a candidate: executes a run about it, and adds each field of its output and the calls of its tool servers. Warnings
 * of the run are added to the reasoning of each field. When the run fails, the fields are null, and their basis has the reason.
 * Tool servers whose credentials were deleted are not called; their calls have an error. Rejects when the signal is aborted.
 */
export async function enriched(
  { candidate, enrichment, index, isWithoutCredentials }: PendingEnrichment,
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
      ...(mcp_servers !== undefined && !isWithoutCredentials && { mcp_servers }),
    },
    context: [],
    report: () => undefined,
  }
  let result: ProcessorResult
  try {
    // A processor may ignore its signal.
    result = await Promise.race([processor.run(task, signal), aborted(signal)])
    const { output } = result
    // An output that is not serializable fails the enrichment instead of the transaction that stores it.
    JSON.stringify(result)
    if (!isObject(output) || !isObject(output.content))
      throw new TypeError('the processor returned no fields')
  } catch (error) {
    signal.throwIfAborted()
    const message = error instanceof Error ? error.message : String(error)
    return withFields(candidate, failedFields(output_schema.json_schema, `The enrichment failed: ${message}`))
  }
  signal.throwIfAborted()
  const { output, warnings = [] } = result
  const { content, basis } = output
  const notes = warnings.map(({ message }) => ` Warning: ${message}.`).join('')
  return withFields(candidate, {
    content: isObject(content) ? content : {},
    basis: notes === '' ? basis : basis.map((entry) => noted(entry, notes)),
    calls: isWithoutCredentials ? mcp_servers?.map(notCalled) : output.mcp_tool_calls,
  })
}

function noted(entry: FieldBasis, notes: string): FieldBasis {
  return { ...entry, reasoning: entry.reasoning + notes }
}

/** The call of a tool server that was left out, since its credentials were deleted. */
function notCalled({ name }: McpServer): McpToolCall {
  return {
    tool_call_id: identifier('mcp'),
    server_name: name,
    tool_name: 'initialize',
    arguments: '{}',
    error: 'The credentials of this server were deleted when the run ended',
  }
}

/** Rejects when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

interface Fields extends Pick<TaskOutput, 'basis'> {
  readonly content: Readonly<Record<string, unknown>>
  readonly calls?: TaskOutput['mcp_tool_calls']
}

function withFields(candidate: FindAllCandidate, { content, basis, calls }: Fields): FindAllCandidate {
  const fields = Object.entries(content).map(
    ([name, value]) => [name, { value, type: 'enrichment' }] as const,
  )
  return {
    ...candidate,
    output: { ...candidate.output, ...Object.fromEntries(fields) },
    basis: [...(candidate.basis ?? []), ...basis],
    ...(calls != null &&
      calls.length > 0 && { mcp_tool_calls: [...(candidate.mcp_tool_calls ?? []), ...calls] }),
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
