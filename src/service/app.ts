import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Faults } from './faults/faults.ts'
import { sendResponses } from './http/json-response.ts'
import { authenticate } from './http/authentication.ts'
import { readBetasFrom } from './http/betas.ts'
import { limitBody } from './http/body.ts'
import { problem, problemOf } from './http/problem.ts'
import type { Quotas } from './http/quota.ts'
import { ENDPOINTS } from './openapi/endpoints.ts'
import { answerInsteadOfRoute, refuseCursors } from './faults/request-faults.ts'
import { damageResponses } from './faults/response-faults.ts'

/** Routes of the service. Streams write to the response of `node:http`. */
export type Routes = Hono<{ Bindings: HttpBindings }>

/** Settings of {@link createApp}. */
export interface AppOptions {
  readonly apiKeys: readonly string[]
  readonly faults: Faults
  /** The name of the beta header (§9). */
  readonly betaHeader: string
  /** Count the requests that create something. */
  readonly quotas: Quotas
  /** Mounts the routes of each area. */
  readonly mount: (app: Routes) => void
  /** Called with each error that was answered with a 500, or a crash with a 503, and the `ref_id` of the response. */
  readonly onError: (error: unknown, ref_id: string) => void
}

/** Creates the application: authentication, limits, faults and error responses of all endpoints (§5, §7). */
export function createApp({ apiKeys, faults, betaHeader, quotas, mount, onError }: AppOptions): Routes {
  const app: Routes = new Hono()

  // The order matters: each middleware wraps those below it. Faults that imitate a proxy answer first, without a key. Others
  // need an authenticated request. `damageResponses` is below `sendResponses`, which writes a JSON response to the socket. A refusal by a
  // middleware above `damageResponses` is not damaged.
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
  for (const { path, quota } of ENDPOINTS) {
    if (quota === undefined) continue
    app.on('POST', path, async (c, next) => {
      quotas.take(quota, c.req.header('x-api-key') ?? '')
      await next()
    })
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
    const { body, status, headers } = problemOf(error, onError)
    // No problem has a status without a body (101, 204, 205 or 304).
    return c.json(body, status as ContentfulStatusCode, headers)
  })
  return app
}

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
