import { isObject, isText } from '../../protocol/json.ts'
import type { CANDIDATE_CHANGES, CandidateOutput, FindAllCandidate } from '../../protocol/find-all.ts'
import type { FieldBasis } from '../../protocol/output.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { bounded } from './bounded.ts'
import { isOlder } from './newer.ts'
import { shownId } from './resource.ts'

/** A candidate of a FindAll run. Its path is `[findAll, 'candidate', candidate_id]`. */
export interface CandidateRow {
  readonly kind: 'candidate'
  /** The candidate, with the outputs and the evidence of all its events. */
  readonly candidate: FindAllCandidate
  /** Time of its last event, in RFC 3339; null if the service gave none. */
  readonly time: string | null
  /** Set if a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
  /** When the last change was recorded, in Unix ms. */
  readonly recorded: number
}

/** The entry of a change of a candidate. */
export type CandidateEntry = EntryOf<(typeof CANDIDATE_CHANGES)[number]>

/** Maximum size of a stored candidate, in bytes. It fits into the state of a process. */
const MAX_CANDIDATE = 229_376

/** The most that is kept of a time, in characters. */
const MAX_TIME = 64

const STATUSES = ['generated', 'matched', 'unmatched', 'discarded'] as const

/** The candidate's own part of the event; undefined if it is none. */
export function candidateOf({ data }: CandidateEntry): FindAllCandidate | undefined {
  // The service may send anything, and a program may append anything.
  if (!isObject(data) || !isObject(data.data)) return undefined
  return isText(data.data.candidate_id) ? data.data : undefined
}

/**
 * The row of a candidate after an entry. Events may come in another order, from the stream and from webhooks: the later one decides,
 * and outputs and evidence that it lacks stay.
 */
export function candidateRow(
  row: CandidateRow | undefined,
  entry: CandidateEntry,
  candidate: FindAllCandidate,
): CandidateRow {
  const time = entry.time === null || entry.time.length > MAX_TIME ? null : entry.time
  const next = { ...candidate, match_status: statusOf(entry.type, candidate) }
  const isLate = row !== undefined && isBefore(next, time, row)
  const [first, second] = isLate ? [next, row.candidate] : [row?.candidate, next]
  const merged = first === undefined ? second : mergedCandidate(first, second)
  const { value, isTruncated } = bounded(merged, MAX_CANDIDATE, restOf(merged))
  return {
    kind: 'candidate',
    candidate: value,
    time: isLate ? row.time : (time ?? row?.time ?? null),
    ...((isTruncated || row?.truncated === true) && { truncated: true }),
    recorded: entry.recorded,
  }
}

/** The type of the event decides the status; an enrichment has no status. */
function statusOf(type: CandidateEntry['type'], { match_status }: FindAllCandidate) {
  const said = STATUSES.find((status) => type === `findall.candidate.${status}`)
  return said ?? STATUSES.find((known) => known === match_status) ?? 'generated'
}

/** Whether the first state comes before the second one: a candidate that was evaluated does not become merely generated again. */
function isBefore(next: FindAllCandidate, time: string | null, { candidate, time: known }: CandidateRow) {
  const isEvaluated = candidate.match_status !== 'generated'
  if (isEvaluated !== (next.match_status !== 'generated')) return isEvaluated
  return isOlder(time, known)
}

/** The second candidate, with the outputs and evidence that only the first has. */
function mergedCandidate(first: FindAllCandidate, second: FindAllCandidate): FindAllCandidate {
  const description = second.description ?? first.description
  const output = { ...outputOf(first), ...outputOf(second) }
  const later = basisOf(second)
  const fields = new Set(later.map(fieldOf))
  const basis = [...basisOf(first).filter((each) => !fields.has(fieldOf(each))), ...later]
  return {
    ...second,
    ...(description != null && { description }),
    ...(Object.keys(output).length > 0 && { output }),
    ...(basis.length > 0 && { basis }),
  }
}

function outputOf({ output }: FindAllCandidate): Readonly<Record<string, CandidateOutput>> {
  return isObject(output) ? output : {}
}

function basisOf({ basis }: FindAllCandidate): readonly FieldBasis[] {
  return Array.isArray(basis) ? basis : []
}

function fieldOf(basis: unknown): unknown {
  return isObject(basis) ? basis['field'] : undefined
}

/** The part of a candidate that is kept if no shortening makes it small enough. */
function restOf({ candidate_id, name, url, match_status }: FindAllCandidate): FindAllCandidate {
  return { candidate_id: shownId(candidate_id), name: shownText(name), url: shownText(url), match_status }
}

function shownText(value: unknown): string {
  return typeof value === 'string' ? shownId(value) : ''
}
