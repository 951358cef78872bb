import { isObject, readOutput } from '../evidence/evidence.ts'
import type { Evidence } from '../evidence/evidence.ts'
import type { CandidateRow } from '../rows.ts'

/** The finding about a candidate, for a condition or an enrichment. */
export interface Finding {
  readonly name: string
  readonly value: unknown
  readonly evidence: readonly Evidence[]
}

/** A condition and whether the candidate meets it; undefined if that is not known yet. */
export interface Condition extends Finding {
  readonly isMet: boolean | undefined
}

/** A candidate as the page shows it. */
export interface ShownCandidate {
  readonly conditions: readonly Condition[]
  readonly enrichments: readonly Finding[]
  readonly evidence: readonly Evidence[]
  /** Evidence of fields that the candidate does not have. */
  readonly others: readonly Evidence[]
}

/** The outputs of a candidate, whose parts may all be absent or of another type. */
export function readCandidate({ output, basis }: CandidateRow['candidate']): ShownCandidate {
  const shown = readOutput({ content: {}, basis })
  const evidence = shown.kind === 'none' ? [] : shown.evidence
  const conditions: Condition[] = []
  const enrichments: Finding[] = []
  const names = new Set<string>()
  for (const [name, given] of Object.entries(isObject(output) ? output : {})) {
    names.add(name)
    const each: unknown = given
    const { value, type, is_matched: isMet } = isObject(each) ? each : { value: each }
    const finding = { name, value, evidence: evidence.filter(({ field }) => field === name) }
    if (type === 'match_condition' || typeof isMet === 'boolean') {
      conditions.push({ ...finding, isMet: typeof isMet === 'boolean' ? isMet : undefined })
    } else {
      enrichments.push(finding)
    }
  }
  return { conditions, enrichments, evidence, others: evidence.filter(({ field }) => !names.has(field)) }
}

const ORDER: readonly string[] = ['matched', 'generated', 'unmatched', 'discarded']

/** Matched candidates first, then those that are still evaluated; each by their last change. */
export function compareCandidates(a: CandidateRow, b: CandidateRow): number {
  const [first, second] = [a, b].map(({ candidate }) => ORDER.indexOf(candidate.match_status))
  return (first ?? 0) - (second ?? 0) || b.recorded - a.recorded
}
