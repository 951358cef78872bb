import type { SchedulerLike } from 'rxjs'
import { sessionEvent } from '../../protocol/gateway-event.ts'
import type { GatewaySession } from '../../protocol/gateway.ts'
import { refusalResponse } from '../http-answer.ts'
import type { Journal } from '../journal.ts'
import type { CheckedGrant } from './checked-grant.ts'
import { bearerOf } from './bearer.ts'
import type { SessionCookie } from './session-cookie.ts'
import type { Tokens, VerifiedToken } from './tokens.ts'

/** How long a ticket may be exchanged, in ms. */
const TIME_TO_LIVE = 60_000

/** The tickets that are remembered as used, besides the log. */
const MAX_USED = 10_000

/** Tickets, each of which is exchanged once for a cookie with the same grant. */
export class Tickets {
  readonly #tokens: Tokens
  readonly #journal: Journal
  readonly #cookie: SessionCookie
  readonly #scheduler: SchedulerLike
  /** Tickets that were used here. A ticket that is sent again and again does not reach the log each time. */
  readonly #used = new Set<string>()

  constructor(tokens: Tokens, journal: Journal, cookie: SessionCookie, scheduler: SchedulerLike) {
    this.#tokens = tokens
    this.#journal = journal
    this.#cookie = cookie
    this.#scheduler = scheduler
  }

  /** @throws ArgumentError for a grant that does not fit into a cookie. */
  async sign(grant: CheckedGrant, id: string, issued: number): Promise<string> {
    const until = issued + grant.timeToLive
    const expires = Math.min(issued + TIME_TO_LIVE, until)
    return this.#tokens.sign({ kind: 'ticket', grant, id, issued, expires, until })
  }

  /**
   * Answers `POST …/session` with the ticket as its bearer: 204 with the cookie. The ticket is not in a body, since a body takes memory
   * until it is read.
   *
   * @param isRevoked Whether the grant of a ticket is revoked.
   */
  async exchange(request: Request, isRevoked: (ticket: VerifiedToken) => boolean): Promise<Response> {
    const ticket = bearerOf(request)
    if (ticket === undefined) {
      return refusalResponse('unauthenticated', 'the request needs a ticket as its bearer token')
    }
    const verified = await this.#tokens.verify(ticket, 'ticket', this.#scheduler.now())
    if (verified === 'expired') return refusalResponse('expired', 'the ticket has expired')
    if (verified === 'unauthenticated') {
      return refusalResponse('unauthenticated', 'the ticket is not valid for this gateway')
    }
    if (isRevoked(verified)) return refusalResponse('revoked', 'the grant was revoked')
    if (!(await this.#use(verified))) {
      return refusalResponse('unauthenticated', 'the ticket was used already')
    }
    const { grant, id, issued, until } = verified
    const token = await this.#tokens.sign({ kind: 'session', grant, id, issued, expires: until })
    const setCookie = this.#cookie.set(request, token, until - this.#scheduler.now())
    return new Response(null, { status: 204, headers: { 'set-cookie': setCookie } })
  }

  /** Uses a ticket, and returns whether this is its first use in any gateway of the log. */
  async #use({ id, grant: { sub } }: VerifiedToken): Promise<boolean> {
    if (this.#used.has(id)) return false
    this.#remember(id)
    const data: GatewaySession = { sub, grant: id, exchange: crypto.randomUUID() }
    return this.#journal.recordOnce(
      sessionEvent(data, this.#scheduler.now()),
      (entry) => entry.type === 'gateway.session' && entry.data.exchange === data.exchange,
    )
  }

  #remember(id: string): void {
    this.#used.add(id)
    const [oldest] = this.#used
    if (this.#used.size > MAX_USED && oldest !== undefined) this.#used.delete(oldest)
  }
}
