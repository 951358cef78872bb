import { randomUUID } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Clock } from './clock.ts'
import type { Faults } from './faults.ts'
import { sendAnswers } from './http/answers.ts'
import { authenticate } from './http/authentication.ts'
import { limitBody } from './http/body.ts'
import { HttpProblem, problem } from './http/problem.ts'
import { quota, QUOTAS } from './http/quota.ts'
import { answerOnTheWay, refuseCursors } from './http/request-faults.ts'

/** Routes of the service, which write streams to Node's own response. */
export type Routes = Hono<{ Bindings: HttpBindings }>

/** What the service's one application is put together from. */
export interface AppOptions {
  readonly apiKeys: readonly string[]
  readonly clock: Clock
  readonly faults: Faults
  /** Whether there is an end to the requests that a caller may send in a minute. */
  readonly quotas: boolean
  /** Puts each area's routes under its path. */
  readonly mount: (app: Routes) => void
  /** Hears of every failure that was answered with a 500, and the reference that the caller got. */
  readonly onError: (error: unknown, ref_id: string) => void
}

/** Everything that is the same for all endpoints: credentials, limits, faults, and how a problem is told (§5, §7). */
export function createApp({ apiKeys, clock, faults, quotas, mount, onError }: AppOptions): Routes {
  const app: Routes = new Hono()

  app.use(answerOnTheWay(faults))
  app.use(authenticate(apiKeys))
  app.use(async (c, next) => {
    // Hono would answer HEAD as GET, and a stream must not begin for it.
    if (c.env.incoming.method === 'HEAD') throw methodNotAllowed('HEAD', ['GET', 'POST'])
    await next()
  })
  app.use(refuseCursors(faults))
  if (quotas) {
    for (const { limit, paths } of QUOTAS) app.on('POST', [...paths], quota(clock, limit))
  }
  app.use(limitBody())
  app.use(sendAnswers(faults))

  mount(app)
  refuseOtherMethods(app)

  app.notFound((c) => {
    throw problem(404, `There is nothing at ${c.req.path}`)
  })
  app.onError((error, c) => {
    if (error instanceof HttpProblem) {
      // The status is one that goes with a body: none of our problems is a 101, 204, 205 or 304.
      return c.json(error.body, error.status as ContentfulStatusCode, error.headers)
    }
    const ref_id = randomUUID()
    onError(error, ref_id)
    const message = 'The service failed. Its log tells more under this reference'
    return c.json({ type: 'error', error: { ref_id, message, detail: null } }, 500)
  })
  return app
}

/** Answers known paths with 405 where the method is another one. */
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

function methodNotAllowed(method: string, allowed: readonly string[]) {
  return problem(405, `${method} is not allowed here, only ${allowed.join(' and ')}`, null, {
    allow: allowed.join(', '),
  })
}
