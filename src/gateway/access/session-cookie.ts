import { ArgumentError } from '../../protocol/argument-error.ts'
import { isLoopback } from '../../protocol/loopback.ts'

/** Maximum number of cookies of one name that are read, so that a request without a token costs little. */
const MAX_COOKIES = 20

/** The cookie of a session, which `EventSource` sends: for the gateway's own path, and not to scripts or with requests of other sites. */
export class SessionCookie {
  readonly #path: string

  /**
   * @param path The path at which the gateway is mounted.
   * @throws ArgumentError for a path that cannot be in a cookie.
   */
  constructor(path: string) {
    if (!/^(?:\/[\w.~%-]+)*\/?$/.test(path)) throw new ArgumentError('path', 'a path such as /live', path)
    this.#path = path === '' ? '/' : path
  }

  /**
   * The tokens of a request's cookies of this name, of which a browser may send several: one for each path, and one for each domain, such as those that
   * another application of the domain has set.
   */
  tokensOf(request: Request): readonly string[] {
    const name = `${nameFor(request)}=`
    const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
    const tokens = pairs.filter((pair) => pair.startsWith(name)).map((pair) => pair.slice(name.length))
    return tokens.slice(0, MAX_COOKIES)
  }

  /** The value of `Set-Cookie`. */
  set(request: Request, token: string, maxAge: number): string {
    const secure = isSecure(request) ? '; Secure' : ''
    return `${nameFor(request)}=${token}; Path=${this.#path}; Max-Age=${Math.max(1, Math.floor(maxAge / 1000))}; HttpOnly; SameSite=Strict${secure}`
  }
}

/** A browser accepts the prefix only with `Secure`, so that no page over plain http sets a cookie of this name. */
function nameFor(request: Request): string {
  return isSecure(request) ? '__Secure-rivulet' : 'rivulet'
}

/**
 * Whether the browser speaks https. A proxy may speak https while the gateway behind it gets plain http, so every host except this machine
 * counts as https.
 */
function isSecure(request: Request): boolean {
  const { protocol, hostname } = new URL(request.url)
  return protocol === 'https:' || !isLoopback(hostname)
}
