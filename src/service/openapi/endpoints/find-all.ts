import { FIND_ALL_BETA } from '../../../protocol/betas.ts'
import {
  enrichRequest,
  entitySearchRequest,
  extendRequest,
  findAllEventsQuery,
  findAllRequest,
  ingestRequest,
} from '../../../protocol/requests/find-all.ts'
import {
  entitySearchResponse,
  findAllResult,
  findAllRun,
  findAllSchema,
  findAllStreamEvent,
} from '../answers/find-all.ts'
import type { Endpoint } from '../endpoint.ts'

const common = {
  area: 'FindAll',
  betas: [FIND_ALL_BETA],
  errors: { 422: 'The request is not valid, or it has no beta header' },
} as const
const NO_ROOM = { 402: 'Active runs reserve the credit', 503: 'Too many runs are active' } as const
const RUN = '/v1beta/findall/runs/:findall_id'

/** The endpoints of FindAll; beyond the interface document. */
export const findAllEndpoints: readonly Endpoint[] = [
  {
    ...common,
    method: 'POST',
    path: '/v1beta/findall/ingest',
    operationId: 'ingestFindAll',
    summary: 'Reads the type of the entities and their conditions out of an objective',
    body: { name: 'IngestRequest', schema: ingestRequest },
    answer: findAllSchema,
  },
  {
    ...common,
    method: 'POST',
    path: '/v1beta/findall/entity-search',
    operationId: 'searchEntities',
    summary: 'Searches for people or companies, without conditions',
    body: { name: 'EntitySearchRequest', schema: entitySearchRequest },
    answer: entitySearchResponse,
    quota: 'search',
  },
  {
    ...common,
    method: 'POST',
    path: '/v1beta/findall/runs',
    operationId: 'createFindAllRun',
    summary: 'Starts to find entities that meet conditions',
    body: { name: 'FindAllRequest', schema: findAllRequest },
    status: 202,
    answer: findAllRun,
    errors: { ...common.errors, ...NO_ROOM },
    quota: 'findAll',
  },
  {
    ...common,
    method: 'GET',
    path: RUN,
    operationId: 'getFindAllRun',
    summary: 'Returns the state of a run',
    answer: findAllRun,
  },
  {
    ...common,
    method: 'GET',
    path: `${RUN}/schema`,
    operationId: 'getFindAllSchema',
    summary: 'Returns what a run looks for',
    answer: findAllSchema,
  },
  {
    ...common,
    method: 'GET',
    path: `${RUN}/result`,
    operationId: 'getFindAllResult',
    summary: 'Returns a run with its candidates so far',
    answer: findAllResult,
  },
  {
    ...common,
    method: 'POST',
    path: `${RUN}/cancel`,
    operationId: 'cancelFindAllRun',
    summary: 'Cancels a run',
    answer: findAllRun,
    errors: { ...common.errors, 409: 'The run is over' },
  },
  {
    ...common,
    method: 'POST',
    path: `${RUN}/extend`,
    operationId: 'extendFindAllRun',
    summary: 'Finds more matches with a run that has met its limit',
    body: { name: 'ExtendRequest', schema: extendRequest },
    answer: findAllSchema,
    errors: { ...common.errors, ...NO_ROOM, 409: 'The run did not end with match_limit_met' },
  },
  {
    ...common,
    method: 'POST',
    path: `${RUN}/enrich`,
    operationId: 'enrichFindAllRun',
    summary: 'Finds out more about each match of a run',
    body: { name: 'FindAllEnrichment', schema: enrichRequest },
    answer: findAllSchema,
    errors: { ...common.errors, ...NO_ROOM, 409: 'The run was cancelled or failed' },
  },
  {
    ...common,
    method: 'GET',
    path: `${RUN}/events`,
    operationId: 'streamFindAllRun',
    summary: 'Streams the events of a run, after any of them',
    query: findAllEventsQuery,
    events: findAllStreamEvent,
  },
]
