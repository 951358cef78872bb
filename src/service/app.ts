import { randomUUID } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { QuotaLimits } from '../protocol/quotas.ts'
import type { Clock } from './clock.ts'
import type { Faults } from './faults/faults.ts'
import { IsolatedError } from './isolated/isolated-error.ts'
import { sendResponses } from './http/json-response.ts'
import { authenticate } from './http/authentication.ts'
import { readBetasFrom } from './http/betas.ts'
import { limitBody } from './http/body.ts'
import { HttpProblem, problem } from './http/problem.ts'
import { quota } from './http/quota.ts'
import { ENDPOINTS } from './openapi/endpoints.ts'
import { answerInsteadOfRoute, refuseCursors } from './faults/request-faults.ts'
import { damageResponses } from './faults/response-faults.ts'

/** Routes of the service. Streams write to the response of `node:http`. */
export type Routes = Hono<{ Bindings: HttpBindings }>

/** Settings of {@link createApp}. */
export interface AppOptions {
  readonly apiKeys: readonly string[]
  readonly clock: Clock
  readonly faults: Faults
  /** The name of the beta header (§9). */
  readonly betaHeader: string
  /** The limits of requests that create something. */
  readonly quotas: QuotaLimits
  /** Mounts the routes of each area. */
  readonly mount: (app: Routes) => void
  /** Called with each error that was answered with a 500, or a crash with a 503, and the `ref_id` of the response. */
  readonly onError: (error: unknown, ref_id: string) => void
}

/** Creates the application: authentication, limits, faults and error responses of all endpoints (§5, §7). */
export function createApp({
  apiKeys,
  clock,
  faults,
  betaHeader,
  quotas,
  mount,
  onError,
}: AppOptions): Routes {
  const app: Routes = new Hono()

  // The order matters: each middleware wraps those below it. Faults that imitate a proxy answer first, without a key. Others
  // need an authenticated request. `damageResponses` is below `sendResponses`, which writes a JSON response to the socket. What
  // a middleware above `damageResponses` refuses is not damaged.
  app.use(answerInsteadOfRoute(faults))
  app.use(authenticate(apiKeys))
  app.use(async (c, next) => {
    // Hono handles HEAD as GET, which would start a stream.
    const allowed = c.env.incoming.method === 'HEAD' ? methodsAt(app, c.req.path) : []
    if (allowed.length > 0) throw methodNotAllowed('HEAD', allowed)
    await next()
  })
  app.use(readBetasFrom(betaHeader))
  app.use(refuseCursors(faults))
  for (const [name, limit] of Object.entries(quotas)) {
    const paths = ENDPOINTS.filter((endpoint) => endpoint.quota === name).map(({ path }) => path)
    if (limit !== undefined) app.on('POST', paths, quota(clock, limit))
  }
  app.use(limitBody())
  app.use(sendResponses())
  app.use(damageResponses(faults))

  mount(app)
  refuseOtherMethods(app)

  app.notFound((c) => {
    throw problem(404, `There is nothing at ${c.req.path}`)
  })
  app.onError((error, c) => {
    if (error instanceof HttpProblem) {
      // No problem has a status without a body (101, 204, 205 or 304).
      return c.json(error.body, error.status as ContentfulStatusCode, error.headers)
    }
    const ref_id = randomUUID()
    const isUnchecked = error instanceof IsolatedError && error.isTemporary
    if (!isUnchecked || error.kind === 'crash') onError(error, ref_id)
    const body = (message: string) => ({ type: 'error', error: { ref_id, message, detail: null } })
    if (isUnchecked) return c.json(body(error.message), 503, { 'retry-after': String(RETRY_AFTER) })
    return c.json(body('The service failed. Its log has the error under this ref_id'), 500)
  })
  return app
}

/** What a client is asked to wait whose request could not be checked, in s. */
const RETRY_AFTER = 1

/** Responds with 405 to other methods of known paths. */
function refuseOtherMethods(app: Routes): void {
  const methods = Map.groupBy(
    app.routes.filter(({ method }) => method !== 'ALL'),
    ({ path }) => path,
  )
  for (const [path, routes] of methods) {
    const allowed = [...new Set(routes.map(({ method }) => method))]
    app.all(path, (c) => {
      throw methodNotAllowed(c.req.method, allowed)
    })
  }
}

/** The methods of the routes that serve a path. */
function methodsAt({ routes }: Routes, requested: string): string[] {
  const serving = routes.filter(({ method, path }) => {
    const pattern = path.replaceAll(/:\w+/g, '[^/]+')
    return method !== 'ALL' && new RegExp(`^${pattern}$`).test(requested)
  })
  return [...new Set(serving.map(({ method }) => method))]
}

function methodNotAllowed(method: string, allowed: readonly string[]) {
  return problem(405, `${method} is not allowed here, only ${allowed.join(' and ')}`, null, {
    allow: allowed.join(', '),
  })
}
