import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/**
 * The key of a dashboard, which is once in its address, and the cookie that replaces it from then on. The cookie does not show the
 * key. Its name contains the port, since the ports of one host share cookies.
 */
export class DashboardKey {
  readonly #digest: Buffer
  readonly #cookie: string

  constructor(key: string) {
    this.#digest = digestOf(key)
    this.#cookie = createHmac('sha256', key).update('cookie of the dashboard').digest('base64url')
  }

  fits(key: string): boolean {
    return timingSafeEqual(digestOf(key), this.#digest)
  }

  /** The header that sets the cookie. */
  setCookie(url: URL): string {
    const secure = url.protocol === 'https:' ? '; Secure' : ''
    return `${nameAt(url)}=${this.#cookie}; HttpOnly; SameSite=Strict; Path=/${secure}`
  }

  /** Whether the request has the cookie. */
  isIn(request: Request): boolean {
    const name = nameAt(new URL(request.url))
    const cookies = request.headers.get('cookie')?.split(';') ?? []
    return cookies.some((cookie) => {
      const [given, value = ''] = cookie.trim().split('=', 2)
      return given === name && timingSafeEqual(digestOf(value), digestOf(this.#cookie))
    })
  }
}

function nameAt({ port, protocol }: URL): string {
  return `rivulet-dashboard-${port === '' ? protocol.slice(0, -1) : port}`
}

/** Digests have one length, as the comparison needs. */
function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
