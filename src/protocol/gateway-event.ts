import type { EventOf } from './event.ts'
import type { GatewayRevoked, GatewaySearch, GatewaySession } from './gateway.ts'
import { segment } from './id.ts'
import { rfc3339 } from './timestamp.ts'

/** The source of events about a subject's requests to a gateway, which each of its grants covers: `/subjects/{sub}`. */
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
