import type { SchedulerLike } from 'rxjs'
import { BodyIntake } from '../../http/body-intake.ts'
import { sessionEvent } from '../../protocol/gateway-event.ts'
import type { GatewaySession } from '../../protocol/gateway-event.ts'
import { refusalResponse } from '../http-answer.ts'
import type { Journal } from '../journal.ts'
import type { CheckedGrant } from './checked-grant.ts'
import { jsonBody } from './request-body.ts'
import type { SessionCookie } from './session-cookie.ts'
import type { Tokens, VerifiedToken } from './tokens.ts'

/** How long a ticket may be exchanged, in ms. */
const TIME_TO_LIVE = 60_000

/** The tickets that are remembered as used, besides the log. */
const MAX_USED = 10_000

const MAX_BODY = 16 * 1024
const MAX_BODIES = 4 * 1024 * 1024
const BODY_TIMEOUT = 10_000

/** Tickets, each of which is exchanged once for a cookie with the same grant. */
export class Tickets {
  readonly #tokens: Tokens
  readonly #journal: Journal
  readonly #cookie: SessionCookie
  readonly #scheduler: SchedulerLike
  readonly #bodies = new BodyIntake({
    maxBodyBytes: MAX_BODY,
    maxBytesInFlight: MAX_BODIES,
    bodyTimeout: BODY_TIMEOUT,
  })
  /** So that a ticket that is sent again and again does not reach the log each time. */
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
   * Answers `POST …/session` with the body `{ ticket }`: 204 with the cookie.
   *
   * @param isRevoked Whether the grant of a ticket is revoked.
   */
  async exchange(request: Request, isRevoked: (ticket: VerifiedToken) => boolean): Promise<Response> {
    const body = await jsonBody(request, this.#bodies)
    if (body instanceof Response) return body
    const { ticket } = body
    if (typeof ticket !== 'string') return refusalResponse('invalid', 'ticket must be a string')
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
