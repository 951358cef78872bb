import type { ServiceProblem, ValidationIssue } from '../protocol/problem.ts'
import type { Retryable } from '../protocol/backoff.ts'

/** Which request an error is about. A path never carries a secret: keys travel in headers. */
export interface RequestLine {
  readonly method: string
  /** Path and query. */
  readonly path: string
}

/** Root of the library's own errors. */
export abstract class RivuletError extends Error implements Retryable {
  readonly method: string
  readonly path: string
  abstract readonly retryable: boolean
  readonly retryAfter: number | undefined = undefined
  /** Whether the service can have acted on the request. */
  readonly taken: 'no' | 'maybe' = 'maybe'

  constructor(message: string, request: RequestLine, options?: ErrorOptions) {
    super(`${request.method} ${request.path}: ${message}`, options)
    this.method = request.method
    this.path = request.path
  }

  /** What of it goes into JSON: an error by itself would be `{}` or all that it holds. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, message, method, path, retryable } = this
    return { name, message, method, path, retryable }
  }
}

/** What the service said when it refused or failed (§2.5, §7). */
export interface Refusal {
  readonly status: number
  readonly problem?: (Omit<ServiceProblem, 'ref_id'> & Partial<ServiceProblem>) | undefined
  /** The beginning of a body that is none of the interface's: a proxy's page, say. */
  readonly excerpt?: string | undefined
  readonly issues?: readonly ValidationIssue[] | undefined
  /** From the `Retry-After` header, in ms. */
  readonly retryAfter?: number | undefined
  readonly retryable: boolean
  readonly taken: 'no' | 'maybe'
}

/** The service answered with a status other than 2xx. Its subclasses name the common ones. */
export class ApiError extends RivuletError {
  override readonly name: string = 'ApiError'
  readonly status: number
  /** The service's reference for this problem, where its answer had one. */
  readonly ref_id: string | undefined
  readonly detail: Readonly<Record<string, unknown>> | null | undefined
  /** What was wrong with the request, in the service's words; empty where it did not say. */
  readonly issues: readonly ValidationIssue[]
  readonly retryable: boolean
  override readonly retryAfter: number | undefined
  override readonly taken: 'no' | 'maybe'

  constructor(request: RequestLine, refusal: Refusal) {
    const { status, problem, excerpt = '', issues = [] } = refusal
    const faults = issues.map((issue) => `${issue.loc.join('.')}: ${issue.msg}`).join('; ')
    const said = problem?.message ?? (faults === '' ? excerpt : faults)
    const reference = problem?.ref_id === undefined ? '' : ` (ref_id ${problem.ref_id})`
    super(`${status}${said === '' ? '' : ` ${said}`}${reference}`, request)
    this.status = status
    this.ref_id = problem?.ref_id
    this.detail = problem?.detail
    this.issues = issues
    this.retryable = refusal.retryable
    this.retryAfter = refusal.retryAfter
    this.taken = refusal.taken
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    return { ...super.toJSON(), status: this.status, ref_id: this.ref_id }
  }
}

/** 401: the key is missing or wrong (§5). */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError'
}

/** 402: not enough credit. Beyond the interface document. */
export class PaymentRequiredError extends ApiError {
  override readonly name = 'PaymentRequiredError'
}

/** 403: the account may not do this. Beyond the interface document. */
export class PermissionError extends ApiError {
  override readonly name = 'PermissionError'
}

/** 404: there is no such monitor, group or run (§7). */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError'
}

/** 409: the resource is in a state that does not allow this. Beyond the interface document. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
}

/** 422: the service found fault with the request (§7); see `issues`. */
export class ValidationError extends ApiError {
  override readonly name = 'ValidationError'
}

/** 429: too many requests; `retryAfter` tells when to come back, where the service said it. */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError'
}

/** 5xx: the service failed. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError'
}

/** How a connection failed. */
export type ConnectionFailure = 'refused' | 'connect-timeout' | 'headers-timeout' | 'silence' | 'broken'

/** The service could not be reached, or the connection broke. `failure` tells how, `cause` is the platform's error. */
export class ConnectionError extends RivuletError {
  override readonly name = 'ConnectionError'
  readonly failure: ConnectionFailure
  readonly retryable = true
  override readonly taken: 'no' | 'maybe'

  constructor(failure: ConnectionFailure, message: string, request: RequestLine, options?: ErrorOptions) {
    super(message, request, options)
    this.failure = failure
    this.taken = failure === 'refused' || failure === 'connect-timeout' ? 'no' : 'maybe'
  }
}

/** Options of a {@link ProtocolError}. */
export interface ProtocolErrorOptions extends ErrorOptions {
  /** Whether the same request may succeed later. Default true: a proxy's page or a truncated answer passes. */
  readonly retryable?: boolean
}

/**
 * The service answered with something that the interface does not allow: no JSON, another content type, a redirect, more
 * than the limits let in.
 */
export class ProtocolError extends RivuletError {
  override readonly name = 'ProtocolError'
  readonly retryable: boolean

  constructor(message: string, request: RequestLine, options: ProtocolErrorOptions = {}) {
    const { retryable = true, ...rest } = options
    super(message, request, rest)
    this.retryable = retryable
  }
}
