import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  lastValueFrom,
  map,
  tap,
  throwError,
} from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkInteger, checkOneOf, checkOptions, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { FindAllEvent } from '../../protocol/event.ts'
import { findAllSource } from '../../protocol/find-all-event.ts'
import { FIND_ALL_GENERATORS } from '../../protocol/find-all.ts'
import type {
  FindAllEnrichment,
  FindAllGenerator,
  FindAllRequest,
  FindAllResult,
  FindAllRun,
} from '../../protocol/find-all.ts'
import { isId } from '../../protocol/id.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { ConflictError, ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { UncertainRequestError } from '../shapes/acted-on-once.ts'
import { outputSchema, validatorOf } from '../shapes/answer-schema.ts'
import { checkedInOrder } from '../shapes/checked-in-order.ts'
import { awaitableAs, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions, SourceStep } from '../shapes/source.ts'
import { withReconnect } from '../shapes/with-reconnect.ts'
import { checkedEvent, checkedFindAllResult } from './enrichment.ts'
import type { CheckedFindAllEvent, CheckedFindAllResult } from './enrichment.ts'
import { FindAllFailedError, FindAllInterruptedError } from './errors.ts'
import { findAllEvents } from './events.ts'
import { cancelFindAll, createFindAll, enrichFindAll, findAllResult, ingest } from './requests.ts'

/** Options of `findAll.run`. */
interface RunFindAllOptions extends SourceOptions {
  /** Only for an objective. Default: the service's proposal for it, else `base`. */
  readonly generator?: FindAllGenerator
  /** The maximum number of matches, 5 to 1,000. Only for an objective. Default: the service's proposal for it, else 10. */
  readonly match_limit?: number
  /** Whether to cancel the run at the service when it is unsubscribed from, or cannot be followed. Default false: it continues. */
  readonly cancelOnUnsubscribe?: boolean
}

/** Options of `findAll.run` with a schema for the enrichment of each match. */
interface EnrichedFindAllOptions<Content> extends RunFindAllOptions {
  /** The information to find about each match. It is sent as an enrichment, and outputs are checked against it. */
  readonly enrich: AnswerSchema<Content>
  /** The processor of the enrichment. Default: the service's, `core`. */
  readonly enrichProcessor?: string
}

type AnyOptions = RunFindAllOptions & Partial<EnrichedFindAllOptions<unknown>>

const OPTIONS = Object.keys({
  generator: true,
  match_limit: true,
  cancelOnUnsubscribe: true,
  enrich: true,
  enrichProcessor: true,
  signal: true,
} satisfies Record<keyof AnyOptions, true>)

/** The number of matches for an objective without one. */
const MATCH_LIMIT = 10

/** `findAll.run`. Its overloads are declared here since an inferred type has no comments for them. */
export interface RunFindAll {
  /**
   * Finds the entities that meet an objective: creates a run and emits its events; an `await` returns its result with all
   * candidates. Unsubscribing does not cancel the run, unless `cancelOnUnsubscribe` is true.
   *
   * ```ts
   * import { createClient } from 'rivulet'
   *
   * const { candidates } = await createClient().findAll.run('Companies that make solid state batteries')
   * ```
   */
  (
    objective: string | FindAllRequest,
    options?: RunFindAllOptions,
  ): AwaitableSource<FindAllEvent, FindAllResult>
  /** The same with a schema for what to find out about each match: it is sent, and each `enrichment` has its type. */
  <Content>(
    objective: string | FindAllRequest,
    options: EnrichedFindAllOptions<Content>,
  ): AwaitableSource<CheckedFindAllEvent<Content>, CheckedFindAllResult<Content>>
}

/**
 * Creates `findAll.run`, which creates a run, emits its events and completes when it has completed; an `await` returns its
 * result. An objective is ingested first; the enrichments that the service proposes for it are not requested. Beyond the
 * interface document.
 *
 * Each subscription and each `await` creates one run. After the creation it only reads: a retry never creates another run. Unsubscribing
 * does not cancel the run, unless `cancelOnUnsubscribe` is true.
 *
 * Errors with a {@link FindAllFailedError} for a run that failed or was cancelled, and with a {@link FindAllInterruptedError}
 * if the run was or may have been created and cannot be followed. With `enrich`, an enrichment that does not match the schema
 * is null with its `misfit`.
 */
export function createFindAllRun(context: Context): RunFindAll {
  function run<Content>(
    objective: string | FindAllRequest,
    options: EnrichedFindAllOptions<Content>,
  ): AwaitableSource<CheckedFindAllEvent<Content>, CheckedFindAllResult<Content>>
  function run(
    objective: string | FindAllRequest,
    options?: RunFindAllOptions,
  ): AwaitableSource<FindAllEvent, FindAllResult>
  function run(
    objective: string | FindAllRequest,
    options: AnyOptions = {},
  ): AwaitableSource<
    FindAllEvent | CheckedFindAllEvent<unknown>,
    FindAllResult | CheckedFindAllResult<unknown>
  > {
    checkOptions('findAll.run', options, OPTIONS)
    const { enrich, cancelOnUnsubscribe = false, signal } = options
    checkBoolean('cancelOnUnsubscribe', cancelOnUnsubscribe)
    const enrichment = enrichmentOf(options)
    const creating = creation(context, objective, options)
    const steps = creating.pipe(
      catchError((error: unknown) => throwError(() => uncertain(error))),
      concatMap((createdRun) => followed(context, idOf(createdRun), enrichment, cancelOnUnsubscribe)),
    )
    const events = steps.pipe(concatMap((step) => ('event' in step ? [step.event] : [])))
    const results = steps.pipe(concatMap((step) => ('result' in step ? [step.result] : [])))
    if (enrich === undefined)
      return awaitableAs(events, signal, () => lastValueFrom(sourceOf(results, signal)))
    const checked = checkedInOrder(events, (event) => checkedEvent(enrich, event))
    return awaitableAs(checked, signal, async () =>
      checkedFindAllResult(enrich, await lastValueFrom(sourceOf(results, signal))),
    )
  }
  return run
}

function enrichmentOf({ enrich, enrichProcessor }: AnyOptions): FindAllEnrichment | undefined {
  if (enrich === undefined) {
    if (enrichProcessor === undefined) return undefined
    throw new ArgumentError('enrichProcessor', 'left out without enrich', enrichProcessor)
  }
  validatorOf(enrich)
  if (enrichProcessor !== undefined) checkText('enrichProcessor', enrichProcessor)
  return {
    output_schema: outputSchema(enrich),
    ...(enrichProcessor !== undefined && { processor: enrichProcessor }),
  }
}

/** Creates the run of a request, or of an objective. Checks them at the call. */
function creation(
  context: Context,
  objective: string | FindAllRequest,
  { generator, match_limit }: AnyOptions,
): Observable<FindAllRun> {
  if (typeof objective !== 'string') {
    const given = generator ?? match_limit
    if (given !== undefined)
      throw new ArgumentError(
        'options',
        { message: 'the request has its own generator and match_limit' },
        given,
      )
    return createFindAll(context, objective)
  }
  if (generator !== undefined) checkOneOf('generator', generator, FIND_ALL_GENERATORS)
  if (match_limit !== undefined) checkInteger('match_limit', match_limit, 5, 1_000)
  return ingest(context, { objective }).pipe(
    map((schema): FindAllRequest => ({
      objective: schema.objective ?? objective,
      entity_type: schema.entity_type,
      match_conditions: schema.match_conditions,
      generator: generator ?? schema.generator ?? 'base',
      match_limit: match_limit ?? schema.match_limit ?? MATCH_LIMIT,
    })),
    concatMap((request) => createIngested(context, request)),
  )
}

/** The service has made the request, so that any part of it can be wrong. */
function createIngested(context: Context, request: FindAllRequest): Observable<FindAllRun> {
  try {
    return createFindAll(context, request)
  } catch (cause) {
    if (!(cause instanceof ArgumentError)) throw cause
    const line = { method: 'POST', path: '/v1beta/findall/ingest' }
    const message = `the answer cannot be used to create a run: ${cause.message}`
    throw new ProtocolError(message, line, { cause, retryable: false })
  }
}

function uncertain(error: unknown): unknown {
  return error instanceof UncertainRequestError ? new FindAllInterruptedError(undefined, error.cause) : error
}

function idOf({ findall_id }: FindAllRun): string {
  if (isId(findall_id)) return findall_id
  const line = { method: 'POST', path: '/v1beta/findall/runs' }
  throw new FindAllInterruptedError(undefined, new ProtocolError('the answer has no findall_id', line))
}

/** Enriches a created run, follows it to its end, and reads its result. */
function followed(
  context: Context,
  findAllId: string,
  enrichment: FindAllEnrichment | undefined,
  cancelOnUnsubscribe: boolean,
): Observable<SourceStep<FindAllEvent, FindAllResult>> {
  return defer(() => {
    let isOver = false
    const events = findAllEvents(context, findAllId).pipe(
      tap({ complete: () => (isOver = true) }),
      map((event) => ({ event })),
    )
    const steps = concat(
      enrichment === undefined ? EMPTY : enrichFindAll(context, findAllId, enrichment).pipe(ignoreElements()),
      events,
      endedResult(context, findAllId).pipe(map((result) => ({ result }))),
    ).pipe(
      catchError((error: unknown) =>
        throwError(() =>
          error instanceof FindAllFailedError ? error : new FindAllInterruptedError(findAllId, error),
        ),
      ),
    )
    if (!cancelOnUnsubscribe) return steps
    return steps.pipe(finalize(() => isOver || cancel(context, findAllId)))
  })
}

/** The result of a run that has ended, with as many matches as the run counts. */
function endedResult(context: Context, findAllId: string): Observable<FindAllResult> {
  const line = { method: 'GET', path: `${findAllSource(findAllId)}/result` }
  return findAllResult(context, findAllId).pipe(
    map((result) => {
      if (!isObject(result.run) || !isObject(result.run.status))
        throw new ProtocolError('the result has no run with a status', line)
      if (!result.candidates.every(isObject)) throw new ProtocolError('a candidate is not an object', line)
      const { status, metrics } = result.run.status
      if (status === 'failed' || status === 'cancelled') throw new FindAllFailedError(findAllId, result)
      const matched = result.candidates.filter(({ match_status }) => match_status === 'matched').length
      // The result may be behind the stream.
      if (isObject(metrics) && matched < metrics.matched_candidates_count)
        throw new ProtocolError(
          `the result has ${matched} of ${metrics.matched_candidates_count} matches`,
          line,
        )
      return result
    }),
    withReconnect(context, findAllSource(findAllId)),
  )
}

/** Cancels a run that is no longer needed. */
function cancel(context: Context, findAllId: string): void {
  cancelFindAll(context, findAllId).subscribe({
    error(error: unknown) {
      // The run has ended.
      if (error instanceof ConflictError) return
      context.report({ kind: 'cancellation', source: findAllSource(findAllId), error })
    },
  })
}
