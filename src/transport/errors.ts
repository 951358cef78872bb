import type { ServiceProblem, ValidationIssue } from '../protocol/problem.ts'
import { RivuletError } from '../protocol/rivulet-error.ts'

/** The request that an error is about. A path never contains a secret: keys are sent in headers. */
export interface RequestLine {
  readonly method: string
  /** Path and query. */
  readonly path: string
}

/** Base class of the errors of requests to the service. */
export abstract class RequestError extends RivuletError {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** How long to wait before a retry, in ms, if the service gave it. */
  readonly retryAfter: number | undefined = undefined
  /** Whether the service may have acted on the request. */
  readonly taken: 'no' | 'maybe' = 'maybe'

  constructor(message: string, request: RequestLine, options?: ErrorOptions) {
    super(`${request.method} ${request.path}: ${message}`, options)
    this.method = request.method
    this.path = request.path
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    const { method, path } = this
    return { ...super.toJSON(), method, path }
  }
}

/** The service's response other than 2xx (§2.5, §7). */
export interface Refusal {
  readonly status: number
  readonly problem?: (Omit<ServiceProblem, 'ref_id'> & Partial<ServiceProblem>) | undefined
  /** The beginning of a body that the interface does not define, such as a proxy's page. */
  readonly excerpt?: string | undefined
  readonly issues?: readonly ValidationIssue[] | undefined
  /** The `Retry-After` header, in ms. */
  readonly retryAfter?: number | undefined
  readonly retryable: boolean
  readonly taken: 'no' | 'maybe'
}

/** The service answered with a status other than 2xx. Common ones have a subclass. */
export class ApiError extends RequestError {
  override readonly name: string = 'ApiError'
  override readonly code: string = 'api'
  readonly status: number
  /** The service's reference for this problem, if its response has one. */
  readonly ref_id: string | undefined
  readonly detail: Readonly<Record<string, unknown>> | null | undefined
  /** The problems of the request, in the service's words; empty if it gave no details. */
  readonly issues: readonly ValidationIssue[]
  override readonly retryable: boolean
  override readonly retryAfter: number | undefined
  override readonly taken: 'no' | 'maybe'

  constructor(request: RequestLine, refusal: Refusal) {
    const { status, problem, excerpt = '', issues = [] } = refusal
    const faults = issues.map((issue) => `${issue.loc.join('.')}: ${issue.msg}`).join('; ')
    const text = problem?.message ?? (faults === '' ? excerpt : faults)
    const reference = problem?.ref_id === undefined ? '' : ` (ref_id ${problem.ref_id})`
    super(`${status}${text === '' ? '' : ` ${text}`}${reference}`, request)
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
  override readonly code = 'authentication'
}

/** 402: not enough credit. Beyond the interface document. */
export class PaymentRequiredError extends ApiError {
  override readonly name = 'PaymentRequiredError'
  override readonly code = 'payment_required'
}

/** 403: the account may not do this. Beyond the interface document. */
export class PermissionError extends ApiError {
  override readonly name = 'PermissionError'
  override readonly code = 'permission'
}

/** 404: there is no such monitor, group or run (§7). */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError'
  override readonly code = 'not_found'
}

/** 409: the resource is in a state that does not allow this. Beyond the interface document. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError'
  override readonly code = 'conflict'
}

/** 422: the request is not valid (§7); see `issues`. */
export class ValidationError extends ApiError {
  override readonly name = 'ValidationError'
  override readonly code = 'validation'
}

/** 429: too many requests. `retryAfter` is how long to wait, in ms, if the service gave it. */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError'
  override readonly code = 'rate_limit'
}

/** 5xx: the service failed. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError'
  override readonly code = 'server'
}

/** How a connection failed. */
export type ConnectionFailure = 'refused' | 'connect_timeout' | 'headers_timeout' | 'silence' | 'broken'

/** The service could not be reached, or the connection broke. `reason` is how, `cause` the platform's error. */
export class ConnectionError extends RequestError {
  override readonly name = 'ConnectionError'
  override readonly code = 'connection'
  readonly reason: ConnectionFailure
  override readonly retryable = true
  override readonly taken: 'no' | 'maybe'

  constructor(reason: ConnectionFailure, message: string, request: RequestLine, options?: ErrorOptions) {
    super(message, request, options)
    this.reason = reason
    this.taken = reason === 'refused' || reason === 'connect_timeout' ? 'no' : 'maybe'
  }
}

/** Options of a {@link ProtocolError}. */
export interface ProtocolErrorOptions extends ErrorOptions {
  /** Whether the same request may succeed later. Default true: a proxy's page or a truncated response is transient. */
  readonly retryable?: boolean
}

/**
 * The service answered with something that the interface does not allow: malformed JSON, another content type, a redirect,
 * or more than the limits allow.
 */
export class ProtocolError extends RequestError {
  override readonly name = 'ProtocolError'
  override readonly code = 'protocol'
  override readonly retryable: boolean

  constructor(message: string, request: RequestLine, options: ProtocolErrorOptions = {}) {
    const { retryable = true, ...rest } = options
    super(message, request, rest)
    this.retryable = retryable
  }
}
