import type { HttpBindings } from '@hono/node-server'
import type { MiddlewareHandler } from 'hono'
import { BodyIntake, type BodyFailure } from '../../http/body-intake.ts'
import { readIncoming } from '../../http/node-request.ts'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import { problem, type HttpProblem } from './problem.ts'

/** Maximum size of a request's body, in bytes. */
export const MAX_BODY = 4 * 1024 * 1024
/** Maximum size of the other fields of runs, in bytes, such as metadata and tool servers. */
const MAX_EXTRAS = 16 * 1024 * 1024

/**
 * Maximum size of a request that adds runs (§4.3), in bytes: the maximum number of runs of the maximum length, at up to
 * three bytes a character, and their other fields.
 */
const MAX_RUNS_BODY = MAX_RUNS_PER_REQUEST * MAX_RUN_CHARACTERS * 3 + MAX_EXTRAS
const ADDS_RUNS = /^\/v1(beta)?\/tasks\/groups\/[^/]+\/runs$/

/** Whether a request adds runs to a group, and so may be larger than others. */
export function addsRuns(path: string): boolean {
  return ADDS_RUNS.test(path)
}

/** Reads the body of a POST. Responds with 413 when it exceeds the limit of its path, without buffering it. */
export function limitBody(): MiddlewareHandler<{ Bindings: HttpBindings }> {
  const bodies = new BodyIntake({ maxBodyBytes: MAX_BODY })
  const runsBodies = new BodyIntake({ maxBodyBytes: MAX_RUNS_BODY })
  return async (c, next) => {
    if (c.req.method === 'POST') {
      const arrayBuffer = await readBody(c.env.incoming, addsRuns(c.req.path) ? runsBodies : bodies)
      // Hono's own cache of the body.
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
    // Copies the bytes, since a chunk of `node:http` is a view of a larger buffer.
    return new Uint8Array(bytes).buffer
  } finally {
    body.release()
  }
}

function refused(failure: BodyFailure, { maxBodyBytes }: BodyIntake): HttpProblem {
  return failure === 'body_too_large'
    ? problem(413, `The body is longer than ${maxBodyBytes} bytes`)
    : problem(400, 'The request was aborted before its body was complete')
}
