import { detached } from './detached.ts'
import { envelope, isWellFormedText, unknownEvent } from './event.ts'
import { isObject } from './json.ts'
import type { FindAllEvent, Via } from './event.ts'
import { CANDIDATE_CHANGES } from './find-all.ts'
import type { FindAllCandidateEvent, FindAllSchemaEvent, FindAllStatusEvent } from './find-all.ts'
import { segment } from './id.ts'
import { contentHash, unorderedHash } from './identity.ts'

/** `/v1beta/findall/runs/{id}`: the source of the events of a FindAll run and of its candidates. */
export function findAllSource(findAllId: string): string {
  return `/v1beta/findall/runs/${segment(findAllId)}`
}

/**
 * The event of a message of a FindAll run's stream or of its webhook; beyond the interface document. The ids are made of what
 * happened, since a webhook has no `event_id`: a candidate reaches each status once, an enrichment is known by its output, a
 * run's state by its status and counts, in any order of their fields, and by its `modified_at`: a run that was extended or
 * enriched can reach an earlier state again. An enrichment whose webhook has no output cannot be recognized in the stream.
 * `receivedAt` is Unix time in ms.
 */
export function findAllEvent(
  findAllId: string,
  wire: unknown,
  via: Via,
  position?: string,
  receivedAt: number = Date.now(),
): Exclude<FindAllEvent, { readonly type: 'stream.gap' | 'stream.oversized' }> {
  const source = findAllSource(findAllId)
  const eventId = isObject(wire) ? wire['event_id'] : undefined
  // A webhook may be ahead of the stream. Resuming after it would miss the events before it in the stream.
  const id = isWellFormedText(eventId) ? eventId : position && detached(position)
  const cursor = via === 'webhook' || id === '' ? undefined : id
  if (!isObject(wire)) return unknownEvent(source, wire, via, cursor, receivedAt)
  const { type, data } = wire
  const time = isWellFormedText(wire['timestamp']) ? wire['timestamp'] : null
  const problem = wire['error']
  if (type === 'error' && isObject(problem)) {
    const ref = isWellFormedText(problem['ref_id']) ? problem['ref_id'] : contentHash(wire)
    const failure = wire as unknown as Extract<FindAllEvent, { readonly type: 'error' }>['data']
    return envelope('error', `${findAllId}:error:${ref}`, source, null, failure, receivedAt, via, cursor)
  }
  if (!isObject(data)) return unknownEvent(source, wire, via, cursor, receivedAt)
  if (STATUS_TYPES.has(type) && isObject(data['status'])) {
    const statusId = `${findAllId}:status:${statusHash(data['status'], data['modified_at'])}`
    const status = wire as unknown as FindAllStatusEvent
    return envelope('findall.status', statusId, source, time, status, receivedAt, via, cursor)
  }
  const change = CANDIDATE_CHANGES.find((known) => known === type)
  const candidateId = data['candidate_id']
  if (change !== undefined && isWellFormedText(candidateId)) {
    const kind = change.slice('findall.candidate.'.length)
    const again = change === 'findall.candidate.enriched' ? `:${unorderedHash(data['output'] ?? null)}` : ''
    const candidate = wire as unknown as FindAllCandidateEvent
    return envelope(
      change,
      `${candidateId}:${kind}${again}`,
      source,
      time,
      candidate,
      receivedAt,
      via,
      cursor,
    )
  }
  if (type === 'findall.schema.updated') {
    const schemaId = `${findAllId}:schema:${unorderedHash(data)}`
    const schema = wire as unknown as FindAllSchemaEvent
    return envelope('findall.schema.updated', schemaId, source, time, schema, receivedAt, via, cursor)
  }
  return unknownEvent(source, wire, via, cursor, receivedAt)
}

const STATUS_TYPES: ReadonlySet<unknown> = new Set<FindAllStatusEvent['type']>([
  'findall.status',
  'findall.run.completed',
  'findall.run.cancelled',
  'findall.run.failed',
])

/** A hash of a run's state that is the same in its stream and in its webhooks: null counts as absent. */
function statusHash(status: Readonly<Record<string, unknown>>, modifiedAt: unknown): string {
  const { metrics } = status
  return unorderedHash({
    ...withoutNulls(status),
    ...(isObject(metrics) && { metrics: withoutNulls(metrics) }),
    ...(modifiedAt != null && { modified_at: modifiedAt }),
  })
}

function withoutNulls(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}
