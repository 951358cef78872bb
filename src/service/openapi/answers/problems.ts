import type {
  ErrorResponse,
  ServiceProblem,
  ValidationErrorResponse,
  ValidationIssue,
  Warning,
} from '../../../protocol/problem.ts'
import * as s from './kinds.ts'

/** A warning (§2.4). */
export const warning = s.component(
  'Warning',
  s.object<Warning>(
    {
      type: s.openOneOf<Warning['type']>(['spec_validation_warning', 'input_validation_warning', 'warning']),
      message: s.text,
    },
    { detail: s.orNull(s.json) },
  ),
)

/** The description of an error (§2.5). */
export const serviceProblem = s.component(
  'ServiceProblem',
  s.object<ServiceProblem>({ ref_id: s.id, message: s.text }, { detail: s.orNull(s.json) }),
)

/** The body of an error (§2.5, §7). */
export const errorResponse = s.component(
  'ErrorResponse',
  s.object<ErrorResponse>({ type: s.oneOf(['error']), error: serviceProblem }, {}),
)

/** The 422 of task groups (§4.3). The service sends strings in `loc`. */
export const validationErrorResponse = s.component(
  'ValidationErrorResponse',
  s.object<ValidationErrorResponse>(
    {
      detail: s.list(
        s.object<ValidationIssue>({ loc: s.list(s.textOrNumber), msg: s.text, type: s.text }, {}),
      ),
    },
    {},
  ),
)
