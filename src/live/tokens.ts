import { isObject } from '../protocol/json.ts'
import { untilAborted } from '../protocol/until-aborted.ts'
import { LiveError } from './live-error.ts'

/** The longest token, in characters: servers refuse longer headers. */
const MAX_TOKEN = 16_384

/** The tokens of `getToken`, and the content of their payloads. */
export class Tokens {
  /** The last token, and when it ends in Unix ms; 0 if it does not say so. */
  last = ''
  lastExpires = 0
  /** Called when a token has other rights than the one before it. */
  onOtherRights = () => {}
  /** The rights of the last token, as text: its payload without times and id. Undefined before the first token, and if the token is opaque. */
  rights: string | undefined
  readonly #getToken: () => string | PromiseLike<string>

  constructor(getToken: () => string | PromiseLike<string>) {
    this.#getToken = getToken
  }

  /** A new token. Rejects when the signal aborts, even if `getToken` never settles. */
  async take(signal: AbortSignal): Promise<string> {
    const text = await untilAborted(this.#call(), signal)
    if (typeof text !== 'string' || text.length > MAX_TOKEN || !/^[\w.~+/=-]+$/.test(text)) {
      throw new LiveError('token', 'getToken returned no token')
    }
    const payload = payloadOf(text)
    const { iat: _iat, exp, jti: _jti, nbf: _nbf, ...rights } = payload ?? {}
    const before = this.rights
    this.rights = payload && JSON.stringify(rights)
    if (before !== undefined && this.rights !== before) this.onOtherRights()
    this.last = text
    this.lastExpires = typeof exp === 'number' ? exp * 1_000 : 0
    return text
  }

  async #call(): Promise<unknown> {
    try {
      return await this.#getToken()
    } catch (cause) {
      throw new LiveError('token', 'getToken has failed', { cause })
    }
  }
}

/** The payload of a signed token (RFC 7519); undefined if it is something else. The gateway verifies it, this does not. */
function payloadOf(token: string): Readonly<Record<string, unknown>> | undefined {
  try {
    // The bytes of its texts stay as they are: rights are compared, never shown.
    const payload: unknown = JSON.parse(
      atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')),
    )
    return isObject(payload) ? payload : undefined
  } catch {
    return undefined
  }
}
