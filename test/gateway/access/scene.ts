import { memoryStore, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { onTestFinished } from 'vitest'
import { Authority } from '../../../src/gateway/access/authority.ts'
import type { AuthorityOptions } from '../../../src/gateway/access/authority.ts'
import type { Access } from '../../../src/gateway/access/access.ts'
import type { Grant } from '../../../src/gateway/grant.ts'

/** Of the tokens of the tests. */
export const SECRET = 'a-secret-of-at-least-32-bytes-for-tests'

export const GRANT: Grant = { sub: 'ada', views: ['group'], sources: ['/v1/tasks/groups/tgrp_1'] }

/** An open log, closed when the test ends. Default: a new one in memory. */
export async function logOf(store: LogStore = memoryStore()): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close())
  return log
}

/** An authority, closed when the test ends. Default: over a log of its own. */
export async function authority(options: Partial<AuthorityOptions> = {}): Promise<Authority> {
  const { log = await logOf() } = options
  const own = new Authority({
    tokens: { secret: SECRET },
    views: ['group', 'monitors'],
    path: '/live',
    ...options,
    log,
  })
  onTestFinished(() => own.close())
  return own
}

/** A request with a bearer token. */
export function bearing(token: string): Request {
  return new Request('http://localhost/live/stream', { headers: { authorization: `Bearer ${token}` } })
}

/** The access of a new token with this grant. Throws where it is refused. */
export async function accessOf(own: Authority, grant: Grant): Promise<Access> {
  const access = await own.authenticate(bearing(await own.sign(grant)))
  if (access instanceof Response) throw new Error(await access.text())
  return access
}

/** The status and code of a refusal, or `admitted`. */
export async function codeOf(answer: Access | Response): Promise<unknown> {
  return answer instanceof Response ? [answer.status, (await answer.json()).error.code] : 'admitted'
}
