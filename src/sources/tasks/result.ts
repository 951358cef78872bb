import { catchError, concatMap, defer, firstValueFrom, map, takeUntil, throwError, timer } from 'rxjs'
import type { MonoTypeOperatorFunction, Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { backoffDelay, isRetryable } from '../../protocol/backoff.ts'
import { checkId, checkOptions, checkWait } from '../../protocol/check.ts'
import { isRun, runSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import type { TaskRun, TaskRunResult } from '../../protocol/task.ts'
import { ApiError, NotFoundError, ProtocolError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { checkOutput, OutputSchemaError, validatorOf } from '../shapes/answer-schema.ts'
import type { CheckedOutput } from '../shapes/answer-schema.ts'
import { fromAsync } from '../shapes/from-async.ts'
import { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'
import { awaitable, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'
import { withReconnect } from '../shapes/with-reconnect.ts'
import { hasEnded } from './ended.ts'
import { RunFailedError, RunTimeoutError } from './errors.ts'
import { runAt } from './read.ts'

/** Options of `tasks.result`. */
interface RunResultOptions extends SourceOptions {
  /** How long to wait for the end of the run, in ms; then a {@link RunTimeoutError}. `Infinity` for no limit. Default Infinity. */
  readonly timeout?: number
}

/** Options of `tasks.result` with a schema for the output. */
interface TypedRunResultOptions<Content> extends RunResultOptions {
  /** Validates the output: the schema that was sent with the run. It is not sent here. */
  readonly schema: AnswerSchema<Content>
}

/** A completed run with its output, as the schema returned it. */
export interface CheckedRunResult<Content> {
  readonly run: TaskRun
  readonly output: CheckedOutput<Content>
}

/**
 * How long one request waits for the end of a run, in s. Many proxies close a connection without a byte after 60 s, so the
 * wait is shorter than that and than the service's own default of 600 s.
 */
const RESULT_WAIT = 50

/** How much later than the wait the response may come, in ms. */
const RESPONSE_TIME = 10_000

/** The least number of results of an active run in a row before an error. */
const MIN_EARLY = 3

/** `tasks.result`. Its overloads are declared here since an inferred type has no comments for them. */
export interface GetRunResult {
  /** Emits the result of a run when it has completed. The schema validates and types the output. */
  <Content>(
    runId: string,
    options: TypedRunResultOptions<Content>,
  ): AwaitableSource<CheckedRunResult<Content>>
  /** Emits the result of a run when it has completed. */
  (runId: string, options?: RunResultOptions): AwaitableSource<TaskRunResult>
}

/**
 * Creates `tasks.result`, which emits the result of a run when it has completed; beyond the interface document. It asks again
 * while the run is active, and after failures, with backoff.
 *
 * Errors with a {@link RunFailedError} for a run that failed or was cancelled, with a {@link RunTimeoutError} after the
 * `timeout`, and with an `OutputSchemaError` for an output that does not match the `schema`. If the service sends results of a run that has
 * not ended instead of a 408, for longer than the client's option `patience` allows, errors with a `ProtocolError`.
 */
export function createResult(context: Context): GetRunResult {
  function result<Content>(
    runId: string,
    options: TypedRunResultOptions<Content>,
  ): AwaitableSource<CheckedRunResult<Content>>
  function result(runId: string, options?: RunResultOptions): AwaitableSource<TaskRunResult>
  function result(
    runId: string,
    options: RunResultOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): AwaitableSource<TaskRunResult | CheckedRunResult<unknown>> {
    checkId('runId', runId)
    checkOptions('tasks.result', options, ['timeout', 'schema', 'signal'])
    const { timeout = Infinity, schema, signal } = options
    checkTimeout(timeout)
    const answered = resultOf(context, runId, timeout)
    if (schema === undefined) return awaitable<TaskRunResult | CheckedRunResult<unknown>>(answered, signal)
    validatorOf(schema)
    return awaitable(answered.pipe(concatMap((ended) => checkedResult(schema, ended))), signal)
  }
  return result
}

/** A time in ms, more than 0, or `Infinity`. */
export function checkTimeout(timeout: unknown): void {
  checkWait('timeout', timeout, true)
  if (timeout === 0) throw new ArgumentError('timeout', 'more than 0 ms; Infinity for no limit', 0)
}

/** Validates the output of a run. Rejects with an `OutputSchemaError` that has the run's id. */
export async function checkedResult<Content>(
  schema: AnswerSchema<Content>,
  { run, output }: TaskRunResult,
): Promise<CheckedRunResult<Content>> {
  try {
    return { run, output: await checkOutput(schema, output) }
  } catch (error) {
    if (!(error instanceof OutputSchemaError)) throw error
    const { issues, cause } = error
    throw new OutputSchemaError(issues, output, { cause, run_id: run.run_id })
  }
}

/** Emits the result of a run once it has ended. `timeout` is in ms. */
export function resultOf(context: Context, runId: string, timeout: number): Observable<TaskRunResult> {
  return defer(() => {
    const wait = new ResultWait(context, runId, timeout)
    return fromAsync<TaskRunResult>(async (subscriber, signal) => {
      subscriber.next(await wait.ask(signal))
    }).pipe(
      withReconnect(context, runSource(runId), {
        retryable: (error) => wait.errors.permitsRetry(error) && isRetryable(error),
      }),
      endingAfter(context, runId, timeout),
    )
  })
}

/** Errors with a {@link RunTimeoutError} if the source has not completed after this time, in ms. */
export function endingAfter<T>(
  { scheduler }: Context,
  runId: string,
  timeout: number,
): MonoTypeOperatorFunction<T> {
  if (timeout === Infinity) return (source) => source
  const request = { method: 'GET', path: `${runSource(runId)}/result` }
  const over = timer(timeout, scheduler).pipe(
    map(() => {
      throw new RunTimeoutError(request, runId, timeout)
    }),
  )
  return takeUntil(over)
}

/** The wait for the end of one run, over all attempts. */
class ResultWait {
  readonly errors = new ProtocolErrorLimit()
  readonly #context: Context
  readonly #runId: string
  readonly #deadline: number
  /** Number of answers that the run is active. */
  #answers = 0
  /** The results of an active run, since the last 408: when the first one came, and how many. */
  #early: { readonly since: number; results: number } | undefined

  /** @param timeout In ms. */
  constructor(context: Context, runId: string, timeout: number) {
    this.#context = context
    this.#runId = runId
    this.#deadline = context.scheduler.now() + timeout
  }

  /** Requests the result until the run has ended. A 408 is the service's answer for an active run, and no failure. */
  async ask(signal: AbortSignal): Promise<TaskRunResult> {
    const { transport, scheduler, backoff, random } = this.#context
    for (;;) {
      const askedAt = scheduler.now()
      const wait = Math.min(RESULT_WAIT, Math.max(1, Math.ceil((this.#deadline - askedAt) / 1_000)))
      const request = {
        method: 'GET',
        path: `${runSource(this.#runId)}/result`,
        query: { timeout: wait },
        minHeaders: wait * 1_000 + RESPONSE_TIME,
        // The transport would count a 408 as a failure.
        retries: 0,
        idempotent: true,
      } as const
      let retryAfter = 0
      try {
        const { body } = await transport.request(request, signal)
        const result = resultIn(request, this.#runId, body)
        if (result !== undefined) return result
        this.#countEarly(request, askedAt)
      } catch (error) {
        if (error instanceof NotFoundError) throw await reasonFor(this.#context, this.#runId, error, signal)
        if (!(error instanceof ApiError) || error.status !== 408) throw error
        this.#early = undefined
        retryAfter = error.retryAfter ?? 0
      }
      this.errors.reset()
      // A service that does not wait is asked less and less often.
      const waited = Math.max(0, scheduler.now() - askedAt)
      const pause = Math.max(retryAfter, backoffDelay(this.#answers++, backoff, random) - waited)
      if (pause > 0) await firstValueFrom(sourceOf(timer(pause, scheduler), signal))
    }
  }

  /** Counts the result of a run that is active, sent instead of a 408. Throws once that has lasted longer than the option `patience` allows. */
  #countEarly(request: RequestLine, now: number): void {
    const { patience } = this.#context
    this.#early ??= { since: now, results: 0 }
    this.#early.results += 1
    // A suspended process may find its time over at the second one.
    if (this.#early.results < MIN_EARLY || now - this.#early.since < patience) return
    const message = `the service sent results of a run that had not ended for ${patience} ms; wait again with tasks.result`
    throw new ProtocolError(message, request, { retryable: false })
  }
}

/** Reads a response; undefined if the run is still active. */
function resultIn(request: RequestLine, runId: string, body: unknown): TaskRunResult | undefined {
  if (!isObject(body) || !isRun(body['run'])) throw new ProtocolError('the result has no run', request)
  const { run, output } = body
  if (run.run_id !== runId)
    throw new ProtocolError('the result is of another run', request, { retryable: false })
  if (!hasEnded(run)) return undefined
  if (run.status !== 'completed') throw new RunFailedError(request, run)
  if (!isOutput(output)) throw new ProtocolError('the result has no output', request)
  return { ...body, run, output }
}

/** Whether the value can be an output: an object with a type. */
export function isOutput(value: unknown): value is TaskOutput {
  return isObject(value) && typeof value['type'] === 'string'
}

/** The service answers with 404 for a run without a result too: then the run has the reason. */
function reasonFor(
  context: Context,
  runId: string,
  notFound: NotFoundError,
  signal: AbortSignal,
): Promise<unknown> {
  const { method, path } = notFound
  const reason = runAt(context, runSource(runId), runId).pipe(
    map((run) =>
      hasEnded(run) && run.status !== 'completed' ? new RunFailedError({ method, path }, run) : notFound,
    ),
    catchError((error: unknown) => (error instanceof NotFoundError ? [notFound] : throwError(() => error))),
  )
  return firstValueFrom(sourceOf(reason, signal))
}
