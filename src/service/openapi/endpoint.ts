import type { Quota } from '../../protocol/quotas.ts'
import type { ObjectShape, Shape } from '../../protocol/requests/schema.ts'
import type { AnyAnswer } from './answers/kinds.ts'

/** The body of a request. */
interface EndpointBody {
  /** The name of the schema in the document. */
  readonly name: string
  readonly schema: Shape
  /** Whether a request without a body is accepted. Default false. */
  readonly isOptional?: boolean
  /** Other fields that are accepted and ignored. Default: none. */
  readonly ignored?: readonly string[]
}

/** An endpoint of the service, as the document describes it. */
export interface Endpoint {
  readonly method: 'GET' | 'POST'
  /** The path in the form of the route: `/v1/monitors/:monitor_id`. */
  readonly path: string
  /** Unique in the document. Generated clients name the call by it. */
  readonly operationId: string
  readonly summary: string
  readonly area: string
  readonly body?: EndpointBody
  readonly query?: ObjectShape
  /** The status of a successful response. Default 200. */
  readonly status?: number
  /** The body of a successful response. Absent: it has none, or is a stream alone. */
  readonly answer?: AnyAnswer
  /** The `data` of each message of a successful response that is a stream. */
  readonly events?: AnyAnswer
  /** More statuses of errors, with an ErrorResponse, by their description. */
  readonly errors?: Readonly<Record<number, string>>
  /** The quota that counts its requests. */
  readonly quota?: Quota
  /** Whether its 422 has the form of task groups (§7). */
  readonly hasIssues?: boolean
  /** Values of the beta header that it knows. */
  readonly betas?: readonly string[]
}
