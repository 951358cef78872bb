import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { MEMORY_BETA } from '../../protocol/betas.ts'
import { isObject } from '../../protocol/json.ts'
import type {
  Memory,
  MemoryRetrieveRequest,
  MonitorMemoryEvent,
  UnknownMemory,
} from '../../protocol/memory.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'

/** A result of `memory.retrieve`, discriminated by `kind`. */
export type MemoryResult = Memory | UnknownMemory

/** What `memory.retrieve` emits, best results first. */
export interface RetrievedMemories {
  readonly results: readonly MemoryResult[]
}

/** The path of retrievals. */
export const RETRIEVE = '/v1beta/memory/retrieve'

/** Retrieves memories once, by a valid request. */
export function retrieval(context: Context, body: MemoryRetrieveRequest): Observable<RetrievedMemories> {
  const call: ApiRequest = { method: 'POST', path: RETRIEVE, body, betas: [MEMORY_BETA], idempotent: true }
  return requestShape<{ readonly results: readonly unknown[] }>(context, call, ['results']).pipe(
    map((answer) => ({ ...answer, results: answer.results.map(resultOf) })),
  )
}

function resultOf(data: unknown): MemoryResult {
  return isMemory(data) ? data : { kind: 'unknown', data }
}

/** Whether it has the fields of its kind. */
function isMemory(value: unknown): value is Memory {
  if (!hasTexts(value, ['id', 'input_excerpt', 'updated_at'])) return false
  const { kind, output_excerpt, matched_count, status, matched_events } = value
  if (kind === 'task') return typeof output_excerpt === 'string'
  if (kind === 'findall') return typeof matched_count === 'number'
  if (kind !== 'monitor' || typeof status !== 'string') return false
  return matched_events == null || (Array.isArray(matched_events) && matched_events.every(isEvent))
}

function isEvent(value: unknown): value is MonitorMemoryEvent {
  return hasTexts(value, ['event_id', 'event_group_id', 'detected_at', 'excerpt'])
}

function hasTexts(value: unknown, names: readonly string[]): value is Readonly<Record<string, unknown>> {
  return isObject(value) && names.every((name) => typeof value[name] === 'string')
}
