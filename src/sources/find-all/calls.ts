import type { FindAllEvent } from '../../protocol/event.ts'
import type {
  EntitySearchRequest,
  EntitySearchResponse,
  ExtendRequest,
  FindAllEnrichment,
  FindAllRequest,
  FindAllResult,
  FindAllRun,
  FindAllSchema,
  IngestRequest,
} from '../../protocol/find-all.ts'
import { checkOptions } from '../../protocol/check.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { entitySearchRequest, extendRequest } from '../../protocol/requests/find-all.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { findAllEvents } from './events.ts'
import type { FindAllEventsOptions } from './events.ts'
import { createFindAllRun } from './run.ts'
import {
  betas,
  callOf,
  cancelFindAll,
  createFindAll,
  enrichFindAll,
  findAllResult,
  getFindAll,
  ingest,
} from './requests.ts'

/** Options of `findAll.entitySearch`. */
export type EntitySearchOptions = Omit<EntitySearchRequest, 'objective'> & SourceOptions

/** The calls of `client.findAll`, which finds entities that match conditions. All of them are beyond the interface document. */
export interface FindAllCalls extends ReturnType<typeof findAllCalls> {}

/** Creates `client.findAll`. */
export function findAllCalls(context: Context) {
  return {
    run: createFindAllRun(context),
    /** Turns an objective into the target of a run: conditions and the kind of entity. Creates nothing at the service. */
    ingest(request: IngestRequest, options?: SourceOptions): AwaitableSource<FindAllSchema> {
      return ingest(context, request, options)
    },
    /**
     * Emits the people or companies that a search finds, best first: faster than a run, without conditions and evidence.
     *
     * ```ts
     * import { createClient } from 'rivulet'
     *
     * const { entities } = await createClient().findAll.entitySearch('makers of solid state batteries', {
     *   entity_type: 'companies',
     * })
     * ```
     */
    entitySearch(objective: string, options: EntitySearchOptions): AwaitableSource<EntitySearchResponse> {
      checkOptions('findAll.entitySearch', options, ['entity_type', 'match_limit', 'signal'])
      const { signal, ...own } = options
      const request = { ...own, objective }
      checkRequest(entitySearchRequest, request)
      const call: ApiRequest = {
        method: 'POST',
        path: '/v1beta/findall/entity-search',
        body: request,
        betas,
        quota: 'search',
        idempotent: true,
      }
      return awaitable(requestShape<EntitySearchResponse>(context, call, ['entities']), signal)
    },
    /**
     * Creates a run and emits it. Never creates two: a request that the service may have acted on is not sent again, and errors
     * with an `UncertainRequestError`.
     */
    create(request: FindAllRequest, options?: SourceOptions): AwaitableSource<FindAllRun> {
      return createFindAll(context, request, options)
    },
    /** Reads the state of a run. */
    get(findAllId: string, options?: SourceOptions): AwaitableSource<FindAllRun> {
      return getFindAll(context, findAllId, options)
    },
    /**
     * Cancels a run. Emits when the service has accepted it. Errors with a `ConflictError` if the run has ended, even if an attempt of this
     * call whose answer was lost has cancelled it.
     */
    cancel(findAllId: string, options?: SourceOptions): AwaitableSource<void> {
      return cancelFindAll(context, findAllId, options)
    },
    /**
     * Lets a run find more matches, and emits its new target. A run that has ended becomes active again. Not sent again,
     * as `create`.
     */
    extend(
      findAllId: string,
      request: ExtendRequest,
      options: SourceOptions = {},
    ): AwaitableSource<FindAllSchema> {
      checkRequest(extendRequest, request)
      const call = callOf(findAllId, options, { method: 'POST', body: request, idempotent: false }, '/extend')
      return awaitable(requestShape<FindAllSchema>(context, call).pipe(actedOnOnce()), options.signal)
    },
    /** Has each match enriched, and emits the new target of the run. Not sent again, as `create`. */
    enrich(
      findAllId: string,
      request: FindAllEnrichment,
      options?: SourceOptions,
    ): AwaitableSource<FindAllSchema> {
      return enrichFindAll(context, findAllId, request, options)
    },
    /** Reads the target of a run. */
    schema(findAllId: string, options: SourceOptions = {}): AwaitableSource<FindAllSchema> {
      const call = callOf(findAllId, options, { method: 'GET', idempotent: true }, '/schema')
      return awaitable(requestShape<FindAllSchema>(context, call, ['match_conditions']), options.signal)
    },
    /** Reads a run with its candidates so far. */
    result(findAllId: string, options?: SourceOptions): AwaitableSource<FindAllResult> {
      return findAllResult(context, findAllId, options)
    },
    /**
     * Emits the events of a run, each once: candidates, changes of its state, and changes of its target. Resumes after the last event
     * until the run has ended and every event was emitted.
     */
    events(findAllId: string, options?: FindAllEventsOptions): Source<FindAllEvent> {
      return findAllEvents(context, findAllId, options)
    },
  }
}
