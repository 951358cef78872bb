import type { MiddlewareHandler } from 'hono'
import { concerns, type Faults, type FaultOf } from '../faults.ts'
import { invalidRequest, problem } from './problem.ts'
import { issue, unprocessable } from './validation.ts'

const PAGE =
  '<!doctype html>\n<title>Please wait</title>\n<p>The service was told to answer with a page.</p>\n'

/** The faults that keep a request from taking effect, `status` and `wrong-type`: something on the way answers. */
export function answerOnTheWay(faults: Faults): MiddlewareHandler {
  return async (c, next) => {
    const fault = faults.take(['status', 'wrong-type'], (armed) => concerns(armed, c.req.path))
    if (fault === undefined) return next()
    if (fault.kind === 'wrong-type') return c.html(PAGE)
    const { status } = fault
    throw problem(status, `The service was told to answer with ${status}`, null, retryAfter(fault))
  }
}

/** The fault `invalid-cursor`: positions that were valid once, refused in the words of their area (§7). */
export function refuseCursors(faults: Faults): MiddlewareHandler {
  return async (c, next) => {
    const { cursor, last_event_id } = c.req.query()
    const isSet = [cursor, last_event_id].some((value) => value !== undefined && value !== '')
    if (!isSet || !faults.take('invalid-cursor', (armed) => concerns(armed, c.req.path))) return next()
    if (cursor !== undefined) {
      throw unprocessable([issue(['query', 'cursor'], 'This cursor is no longer valid')])
    }
    const said = `The position ${last_event_id} is no longer valid`
    throw invalidRequest([issue(['query', 'last_event_id'], said)])
  }
}

/** A date goes by real time, as the `Date` header does that it is held against. */
function retryAfter({ retryAfter: seconds, retryAfterForm }: FaultOf<'status'>): Record<string, string> {
  if (seconds === undefined) return {}
  const date = () => new Date(Date.now() + seconds * 1_000).toUTCString()
  return { 'retry-after': retryAfterForm === 'date' ? date() : String(seconds) }
}
