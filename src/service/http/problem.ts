import { randomUUID } from 'node:crypto'
import type { ErrorResponse, ValidationErrorResponse, ValidationIssue } from '../../protocol/problem.ts'
import { IsolatedError } from '../isolated/isolated-error.ts'

/** An error response (§7). Routes throw it, and `createApp` sends it. */
export class HttpProblem<
  Body extends ErrorResponse | ValidationErrorResponse = ErrorResponse | ValidationErrorResponse,
> extends Error {
  readonly status: number
  readonly body: Body
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, body: Body, headers: Readonly<Record<string, string>> = {}) {
    super('error' in body ? body.error.message : body.detail.map(({ msg }) => msg).join('; '))
    this.status = status
    this.body = body
    this.headers = headers
  }
}

/** An ErrorResponse (§2.5) with a fresh `ref_id`. */
export function problem(
  status: number,
  message: string,
  detail: Readonly<Record<string, unknown>> | null = null,
  headers: Readonly<Record<string, string>> = {},
): HttpProblem<ErrorResponse> {
  return new HttpProblem(status, { type: 'error', error: { ref_id: randomUUID(), message, detail } }, headers)
}

/** The 422 of the task-group endpoints: a `detail` list (§4.3). */
export function invalidRequest(issues: readonly ValidationIssue[]): HttpProblem {
  return new HttpProblem(422, { detail: issues })
}

/** The `Retry-After` of a request that could not be checked, in s. */
const RETRY_AFTER = '1'

/** The problem that a client gets for a thrown value. Calls `onError` with an error of the service and its `ref_id`. */
export function problemOf(thrown: unknown, onError: (error: unknown, ref_id: string) => void): HttpProblem {
  if (thrown instanceof HttpProblem) return thrown
  const isUnchecked = thrown instanceof IsolatedError && thrown.isTemporary
  const found = isUnchecked
    ? problem(503, thrown.message, null, { 'retry-after': RETRY_AFTER })
    : problem(500, 'The service failed. Its log has the error under this ref_id')
  if (!isUnchecked || thrown.kind === 'crash') onError(thrown, found.body.error.ref_id)
  return found
}
