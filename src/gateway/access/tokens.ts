import { base64url, compactVerify, errors, jwtVerify, SignJWT } from 'jose'
import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkOptions, checkText } from '../../protocol/check.ts'
import { isObject, parseJson } from '../../protocol/json.ts'
import type { TokenOptions } from '../gateway-options.ts'
import { checkGrant, MAX_TIME_TO_LIVE } from './checked-grant.ts'
import type { CheckedGrant } from './checked-grant.ts'

/** The purpose of a token. A token with another purpose is refused: the token of a cookie is no bearer token, and a ticket is no token. */
export type TokenKind = 'token' | 'ticket' | 'session'

/** A verified token. Times in Unix ms. */
export interface VerifiedToken {
  readonly grant: CheckedGrant
  readonly id: string
  readonly issued: number
  readonly expires: number
  /** When the grant of a ticket ends, which is later than the ticket. */
  readonly until: number
}

/** The content of a token. */
export interface TokenToSign {
  readonly kind: TokenKind
  readonly grant: CheckedGrant
  readonly id: string
  readonly issued: number
  readonly expires: number
  /** Default: `expires`. */
  readonly until?: number
}

/** The longest token, in characters: within the headers that servers and proxies accept, 8 kB for each by default. */
const MAX_TOKEN = 6_000

/** The longest token in a cookie: browsers drop one of more than 4,096 bytes, with its name and attributes. */
const MAX_SESSION_TOKEN = 3_800

const ISSUER = 'rivulet'
const ALGORITHM = 'HS256'
const MIN_SECRET = 32
const MAX_SECRETS = 16

/** How much the clocks of gateways may differ, in ms. */
const CLOCK_TOLERANCE = 60_000

const TYPE: Readonly<Record<TokenKind, string>> = {
  token: 'rivulet-grant+jwt',
  ticket: 'rivulet-ticket+jwt',
  session: 'rivulet-session+jwt',
}

/** Signs and verifies tokens: JSON Web Tokens with HMAC-SHA-256 and no other algorithm. */
export class Tokens {
  readonly #secrets: readonly Uint8Array<ArrayBuffer>[]
  readonly #audience: string
  #keys: Promise<readonly CryptoKey[]> | undefined

  /** @throws ArgumentError, which does not contain a secret. */
  constructor(options: TokenOptions) {
    checkOptions('tokens', options ?? null, ['secret', 'audience'])
    const { secret, audience = ISSUER } = options
    checkText('tokens.audience', audience)
    this.#audience = audience
    this.#secrets = secretsOf(secret)
  }

  /** @throws ArgumentError if the token is longer than this. */
  async sign({ kind, grant, id, issued, expires, until }: TokenToSign): Promise<string> {
    const { sub, timeToLive: _, ...rights } = grant
    const token = await new SignJWT({ ...rights, ...(until !== undefined && { until: until / 1000 }) })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE[kind] })
      .setIssuer(ISSUER)
      .setAudience(this.#audience)
      .setSubject(sub)
      .setJti(id)
      .setIssuedAt(issued / 1000)
      .setExpirationTime(expires / 1000)
      .sign(await this.#signingKey())
    checkLength(token, kind)
    return token
  }

  /** The grant of a token, or the reason why it is refused. Never rejects. */
  async verify(
    token: string,
    kind: TokenKind,
    now: number,
  ): Promise<VerifiedToken | 'expired' | 'unauthenticated'> {
    if (!isCompact(token)) return 'unauthenticated'
    for (const key of await this.#imported()) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          typ: TYPE[kind],
          issuer: ISSUER,
          audience: this.#audience,
          requiredClaims: ['sub', 'jti', 'iat', 'exp'],
          currentDate: new Date(now),
        })
        return verified(payload, now)
      } catch (error) {
        if (error instanceof errors.JWSSignatureVerificationFailed) continue
        return error instanceof errors.JWTExpired ? 'expired' : 'unauthenticated'
      }
    }
    return 'unauthenticated'
  }

  /** The id of a token of any kind, expired or not; undefined for one that this gateway has not signed. */
  async idOf(token: string): Promise<string | undefined> {
    if (!isCompact(token)) return undefined
    for (const key of await this.#imported()) {
      try {
        const { payload } = await compactVerify(token, key, { algorithms: [ALGORITHM] })
        const claims = parseJson(new TextDecoder().decode(payload))
        return isObject(claims) && typeof claims['jti'] === 'string' ? claims['jti'] : undefined
      } catch {
        // Another secret may have signed it.
      }
    }
    return undefined
  }

  /** Adds a signature to the id, so that {@link Tokens.unseal} gives it back for this subject alone. The id can be read. */
  async seal(id: string, sub: string): Promise<string> {
    const signature = await crypto.subtle.sign('HMAC', await this.#signingKey(), this.#sealed(id, sub))
    return `${id}.${base64url.encode(new Uint8Array(signature))}`
  }

  /** The id that was sealed for this subject; undefined for anything else. */
  async unseal(sealed: string, sub: string): Promise<string | undefined> {
    const end = sealed.lastIndexOf('.')
    const [id, text] = [sealed.slice(0, end), sealed.slice(end + 1)]
    if (end === -1 || !/^[\w-]{43}$/.test(text)) return undefined
    const signature = new Uint8Array(base64url.decode(text))
    for (const key of await this.#imported()) {
      if (await crypto.subtle.verify('HMAC', key, signature, this.#sealed(id, sub))) return id
    }
    return undefined
  }

  /** The signed text of a token never looks like this, since it has no brackets. */
  #sealed(id: string, sub: string): Uint8Array<ArrayBuffer> {
    return new TextEncoder().encode(JSON.stringify([this.#audience, sub, id]))
  }

  async #signingKey(): Promise<CryptoKey> {
    const [key] = await this.#imported()
    if (key === undefined) throw new TypeError('there is no secret')
    return key
  }

  #imported(): Promise<readonly CryptoKey[]> {
    this.#keys ??= Promise.all(
      this.#secrets.map((secret) =>
        crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']),
      ),
    )
    return this.#keys
  }
}

/** The claims of a token whose signature is good. A later version may have signed claims that this version does not know. */
function verified(
  claims: Readonly<Record<string, unknown>>,
  now: number,
): VerifiedToken | 'expired' | 'unauthenticated' {
  const { sub, jti, iat, exp, until = exp, views, sources, types, omit, requests } = claims
  if (typeof jti !== 'string' || typeof iat !== 'number' || typeof exp !== 'number') return 'unauthenticated'
  if (typeof until !== 'number') return 'unauthenticated'
  // The claims are in seconds, with fractions. jose compares whole ones.
  const [issued = 0, expires = 0, end = 0] = [iat, exp, until].map((seconds) => Math.round(seconds * 1000))
  if (expires <= now) return 'expired'
  // Revocations are kept for as long as a grant may live.
  if (end > now + MAX_TIME_TO_LIVE + CLOCK_TOLERANCE) return 'unauthenticated'
  try {
    const grant = checkGrant({ sub, views, sources, types, omit, requests })
    return { grant, id: jti, issued, expires, until: end }
  } catch {
    return 'unauthenticated'
  }
}

/** Whether the text can be a token: three parts in Base64url, and not too long to be checked. */
function isCompact(text: string): boolean {
  return text.length <= MAX_TOKEN && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)
}

function checkLength(token: string, kind: TokenKind): void {
  const max = kind === 'token' ? MAX_TOKEN : MAX_SESSION_TOKEN
  if (token.length <= max) return
  const where = kind === 'token' ? 'the headers of a request' : 'a cookie'
  throw new ArgumentError(
    'grant',
    {
      message: `grant is too large: its ${kind} has ${token.length} characters, and ${max} fit into ${where}; name fewer views, sources and fields, or prefixes of sources`,
    },
    undefined,
  )
}

function secretsOf(secret: unknown): readonly Uint8Array<ArrayBuffer>[] {
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  if (secrets.length === 0 || secrets.length > MAX_SECRETS) {
    throw new ArgumentError('tokens.secret', `a secret, or a list of 1 to ${MAX_SECRETS}`, hidden(secret))
  }
  return secrets.map((each) => {
    const bytes = typeof each === 'string' ? new TextEncoder().encode(each) : undefined
    if (bytes === undefined || bytes.byteLength < MIN_SECRET) {
      throw new ArgumentError('tokens.secret', `at least ${MIN_SECRET} bytes of UTF-8`, hidden(each))
    }
    return bytes
  })
}
