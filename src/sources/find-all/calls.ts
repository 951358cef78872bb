import type { FindAllEvent } from '../../protocol/event.ts'
import { findAllSource } from '../../protocol/find-all-event.ts'
import type {
  EntitySearchResponse,
  ExtendRequest,
  FindAllEnrichment,
  FindAllRequest,
  FindAllResult,
  FindAllRun,
  FindAllSchema,
  IngestRequest,
} from '../../protocol/find-all.ts'
import type { Context } from '../context.ts'
import { reportRunAhead } from '../shapes/run-ahead.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { findAllEvents } from './events.ts'
import type { FindAllEventsOptions } from './events.ts'
import { createFindAllRun } from './run.ts'
import type { EntitySearchOptions } from './requests.ts'
import {
  cancelFindAll,
  createFindAll,
  enrichFindAll,
  entitySearch,
  extendFindAll,
  findAllResult,
  findAllSchema,
  getFindAll,
  ingest,
} from './requests.ts'

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
      return entitySearch(context, objective, options)
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
      options?: SourceOptions,
    ): AwaitableSource<FindAllSchema> {
      return extendFindAll(context, findAllId, request, options)
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
    schema(findAllId: string, options?: SourceOptions): AwaitableSource<FindAllSchema> {
      return findAllSchema(context, findAllId, options)
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
      return reportRunAhead(context, findAllEvents(context, findAllId, options), findAllSource(findAllId))
    },
  }
}
