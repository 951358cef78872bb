import { map } from 'rxjs'
import { FIND_ALL_BETA } from '../../protocol/betas.ts'
import { checkId, checkOptions } from '../../protocol/check.ts'
import { findAllSource } from '../../protocol/find-all-event.ts'
import type {
  FindAllEnrichment,
  FindAllRequest,
  FindAllResult,
  FindAllRun,
  FindAllSchema,
  IngestRequest,
} from '../../protocol/find-all.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { enrichRequest, findAllRequest, ingestRequest } from '../../protocol/requests/find-all.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { actedOnOnce } from '../shapes/acted-on-once.ts'
import { requestBody, requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'

/* Single requests of FindAll. All of this file is beyond the interface document. */

/** The header of FindAll. */
export const betas = [FIND_ALL_BETA]

/** Turns an objective into the target of a run. Creates nothing at the service. */
export function ingest(
  context: Context,
  request: IngestRequest,
  options: SourceOptions = {},
): AwaitableSource<FindAllSchema> {
  checkOptions('options', options, ['signal'])
  checkRequest(ingestRequest, request)
  const call: ApiRequest = {
    method: 'POST',
    path: '/v1beta/findall/ingest',
    body: request,
    betas,
    idempotent: true,
  }
  return awaitable(requestShape<FindAllSchema>(context, call, ['match_conditions']), options.signal)
}

/** Creates a run. Not sent again if the service may have created one. */
export function createFindAll(
  context: Context,
  request: FindAllRequest,
  options: SourceOptions = {},
): AwaitableSource<FindAllRun> {
  checkOptions('options', options, ['signal'])
  checkRequest(findAllRequest, request)
  const call: ApiRequest = {
    method: 'POST',
    path: '/v1beta/findall/runs',
    body: request,
    betas,
    quota: 'findAll',
    idempotent: false,
  }
  return awaitable(requestShape<FindAllRun>(context, call).pipe(actedOnOnce()), options.signal)
}

/** Reads the state of a run. */
export function getFindAll(
  context: Context,
  findAllId: string,
  options: SourceOptions = {},
): AwaitableSource<FindAllRun> {
  const call = callOf(findAllId, options, { method: 'GET', idempotent: true })
  return awaitable(requestShape<FindAllRun>(context, call), options.signal)
}

/** Cancels a run. */
export function cancelFindAll(
  context: Context,
  findAllId: string,
  options: SourceOptions = {},
): AwaitableSource<void> {
  const call = callOf(findAllId, options, { method: 'POST', idempotent: true, mayBeEmpty: true }, '/cancel')
  return awaitable(requestBody(context, call).pipe(map(() => undefined)), options.signal)
}

/** Has each match enriched. Not sent again if the service may have done it. */
export function enrichFindAll(
  context: Context,
  findAllId: string,
  request: FindAllEnrichment,
  options: SourceOptions = {},
): AwaitableSource<FindAllSchema> {
  checkRequest(enrichRequest, request)
  const call = callOf(findAllId, options, { method: 'POST', body: request, idempotent: false }, '/enrich')
  return awaitable(requestShape<FindAllSchema>(context, call).pipe(actedOnOnce()), options.signal)
}

/** Reads a run with its candidates so far. */
export function findAllResult(
  context: Context,
  findAllId: string,
  options: SourceOptions = {},
): AwaitableSource<FindAllResult> {
  const call = callOf(findAllId, options, { method: 'GET', idempotent: true }, '/result')
  return awaitable(requestShape<FindAllResult>(context, call, ['candidates']), options.signal)
}

/** A request for a run, whose arguments are checked. */
export function callOf(
  findAllId: string,
  options: SourceOptions,
  request: Omit<ApiRequest, 'path' | 'betas'>,
  suffix = '',
): ApiRequest {
  checkId('findAllId', findAllId)
  checkOptions('options', options, ['signal'])
  return { ...request, path: findAllSource(findAllId) + suffix, betas }
}
