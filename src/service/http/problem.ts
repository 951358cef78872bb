import { randomUUID } from 'node:crypto'
import type { ErrorResponse, ValidationErrorResponse, ValidationIssue } from '../../protocol/problem.ts'

/** An error response (§7). Routes throw it, and `createApp` sends it. */
export class HttpProblem extends Error {
  readonly status: number
  readonly body: ErrorResponse | ValidationErrorResponse
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    body: ErrorResponse | ValidationErrorResponse,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(`answered with ${status}`)
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
): HttpProblem {
  return new HttpProblem(status, { type: 'error', error: { ref_id: randomUUID(), message, detail } }, headers)
}

/** The 422 of the task-group endpoints: a `detail` list (§4.3). */
export function invalidRequest(issues: readonly ValidationIssue[]): HttpProblem {
  return new HttpProblem(422, { detail: issues })
}
