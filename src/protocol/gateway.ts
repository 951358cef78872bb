import type { SearchRequest, SearchResponse } from './search.ts'

/** A search that a subject has made through a gateway. At most 64 Ki characters of JSON. */
export interface GatewaySearch {
  /** The subject of the grant. */
  readonly sub: string
  /** The `session_id` of the response or of the request; if neither has one, the id of the grant. */
  readonly session: string
  readonly request: SearchRequest
  readonly response: SearchResponse
  /** Set if a part was too long: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
}

/** A ticket was exchanged for a cookie. A log has one such event for each ticket, so that no ticket can be used twice. */
export interface GatewaySession {
  readonly sub: string
  /** The id of the grant. */
  readonly grant: string
  /** Random, of the exchange. */
  readonly exchange: string
}

/** Grants were revoked: all of a subject that were made until then, or one. */
export interface GatewayRevoked {
  /** Null if one grant is revoked. */
  readonly sub: string | null
  /** The id of the grant; null if all grants of a subject are revoked. */
  readonly grant: string | null
  /** When, in RFC 3339. */
  readonly at: string
}
