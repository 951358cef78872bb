import type { Grant } from '../gateway/grant.ts'
import { refusalResponse } from '../gateway/http-answer.ts'

/** The part of a gateway that a dashboard uses. */
interface DashboardGateway {
  (request: Request): Promise<Response>
  grant(grant: Grant): Promise<string>
  readonly done: Promise<void>
  close(): Promise<void>
}

/** A gateway that is created when it is first needed: an unopened dashboard does no work. */
export class LazyGateway {
  readonly #create: () => DashboardGateway
  readonly #done = Promise.withResolvers<void>()
  #gateway: DashboardGateway | undefined
  #isClosed = false

  constructor(create: () => DashboardGateway) {
    this.#create = create
    // It may reject while it is not used.
    this.#done.promise.catch(() => {})
  }

  /** Rejects when the promise of the gateway does. Resolves after `close`. */
  get done(): Promise<void> {
    return this.#done.promise
  }

  /** Answers a request of a page, which has a token: without one, there is no gateway yet. */
  async handle(request: Request): Promise<Response> {
    if (this.#isClosed) return closed()
    if (this.#gateway !== undefined) return this.#gateway(request)
    return refusalResponse('unauthenticated', 'the request needs a new token')
  }

  /** Answers with a token for the grant. */
  async token(grant: Grant): Promise<Response> {
    if (this.#isClosed) return closed()
    this.#gateway ??= this.#started()
    const token = await this.#gateway.grant(grant)
    return Response.json({ token }, { headers: { 'cache-control': 'no-store' } })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#gateway?.close()
    this.#done.resolve()
  }

  #started(): DashboardGateway {
    const gateway = this.#create()
    gateway.done.catch(this.#done.reject)
    return gateway
  }
}

function closed(): Response {
  return refusalResponse('unavailable', 'the dashboard is closed')
}
