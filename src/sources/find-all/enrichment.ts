import { isObject } from '../../protocol/json.ts'
import type { Envelope, EventOf, FindAllEvent } from '../../protocol/event.ts'
import type { FindAllCandidate, FindAllCandidateEvent, FindAllResult } from '../../protocol/find-all.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { checkedOutput, OutputSchemaError } from '../shapes/answer-schema.ts'

/** An enrichment that a schema has checked. */
interface CheckedEnrichment<Content> {
  /** The output of the schema; null without an enrichment, or if the enrichment does not match the schema. */
  readonly enrichment: Content | null
  /** Set if the enrichment does not match the schema, or a matched candidate has none. */
  readonly misfit?: OutputSchemaError
}

/** An event that `findAll.run` emits with a schema, discriminated by `type`. */
export type CheckedFindAllEvent<Content> =
  | Exclude<FindAllEvent, EventOf<'findall.candidate.enriched'>>
  | Envelope<'findall.candidate.enriched', FindAllCandidateEvent & CheckedEnrichment<Content>>

/** A candidate with its enrichment. */
export type EnrichedCandidate<Content> = FindAllCandidate & CheckedEnrichment<Content>

/** The result of `findAll.run` with a schema. */
export type CheckedFindAllResult<Content> = Omit<FindAllResult, 'candidates'> & {
  readonly candidates: readonly EnrichedCandidate<Content>[]
}

/** Checks the enrichment of an event. Returns a promise only for an asynchronous schema. */
export function checkedEvent<Content>(
  schema: AnswerSchema<Content>,
  event: FindAllEvent,
): CheckedFindAllEvent<Content> | Promise<CheckedFindAllEvent<Content>> {
  if (event.type !== 'findall.candidate.enriched') return event
  const withEnrichment = (checked: CheckedEnrichment<Content>): CheckedFindAllEvent<Content> => ({
    ...event,
    data: { ...event.data, ...checked },
  })
  const checked = checkedEnrichment(schema, event.data.data)
  return checked instanceof Promise ? checked.then(withEnrichment) : withEnrichment(checked)
}

/** Checks the enrichment of each candidate that has one, or must have one because it has matched. */
export async function checkedFindAllResult<Content>(
  schema: AnswerSchema<Content>,
  result: FindAllResult,
): Promise<CheckedFindAllResult<Content>> {
  const candidates: EnrichedCandidate<Content>[] = []
  for (const candidate of result.candidates) {
    const isExpected = candidate.match_status === 'matched' || enrichmentOf(candidate) !== undefined
    const checked = isExpected ? await checkedEnrichment(schema, candidate) : { enrichment: null }
    candidates.push({ ...candidate, ...checked })
  }
  return { ...result, candidates }
}

function checkedEnrichment<Content>(
  schema: AnswerSchema<Content>,
  candidate: FindAllCandidate,
): CheckedEnrichment<Content> | Promise<CheckedEnrichment<Content>> {
  const content = enrichmentOf(candidate)
  if (content === undefined) {
    const misfit = new OutputSchemaError([{ message: 'the candidate has no enrichment' }], null)
    return { enrichment: null, misfit }
  }
  const enrichment = (checked: { readonly content: Content } | OutputSchemaError) =>
    checked instanceof OutputSchemaError
      ? { enrichment: null, misfit: checked }
      : { enrichment: checked.content }
  const checked = checkedOutput(schema, { type: 'json', content, basis: candidate.basis ?? [] })
  return checked instanceof Promise ? checked.then(enrichment) : enrichment(checked)
}

/** The values of the enrichments of a candidate by their names; undefined if it has none. */
function enrichmentOf({ output }: FindAllCandidate): Readonly<Record<string, unknown>> | undefined {
  if (!isObject(output)) return undefined
  const values = Object.entries(output).flatMap(([name, entry]): [string, unknown][] =>
    isObject(entry) && entry['type'] === 'enrichment' ? [[name, entry['value']]] : [],
  )
  return values.length === 0 ? undefined : Object.fromEntries(values)
}
