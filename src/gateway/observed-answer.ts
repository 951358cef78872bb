import type { FetchHandler } from '../http/fetch-handler.ts'
import type { Counters } from './feed/counters.ts'
import { refusalCode } from './http-answer.ts'
import type { GatewayEndpoint } from './observer.ts'

const ENDPOINTS: ReadonlyMap<string, GatewayEndpoint> = new Map(
  (['stream', 'session', 'search', 'runs', 'log'] as const).map((name) => [`/${name}`, name]),
)

/**
 * Answers requests while observers look on.
 *
 * @param root The path of the gateway, without a slash at its end.
 */
export function observedAnswer(counters: Counters, root: string, answer: FetchHandler): FetchHandler {
  const { observers } = counters
  return async (request) => {
    if (observers.isEmpty) return answer(request)
    const { pathname } = new URL(request.url)
    const path = pathname.startsWith(root) ? pathname.slice(root.length) : ''
    const endpoint = ENDPOINTS.get(path) ?? 'other'
    const { method } = request
    const response = await observers.around(
      () => answer(request),
      (observer, proceed) =>
        observer.request === undefined ? proceed() : observer.request({ endpoint, method }, proceed),
    )
    const code = refusalCode(response)
    if (code !== undefined) counters.refused(endpoint, code)
    return response
  }
}
