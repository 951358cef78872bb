import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  lastValueFrom,
  map,
  of,
  tap,
  throwError,
} from 'rxjs'
import type { Observable } from 'rxjs'
import { checkOptions } from '../../protocol/check.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { runEvent, runSource } from '../../protocol/event.ts'
import type { EventOf, RunEvent } from '../../protocol/event.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import type { CreateRunRequest, TaskRun, TaskRunResult } from '../../protocol/task.ts'
import { AuthenticationError, RequestError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { validatorOf } from '../shapes/answer-schema.ts'
import { awaitableAs, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions, SourceStep } from '../shapes/source.ts'
import { prepareRun, sendRun } from './create.ts'
import { hasEnded } from './ended.ts'
import { RunFailedError, RunInterruptedError } from './errors.ts'
import { checkedResult, checkTimeout, endingAfter, isOutput, resultOf } from './result.ts'
import type { CheckedRunResult } from './result.ts'
import { eventsOf } from '../shapes/stream-item.ts'
import { runItems } from './stream.ts'

/** Options of `tasks.run`. */
interface RunTaskOptions extends SourceOptions {
  /** The processor for an input without a request. Default `base`. */
  readonly processor?: string
  /** Whether the basis has an entry for each element of a list too (§2.3). Default false. */
  readonly basisPerElement?: boolean
  /** How long to wait for the end of the created run, in ms. `Infinity` for no limit. Default Infinity. */
  readonly timeout?: number
}

/** Options of `tasks.run` with a schema for the output. */
interface TypedRunTaskOptions<Content> extends RunTaskOptions {
  /** The schema of the output. It is sent as `task_spec.output_schema`, and validates the output. */
  readonly schema: AnswerSchema<Content>
}

/** `tasks.run`. Its overloads are declared here since an inferred type has no comments for them. */
export interface RunTask {
  /** Creates a run, emits its events and completes with it; an `await` returns its result. The schema types the output. */
  <Content>(
    input: string | CreateRunRequest,
    options: TypedRunTaskOptions<Content>,
  ): AwaitableSource<RunEvent, CheckedRunResult<Content>>
  /** Creates a run, emits its events and completes with it; an `await` returns its result. */
  (input: string | CreateRunRequest, options?: RunTaskOptions): AwaitableSource<RunEvent, TaskRunResult>
}

/**
 * Creates `tasks.run`, which creates a run, emits its events and completes when it has completed; an `await` returns its
 * result. Beyond the interface document. The first event is the state in which the run was created.
 *
 * Each subscription and each `await` creates one run. After the creation it only reads: a retry never creates another run. If the service
 * refuses the stream of events, the result is read without it.
 *
 * Errors with a {@link RunFailedError} for a run that failed or was cancelled; with an `OutputSchemaError` for an output that
 * does not match the `schema`; with an `UncertainRunError` if the service may have created the run; and with a
 * {@link RunInterruptedError} if a created run cannot be followed to its end. The last three are not retryable.
 */
export function createRunTask(context: Context): RunTask {
  function run<Content>(
    input: string | CreateRunRequest,
    options: TypedRunTaskOptions<Content>,
  ): AwaitableSource<RunEvent, CheckedRunResult<Content>>
  function run(
    input: string | CreateRunRequest,
    options?: RunTaskOptions,
  ): AwaitableSource<RunEvent, TaskRunResult>
  function run(
    input: string | CreateRunRequest,
    options: RunTaskOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): AwaitableSource<RunEvent, TaskRunResult | CheckedRunResult<unknown>> {
    checkOptions('tasks.run', options, ['processor', 'schema', 'basisPerElement', 'timeout', 'signal'])
    const { processor, schema, timeout = Infinity, signal, ...own } = options
    checkTimeout(timeout)
    if (schema !== undefined) validatorOf(schema)
    const request = prepareRun(context, requestOf(input, processor), {
      ...own,
      ...(schema !== undefined && { schema }),
    })
    const check = (ended: TaskRunResult) =>
      schema === undefined ? of(ended) : from(checkedResult(schema, ended))
    const steps = runSteps<TaskRunResult | CheckedRunResult<unknown>>(context, request, timeout, check)
    const events = steps.pipe(concatMap((step) => ('event' in step ? [step.event] : [])))
    const results = steps.pipe(concatMap((step) => ('result' in step ? [step.result] : [])))
    return awaitableAs(events, signal, () => lastValueFrom(sourceOf(results, signal)))
  }
  return run
}

function requestOf(input: string | CreateRunRequest, processor: string | undefined): CreateRunRequest {
  if (typeof input === 'string') return { input, processor: processor ?? 'base', enable_events: true }
  if (processor !== undefined)
    throw new ArgumentError('processor', 'left out, as the request has its own', processor)
  return { enable_events: true, ...input }
}

function runSteps<Result>(
  context: Context,
  request: ApiRequest,
  timeout: number,
  check: (result: TaskRunResult) => Observable<Result>,
): Observable<SourceStep<RunEvent, Result>> {
  return sendRun(context, request).pipe(
    concatMap((created) => {
      const event = runEvent({ run: created }, 'poll', undefined, context.scheduler.now())
      const rest = follow(context, created, event.id).pipe(
        endingAfter(context, created.run_id, timeout),
        concatMap((step): Observable<SourceStep<RunEvent, Result>> =>
          'result' in step ? check(step.result).pipe(map((result) => ({ result }))) : of(step),
        ),
        catchError((error: unknown) => throwError(() => afterCreation(created, error))),
      )
      return hasEnded(created) ? rest : concat(of({ event }), rest)
    }),
  )
}

/** Follows a run to its end by its stream, else by its result. */
function follow(
  context: Context,
  { run_id }: TaskRun,
  seen: string,
): Observable<SourceStep<RunEvent, TaskRunResult>> {
  return defer(() => {
    let last: EventOf<'task_run.state'> | undefined
    const events = eventsOf(runItems(context, run_id, { seen })).pipe(
      tap((event) => {
        if (event.type === 'task_run.state' && hasEnded(event.data.run)) last = event
      }),
      map((event) => ({ event })),
      catchError((error: unknown) => (isRefusal(error) ? EMPTY : throwError(() => error))),
    )
    return concat(
      events,
      defer(() => resultAfter(context, run_id, last)),
    )
  })
}

/** Whether the run can be read without its stream. A rejected key affects every request. */
function isRefusal(error: unknown): boolean {
  return error instanceof RequestError && !(error instanceof AuthenticationError)
}

/** Emits the result, after the last state if the stream did not have it. */
function resultAfter(
  context: Context,
  runId: string,
  last: EventOf<'task_run.state'> | undefined,
): Observable<SourceStep<RunEvent, TaskRunResult>> {
  const request = { method: 'GET', path: `${runSource(runId)}/events` }
  if (last !== undefined) {
    const { run, output } = last.data
    if (run.status !== 'completed') return throwError(() => new RunFailedError(request, run))
    if (isOutput(output)) return of({ result: { run, output } })
  }
  const stateOf = (data: { readonly run: TaskRun }): SourceStep<RunEvent, TaskRunResult> => ({
    event: runEvent(data, 'poll', undefined, context.scheduler.now()),
  })
  const isNew = last === undefined
  return resultOf(context, runId, Infinity).pipe(
    concatMap((result): SourceStep<RunEvent, TaskRunResult>[] =>
      isNew ? [stateOf(result), { result }] : [{ result }],
    ),
    catchError((error: unknown) => {
      const failed = throwError(() => error)
      return isNew && error instanceof RunFailedError
        ? concat(of(stateOf({ run: error.run })), failed)
        : failed
    }),
  )
}

/** Names the run in an error that would lose it. */
function afterCreation({ run_id }: TaskRun, error: unknown): unknown {
  const isNamed = error instanceof RunFailedError || !(error instanceof RequestError)
  return isNamed ? error : new RunInterruptedError(run_id, error)
}
