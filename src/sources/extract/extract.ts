import { checkOptions } from '../../protocol/check.ts'
import type { ExtractRequest, ExtractResponse } from '../../protocol/extract.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { extractRequest } from '../../protocol/requests/extract.ts'
import type { ApiRequest } from '../../transport/endpoint.ts'
import { DEFAULT_TIMEOUTS } from '../../transport/exchange.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'

/** How much longer than its pages a response may take, in ms. */
const GRACE = 15_000

/** Extracts pages: emits one response with a result or an error for each URL, and completes. Beyond the interface document. */
export function extract(
  context: Context,
  request: ExtractRequest,
  options: SourceOptions = {},
): AwaitableSource<ExtractResponse> {
  checkOptions('extract', options, ['signal'])
  checkRequest(extractRequest, request)
  // The response comes when the last page has been fetched.
  const wait = (request.advanced_settings?.fetch_policy?.timeout_seconds ?? 0) * 1_000 + GRACE
  const call: ApiRequest = {
    method: 'POST',
    path: '/v1/extract',
    body: request,
    quota: 'extract',
    idempotent: true,
    ...(wait > DEFAULT_TIMEOUTS.headers && { timeouts: { headers: wait } }),
  }
  return awaitable(requestShape<ExtractResponse>(context, call, ['results', 'errors']), options.signal)
}
