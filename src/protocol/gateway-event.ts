import type { EventOf } from './event.ts'
import { segment } from './id.ts'
import type { SearchRequest, SearchResponse } from './search.ts'
import { rfc3339 } from './timestamp.ts'

/** A search that a subject has made through a gateway. At most 64 Ki characters of JSON. */
export interface GatewaySearch {
  /** The subject of the grant. */
  readonly sub: string
  /** The `session_id` of the response or of the request; where neither has one, the id of the grant. */
  readonly session: string
  readonly request: SearchRequest
  readonly response: SearchResponse
  /** Where a part was too long: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
}

/** A ticket was exchanged for a cookie. A log has one for each ticket, so that no ticket is good twice. */
export interface GatewaySession {
  readonly sub: string
  /** The id of the grant. */
  readonly grant: string
  /** Random, of the exchange. */
  readonly exchange: string
}

/** Grants were revoked: all of a subject that were made until then, or one. */
export interface GatewayRevoked {
  /** Null where one grant is revoked. */
  readonly sub: string | null
  /** The id of the grant; null where those of a subject are revoked. */
  readonly grant: string | null
  /** When, in RFC 3339. */
  readonly at: string
}

/** The source of what subjects do through a gateway, which each of their grants covers: `/subjects/{sub}`. */
export function subjectSource(sub: string): string {
  return `/subjects/${segment(sub)}`
}

/** @param key Unique for this search. */
export function searchEvent(data: GatewaySearch, key: string, now: number): EventOf<'gateway.search'> {
  const at = rfc3339(now)
  const source = subjectSource(data.sub)
  return { id: `search:${key}`, source, type: 'gateway.search', time: at, data, received: at, via: 'log' }
}

/** The same id for each exchange of a ticket. */
export function sessionEvent(data: GatewaySession, now: number): EventOf<'gateway.session'> {
  const at = rfc3339(now)
  const source = subjectSource(data.sub)
  const id = `session:${data.grant}`
  return { id, source, type: 'gateway.session', time: at, data, received: at, via: 'log' }
}

/** @param key Unique for this revocation. */
export function revokedEvent(
  { sub, grant }: Omit<GatewayRevoked, 'at'>,
  key: string,
  now: number,
): EventOf<'gateway.revoked'> {
  const at = rfc3339(now)
  const data: GatewayRevoked = { sub, grant, at }
  return {
    id: `revoked:${key}`,
    source: '/gateway',
    type: 'gateway.revoked',
    time: at,
    data,
    received: at,
    via: 'log',
  }
}
