import type { HttpBindings } from '@hono/node-server'
import type { MiddlewareHandler } from 'hono'
import { BodyIntake, type BodyFailure } from '../../http/body-intake.ts'
import { readIncoming } from '../../http/node-request.ts'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import { problem, type HttpProblem } from './problem.ts'

/** Bytes of a request's body, at the most. */
export const MAX_BODY = 4 * 1024 * 1024
/** Bytes of what runs may say beside their inputs and specs, metadata and tool servers for instance. */
const MAX_EXTRAS = 16 * 1024 * 1024

/**
 * Bytes of a request that adds runs (§4.3), at the most: as many and as long ones as it may hold, where a character takes
 * up to three bytes, and whatever else it says of them.
 */
const MAX_RUNS_BODY = MAX_RUNS_PER_REQUEST * MAX_RUN_CHARACTERS * 3 + MAX_EXTRAS
const ADDS_RUNS = /^\/v1(beta)?\/tasks\/groups\/[^/]+\/runs$/

/** Whether a request adds runs to a group, many at once: it may hold more than any other. */
export function addsRuns(path: string): boolean {
  return ADDS_RUNS.test(path)
}

/** Reads the body of a POST, and refuses one that is longer than its path takes with a 413, without keeping it. */
export function limitBody(): MiddlewareHandler<{ Bindings: HttpBindings }> {
  const bodies = new BodyIntake({ maxBodyBytes: MAX_BODY })
  const runsBodies = new BodyIntake({ maxBodyBytes: MAX_RUNS_BODY })
  return async (c, next) => {
    if (c.req.method === 'POST') {
      const arrayBuffer = await readBody(c.env.incoming, addsRuns(c.req.path) ? runsBodies : bodies)
      // Hono keeps promises there of what it has read itself. A `Request` with this body would be made for nothing else.
      Object.assign(c.req.bodyCache, { arrayBuffer: Promise.resolve(arrayBuffer) })
    }
    await next()
  }
}

async function readBody(incoming: HttpBindings['incoming'], intake: BodyIntake): Promise<ArrayBuffer> {
  const declared = intake.refusalOf(incoming.headers['content-length'])
  if (declared !== undefined) throw refused(declared, intake)
  const body = intake.open()
  try {
    readIncoming(incoming, body)
    const bytes = await body.bytes
    if (typeof bytes === 'string') throw refused(bytes, intake)
    // A copy, since a chunk of `node:http` is a part of a larger buffer.
    return new Uint8Array(bytes).buffer
  } finally {
    body.release()
  }
}

function refused(failure: BodyFailure, { maxBodyBytes }: BodyIntake): HttpProblem {
  return failure === 'body_too_large'
    ? problem(413, `The body is longer than ${maxBodyBytes} bytes`)
    : problem(400, 'The request broke off before its body was complete')
}
