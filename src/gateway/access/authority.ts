import { asyncScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkOptions } from '../../protocol/check.ts'
import type { TokenOptions } from '../gateway-options.ts'
import type { Grant, Revocation } from '../grant.ts'
import { refusalResponse } from '../http-answer.ts'
import { GrantedAccess } from './access.ts'
import type { Access } from './access.ts'
import { checkGrant, isSubject } from './checked-grant.ts'
import { OpenAccesses } from './endings.ts'
import { Revocations } from './revocations.ts'
import { SubjectConnections } from './subject-connections.ts'
import { Tokens } from './tokens.ts'

/** Settings of an {@link Authority}. */
export interface AuthorityOptions {
  readonly tokens: TokenOptions
  /** The names of the gateway's views. */
  readonly views: readonly string[]
  /** Default 20. */
  readonly maxConnections?: number | undefined
  readonly scheduler?: SchedulerLike
}

/** Decides who may see and do what: signs grants, and verifies the tokens of requests. */
export class Authority {
  readonly #tokens: Tokens
  readonly #views: readonly string[]
  readonly #scheduler: SchedulerLike
  readonly #revocations = new Revocations()
  readonly #open: OpenAccesses
  readonly #connections: SubjectConnections

  /** @throws ArgumentError for an invalid setting. */
  constructor({ tokens, views, maxConnections = 20, scheduler = asyncScheduler }: AuthorityOptions) {
    checkInteger('maxConnections', maxConnections, 1)
    this.#tokens = new Tokens(tokens)
    this.#views = views
    this.#scheduler = scheduler
    this.#open = new OpenAccesses(scheduler, (access) => this.#revocations.has(access))
    this.#connections = new SubjectConnections(maxConnections)
  }

  /** A token for the grant. Rejects with an ArgumentError for an invalid or too large one. */
  async sign(grant: Grant): Promise<string> {
    const checked = checkGrant(grant, this.#views)
    const issued = this.#scheduler.now()
    const expires = issued + checked.timeToLive
    return this.#tokens.sign({ kind: 'token', grant: checked, id: crypto.randomUUID(), issued, expires })
  }

  /** What a grant allows, without a token. Throws an ArgumentError for an invalid one. */
  accessOf(grant: Grant): Access {
    const checked = checkGrant(grant, this.#views)
    const issued = this.#scheduler.now()
    const expires = issued + checked.timeToLive
    return new GrantedAccess(checked, { grant: crypto.randomUUID(), issued, expires }, this.#open)
  }

  /** What a request may see and do, or the response that refuses it. */
  async authenticate(request: Request): Promise<Access | Response> {
    const token = bearerOf(request)
    if (token === undefined) {
      return refusalResponse('unauthenticated', 'the request needs a bearer token')
    }
    const verified = await this.#tokens.verify(token, 'token', this.#scheduler.now())
    if (verified === 'expired') return refusalResponse('expired', 'the token has expired')
    if (verified === 'unauthenticated') {
      return refusalResponse('unauthenticated', 'the token is not valid for this gateway')
    }
    const { grant, id, issued, expires } = verified
    const access = new GrantedAccess(grant, { grant: id, issued, expires }, this.#open)
    if (this.#revocations.has(access)) return refusalResponse('revoked', 'the grant was revoked')
    return access
  }

  /** Counts a connection of the subject until the returned function is called, or refuses it. */
  admit(access: Access): (() => void) | Response {
    return this.#connections.open(access.sub)
  }

  /** Ends the connections of these grants, and refuses their tokens from now on. */
  async revoke(revocation: Revocation): Promise<void> {
    checkRevocation(revocation)
    const now = this.#scheduler.now()
    this.#revocations.add(revocation, now, now)
    this.#open.endRevoked()
  }
}

/** The token of the `Authorization` header. */
function bearerOf(request: Request): string | undefined {
  return /^bearer +([^ ,]+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
}

function checkRevocation(revocation: Revocation): void {
  checkOptions('revocation', revocation ?? null, ['sub', 'grant'])
  const { sub, grant }: { readonly sub?: unknown; readonly grant?: unknown } = revocation
  const isOne = sub === undefined ? typeof grant === 'string' && grant !== '' : grant === undefined
  if (!isOne || (sub !== undefined && !isSubject(sub))) {
    throw new ArgumentError('revocation', '{ sub } or { grant }', revocation)
  }
}
