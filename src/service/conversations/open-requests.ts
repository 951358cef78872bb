import type { ServerResponse } from 'node:http'
import { problem } from '../http/problem.ts'

/** The `Retry-After` of a request that a closing service ends, in s. */
const RETRY_AFTER = '1'

/** The requests that wait for an answer, to abort the work for them. */
export class OpenRequests {
  readonly #controllers = new Set<AbortController>()

  /** A signal that is aborted, with an HttpProblem, when the client disconnects or the service closes. */
  open(outgoing: ServerResponse): AbortSignal {
    const controller = new AbortController()
    this.#controllers.add(controller)
    outgoing.on('close', () => {
      this.#controllers.delete(controller)
      // No client receives it.
      controller.abort(problem(499, 'The client has disconnected'))
    })
    return controller.signal
  }

  /** Aborts the work for every open request. */
  close(): void {
    const closing = problem(503, 'The service is closing', null, { 'retry-after': RETRY_AFTER })
    for (const controller of this.#controllers) controller.abort(closing)
  }
}

/** Resolves with the answer, or with undefined when the client has disconnected and needs none. */
export async function unlessGone<T>(answer: Promise<T>, outgoing: ServerResponse): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (outgoing.destroyed) return undefined
    throw error
  }
}
