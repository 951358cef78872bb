import { catchError, map, throwError } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { FIELD_BASIS_BETA, WEBHOOK_BETA } from '../../protocol/betas.ts'
import { checkBoolean } from '../../protocol/check.ts'
import { isRun } from '../../protocol/event.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { createRunRequest } from '../../protocol/requests/tasks.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import type { CreateRunRequest, TaskRun } from '../../protocol/task.ts'
import { ProtocolError, RequestError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { outputSchema } from '../shapes/answer-schema.ts'
import { requestShape } from '../shapes/request.ts'
import type { SourceOptions } from '../shapes/source.ts'
import { UncertainRunError } from './errors.ts'

/** Options of `tasks.create`. */
export interface CreateRunOptions extends SourceOptions {
  /**
   * The schema of the output, sent as `task_spec.output_schema`. `tasks.result` takes the same schema to check the output. Default: none.
   */
  readonly schema?: AnswerSchema<unknown>
  /** Whether the basis has an entry for each element of a list too (§2.3). Default false. */
  readonly basisPerElement?: boolean
}

/** Checks the arguments of a creation and returns its request. */
export function prepareRun(
  { transport }: Context,
  request: CreateRunRequest,
  { schema, basisPerElement = false }: Omit<CreateRunOptions, 'signal'>,
): ApiRequest {
  checkRequest(createRunRequest, request)
  checkBoolean('basisPerElement', basisPerElement)
  const { webhook, task_spec } = request
  let body = request
  if (schema !== undefined) {
    const given = task_spec?.output_schema
    if (given !== undefined)
      throw new ArgumentError('task_spec.output_schema', 'left out, as schema sets it', given)
    body = { ...request, task_spec: { ...task_spec, output_schema: outputSchema(schema) } }
  }
  const betas = [
    ...(webhook === undefined ? [] : [WEBHOOK_BETA]),
    ...(basisPerElement ? [FIELD_BASIS_BETA] : []),
  ]
  const call = {
    method: 'POST',
    path: '/v1/tasks/runs',
    body,
    betas,
    quota: 'runs',
    idempotent: false,
  } as const
  transport.check(call)
  return call
}

/**
 * Sends the request of a creation, and emits the run. Never creates two: a request that the service may have acted on is not sent
 * again, and errors with an {@link UncertainRunError}.
 */
export function sendRun(context: Context, request: ApiRequest): Observable<TaskRun> {
  return requestShape<TaskRun>(context, request).pipe(
    map((run) => {
      if (!isRun(run)) throw new ProtocolError('the response is not a run', request)
      return run
    }),
    catchError((error: unknown) => {
      const isUncertain = error instanceof RequestError && error.taken === 'maybe'
      return throwError(() => (isUncertain ? new UncertainRunError(error) : error))
    }),
  )
}
