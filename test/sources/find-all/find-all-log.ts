import type { IncomingMessage, ServerResponse } from 'node:http'
import { answer, openStream, queryOf, sse } from '../../support/serve.ts'

/** An event as the service sends it. */
export interface Wire {
  readonly type: string
  readonly event_id?: string
  readonly timestamp?: string
  readonly data?: unknown
}

const timestamp = '2026-01-01T00:00:00Z'

/** The run `f` with these counts. */
export function findAllRun(generated: number, matched: number, isActive: boolean, status?: string) {
  return {
    findall_id: 'f',
    generator: 'base',
    status: {
      status: status ?? (isActive ? 'running' : 'completed'),
      is_active: isActive,
      metrics: { generated_candidates_count: generated, matched_candidates_count: matched },
      termination_reason: isActive ? null : 'match_limit_met',
    },
  }
}

export function statusEvent(event_id: string, generated: number, matched: number, isActive: boolean): Wire {
  return { type: 'findall.status', event_id, timestamp, data: findAllRun(generated, matched, isActive) }
}

export function candidateEvent(event_id: string, kind: string, candidate: string, more: object = {}): Wire {
  const match_status = kind === 'enriched' ? 'matched' : kind
  const url = `https://${candidate}.example`
  const data = { candidate_id: candidate, name: candidate, url, match_status, ...more }
  return { type: `findall.candidate.${kind}`, event_id, timestamp, data }
}

/** All events of a run that has generated this many candidates, every second of which has matched. */
export function eventsOf(candidates: number): readonly Wire[] {
  const events = Array.from({ length: candidates }, (_, n) => {
    const matched = Math.floor(n / 2)
    const id = `c${n + 1}`
    const generated = candidateEvent(`g${n}`, 'generated', id)
    const judged = candidateEvent(`j${n}`, n % 2 === 1 ? 'matched' : 'unmatched', id)
    return [generated, statusEvent(`s${n}`, n + 1, matched, true), judged]
  })
  const end = statusEvent('end', candidates, Math.floor(candidates / 2), false)
  return [...events.flat(), end]
}

/** Answers a request for the stream with the events after its position, and closes it. */
export function sendAfter(request: IncomingMessage, response: ServerResponse, log: readonly Wire[]): void {
  const after = queryOf(request).get('last_event_id')
  openStream(response)
  const from = log.findIndex(({ event_id }) => event_id === after) + 1
  response.end(log.slice(from).map(sse).join(''))
}

/** Whether the request is for the stream. */
export function isStream(request: IncomingMessage): boolean {
  return (request.url ?? '').split('?')[0]?.endsWith('/events') === true
}

/** A listener whose stream is this, and whose run has ended as its last event says. */
export function service(log: readonly Wire[], run: object = endOf(log)) {
  return (request: IncomingMessage, response: ServerResponse) => {
    if (isStream(request)) sendAfter(request, response, log)
    else answer(response, run)
  }
}

export function endOf(log: readonly Wire[]): object {
  return Object(log.findLast(({ type }) => type === 'findall.status')?.data)
}
