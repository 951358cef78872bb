import type { MiddlewareHandler } from 'hono'
import { concerns, type Faults, type FaultOf } from './faults.ts'
import { invalidRequest, problem } from '../http/problem.ts'
import { issue, unprocessable } from '../http/validation.ts'

const PAGE = '<!doctype html>\n<title>Please wait</title>\n<p>The fault wrong-type sends this page.</p>\n'

/** The faults `status` and `wrong-type`: the request is answered before its route, and does not take effect. */
export function answerInsteadOfRoute(faults: Faults): MiddlewareHandler {
  return async (c, next) => {
    const fault = faults.take(['status', 'wrong-type'], (armed) => concerns(armed, c.req.path))
    if (fault === undefined) return next()
    if (fault.kind === 'wrong-type') return c.html(PAGE)
    const { status } = fault
    throw problem(status, `The fault status responds with ${status}`, null, retryAfter(fault))
  }
}

/** The fault `invalid-cursor`: refuses a valid position with the error of its area (§7). */
export function refuseCursors(faults: Faults): MiddlewareHandler {
  return async (c, next) => {
    const { cursor, last_event_id } = c.req.query()
    const isSet = [cursor, last_event_id].some((value) => value !== undefined && value !== '')
    if (!isSet || !faults.take('invalid-cursor', (armed) => concerns(armed, c.req.path))) return next()
    if (cursor !== undefined) {
      throw unprocessable([issue(['query', 'cursor'], 'This cursor is no longer valid')])
    }
    const message = `The position ${last_event_id} is no longer valid`
    throw invalidRequest([issue(['query', 'last_event_id'], message)])
  }
}

/** A date uses real time, like the `Date` header that clients compare it with. */
function retryAfter({ retryAfter: seconds, retryAfterForm }: FaultOf<'status'>): Record<string, string> {
  if (seconds === undefined) return {}
  const date = () => new Date(Date.now() + seconds * 1_000).toUTCString()
  return { 'retry-after': retryAfterForm === 'date' ? date() : String(seconds) }
}
