import type { ServerResponse } from 'node:http'
import { problem } from '../http/problem.ts'

/** The requests that wait for an answer, to abort the work for them. */
export class OpenRequests {
  readonly #controllers = new Set<AbortController>()

  /** A signal that is aborted, with an HttpProblem, when the client disconnects or the service closes. */
  open(outgoing: ServerResponse): AbortSignal {
    const controller = new AbortController()
    this.#controllers.add(controller)
    outgoing.on('close', () => {
      this.#controllers.delete(controller)
      // No client receives it. The status is that of nginx for this case.
      controller.abort(problem(499, 'The client has disconnected'))
    })
    return controller.signal
  }

  /** Aborts the work for every open request. */
  close(): void {
    for (const controller of this.#controllers) controller.abort(problem(503, 'The service is closing'))
  }
}
