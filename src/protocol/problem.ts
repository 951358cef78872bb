/** A warning of the service about a request that succeeded (§2.4). New types may appear at any time. */
export interface Warning {
  readonly type: 'spec_validation_warning' | 'input_validation_warning' | 'warning' | (string & {})
  readonly message: string
  readonly detail?: Readonly<Record<string, unknown>> | null
}

/** The service's description of an error (§2.5). */
export interface ServiceProblem {
  /** A UUID that the service's operators can look up. */
  readonly ref_id: string
  readonly message: string
  readonly detail?: Readonly<Record<string, unknown>> | null
}

/** The error body of every endpoint but the task-group ones' 422 (§2.5, §7). */
export interface ErrorResponse {
  readonly type: 'error'
  readonly error: ServiceProblem
}

/** One problem of a request (§4.3); `loc` is the path to it. */
export interface ValidationIssue {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
}

/** The 422 body of the task-group endpoints (§4.3, §7). */
export interface ValidationErrorResponse {
  readonly detail: readonly ValidationIssue[]
}
