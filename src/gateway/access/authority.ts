import { asyncScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import type { EventLog } from '../../log/event-log/event-log.ts'
import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkInteger, checkOptions } from '../../protocol/check.ts'
import { revokedEvent } from '../../protocol/gateway-event.ts'
import type { TokenOptions } from '../gateway-options.ts'
import type { Grant, Revocation } from '../grant.ts'
import { refusalCode, refusalResponse } from '../http-answer.ts'
import { Journal } from '../journal.ts'
import { GrantedAccess } from './access.ts'
import type { Access, AccessEnd, Endings } from './access.ts'
import { bearerOf } from './bearer.ts'
import { checkGrant, isSubject } from './checked-grant.ts'
import { Origins } from './origins.ts'
import { RevocationFeed } from './revocation-feed.ts'
import { Revocations } from './revocations.ts'
import { SessionCookie } from './session-cookie.ts'
import { SubjectConnections } from './subject-connections.ts'
import { Tickets } from './tickets.ts'
import { Tokens } from './tokens.ts'
import type { TokenKind, VerifiedToken } from './tokens.ts'

/** Settings of an {@link Authority}. */
export interface AuthorityOptions {
  readonly log: EventLog
  readonly tokens: TokenOptions
  /** The names of the gateway's views. */
  readonly views: readonly string[]
  /** Path at which the gateway is mounted. */
  readonly path: string
  /** Default: pages of this machine. */
  readonly origins?: readonly string[] | undefined
  /** Default 20. */
  readonly maxConnections?: number | undefined
  readonly scheduler?: SchedulerLike | undefined
}

/** When to try again while the log cannot be read, in ms. */
const RETRY_AFTER = 1_000

/**
 * Decides about access: signs grants, and verifies requests. {@link Authority.protect} checks host and origin first, then
 * {@link Authority.authenticate} verifies the token, and only then is a body read.
 */
export class Authority {
  readonly #tokens: Tokens
  readonly #views: readonly string[]
  readonly #scheduler: SchedulerLike
  readonly #origins: Origins
  readonly #cookie: SessionCookie
  readonly #tickets: Tickets
  readonly #revocations = new Revocations()
  readonly #open: OpenAccesses
  readonly #connections: SubjectConnections
  readonly #reads: SubjectConnections
  readonly #feed: RevocationFeed
  /** Writes the gateway's events into its log. */
  readonly journal: Journal

  /** @throws ArgumentError for an invalid setting. */
  constructor(options: AuthorityOptions) {
    const { log, tokens, views, path, origins, maxConnections = 20, scheduler = asyncScheduler } = options
    checkInteger('maxConnections', maxConnections, 1)
    this.#tokens = new Tokens(tokens)
    this.#origins = new Origins(origins)
    this.#views = views
    this.#scheduler = scheduler
    this.#open = new OpenAccesses(scheduler, (access) => this.#revocations.has(access))
    this.#connections = new SubjectConnections(maxConnections)
    this.#reads = new SubjectConnections(maxConnections)
    this.#cookie = new SessionCookie(path)
    this.journal = new Journal(log)
    this.#tickets = new Tickets(this.#tokens, this.journal, this.#cookie, scheduler)
    this.#feed = new RevocationFeed(log, scheduler, this.#revocations, () => this.#open.endRevoked())
  }

  /** The ids of sessions of the service, as pages have them: each is valid for its subject alone, at any gateway with the same secret. */
  get sessions(): Pick<Tokens, 'seal' | 'unseal'> {
    return this.#tokens
  }

  /** Rejects when the gateway can no longer store revocations for gateways that start later. */
  get failure(): Promise<never> {
    return this.#feed.failure
  }

  /** A token for the grant. Rejects with an ArgumentError for an invalid or too large one. */
  async sign(grant: Grant): Promise<string> {
    const checked = checkGrant(grant, this.#views)
    const issued = this.#issue(checked.sub)
    const expires = issued + checked.timeToLive
    return this.#tokens.sign({ kind: 'token', grant: checked, id: crypto.randomUUID(), issued, expires })
  }

  /** A ticket for the grant, to be exchanged for a cookie. Rejects with an ArgumentError for an invalid or too large one. */
  async ticket(grant: Grant): Promise<string> {
    const checked = checkGrant(grant, this.#views)
    return this.#tickets.sign(checked, crypto.randomUUID(), this.#issue(checked.sub))
  }

  /** The access that a grant allows, without a token. Throws an ArgumentError for an invalid grant. */
  accessOf(grant: Grant): Access {
    const checked = checkGrant(grant, this.#views)
    const issued = this.#issue(checked.sub)
    const expires = issued + checked.timeToLive
    return new GrantedAccess(checked, { grant: crypto.randomUUID(), issued, expires }, this.#open)
  }

  /** Answers a request with the function if its host and origin may use the gateway. */
  async protect(request: Request, answer: () => Promise<Response>): Promise<Response> {
    const response = this.#origins.refusalOf(request) ?? this.#origins.preflight(request)
    if (response !== undefined) return response
    const answered = await answer()
    this.#origins.share(request, answered)
    const { headers } = answered
    headers.set('x-content-type-options', 'nosniff')
    if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
    return answered
  }

  /**
   * The access of a request, or the response that refuses it. GET and HEAD may come with the session's cookie; other
   * methods need the bearer token, which no other site can make a browser send.
   */
  async authenticate(request: Request): Promise<Access | Response> {
    const bearer = bearerOf(request)
    if (bearer !== undefined) return this.#access(bearer, 'token')
    const mayHaveCookie = request.method === 'GET' || request.method === 'HEAD'
    let refusal = refusalResponse('unauthenticated', 'the request needs a bearer token')
    // A bad one before a good one does not lock its user out.
    for (const session of mayHaveCookie ? this.#cookie.tokensOf(request) : []) {
      const access = await this.#access(session, 'session')
      if (!(access instanceof Response) || refusalCode(access) === 'unavailable') return access
      refusal = access
    }
    return refusal
  }

  /** Answers `POST …/session`: exchanges a ticket for a cookie. */
  async exchange(request: Request): Promise<Response> {
    const isRevoked = ({ id, issued, grant: { sub } }: VerifiedToken) =>
      this.#revocations.has({ sub, grant: id, issued })
    try {
      return (await this.#unavailable()) ?? (await this.#tickets.exchange(request, isRevoked))
    } catch {
      return unavailableLog()
    }
  }

  /** Counts a connection of the subject until the returned function is called, or refuses it. */
  admit(access: Access): (() => void) | Response {
    return this.#connections.open(access.sub)
  }

  /** Counts a read of the log by the subject until the returned function is called, or refuses it. It does not count as a connection. */
  admitRead(access: Access): (() => void) | Response {
    return this.#reads.open(access.sub)
  }

  /**
   * Ends the connections of these grants, and refuses their tokens, tickets and cookies from now on, in each gateway of the log.
   * Resolves once the revocation survives a crash and the retention of the log. If it rejects with an error of the log, the revocation
   * holds in this gateway alone.
   */
  async revoke(revocation: Revocation): Promise<void> {
    const checked = await this.#checked(revocation)
    const now = this.#scheduler.now()
    this.#revocations.add(checked, now, now)
    this.#open.endRevoked()
    const data = 'sub' in checked ? { sub: checked.sub, grant: null } : { sub: null, grant: checked.grant }
    await this.#feed.keep(checked, now, () =>
      this.journal.record(revokedEvent(data, crypto.randomUUID(), now)),
    )
  }

  async close(): Promise<void> {
    await Promise.all([this.#feed.stop(), this.journal.close()])
  }

  /** The access that a token grants, or the response that refuses it. */
  async #access(token: string, kind: TokenKind): Promise<Access | Response> {
    const verified = await this.#tokens.verify(token, kind, this.#scheduler.now())
    if (verified === 'expired') return refusalResponse('expired', 'the token has expired')
    if (verified === 'unauthenticated') {
      return refusalResponse('unauthenticated', 'the token is not valid for this gateway')
    }
    const unavailable = await this.#unavailable()
    if (unavailable !== undefined) return unavailable
    const { grant, id, issued, expires } = verified
    const access = new GrantedAccess(grant, { grant: id, issued, expires }, this.#open)
    if (this.#revocations.has(access)) return refusalResponse('revoked', 'the grant was revoked')
    return access
  }

  /** The refusal while the revocations are not available: without them, no token can be accepted. */
  async #unavailable(): Promise<Response | undefined> {
    try {
      await this.#feed.ready()
      return undefined
    } catch {
      return unavailableLog()
    }
  }

  /** When a grant is made: after the last revocation of its subject, also if the clock of another gateway is ahead. */
  #issue(sub: string): number {
    return Math.max(this.#scheduler.now(), this.#revocations.subjectAt(sub) + 1)
  }

  async #checked(revocation: Revocation): Promise<Revocation> {
    checkOptions('revocation', revocation ?? null, ['sub', 'grant'])
    const { sub, grant }: { readonly sub?: unknown; readonly grant?: unknown } = revocation
    if ((sub === undefined) === (grant === undefined)) {
      throw new ArgumentError('revocation', '{ sub } or { grant }', hidden(revocation))
    }
    if (grant === undefined) {
      if (!isSubject(sub)) throw new ArgumentError('revocation.sub', 'a subject', sub)
      return { sub }
    }
    // A token is longer than an id, and has dots.
    const id =
      typeof grant === 'string' && grant.includes('.')
        ? await this.#tokens.idOf(grant)
        : isGrantId(grant)
          ? grant
          : undefined
    if (id === undefined) {
      const expected = 'a token or a ticket of this gateway, or the id of one'
      throw new ArgumentError('revocation.grant', expected, hidden(grant))
    }
    return { grant: id }
  }
}

/** The id of a grant is a UUID. */
function isGrantId(value: unknown): value is string {
  return typeof value === 'string' && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value)
}

function unavailableLog(): Response {
  return refusalResponse('unavailable', 'the gateway cannot check tokens at the moment', {
    retryAfter: RETRY_AFTER,
  })
}

/** An open access, and what to call when it ends. */
interface Watched {
  readonly access: GrantedAccess
  readonly end: (reason: AccessEnd) => void
}

/** The accesses of open connections, which end when their grants expire or are revoked. */
class OpenAccesses implements Endings {
  readonly #scheduler: SchedulerLike
  readonly #isRevoked: (access: GrantedAccess) => boolean
  readonly #watched = new Set<Watched>()

  /** @param isRevoked Whether the grant is revoked now. */
  constructor(scheduler: SchedulerLike, isRevoked: (access: GrantedAccess) => boolean) {
    this.#scheduler = scheduler
    this.#isRevoked = isRevoked
  }

  watch(access: GrantedAccess, onEnd: (reason: AccessEnd) => void): () => void {
    const expiry = this.#scheduler.schedule(
      () => watched.end('expired'),
      Math.max(0, access.expires - this.#scheduler.now()),
    )
    const stop = () => {
      expiry.unsubscribe()
      this.#watched.delete(watched)
    }
    const watched: Watched = {
      access,
      end: (reason) => {
        // Once, whatever comes first.
        if (!this.#watched.has(watched)) return
        stop()
        onEnd(reason)
      },
    }
    this.#watched.add(watched)
    // It may have ended since it was verified, and a timer is too late for bytes that are sent at once.
    queueMicrotask(() => {
      if (this.#isRevoked(access)) watched.end('revoked')
      else if (access.expires <= this.#scheduler.now()) watched.end('expired')
    })
    return stop
  }

  /** Ends those whose grants have been revoked. */
  endRevoked(): void {
    for (const watched of Array.from(this.#watched)) {
      if (this.#isRevoked(watched.access)) watched.end('revoked')
    }
  }
}
