import { LogUnsupportedError } from '../errors.ts'

/** Whether the runtime ends what a request has begun together with the request: Cloudflare Workers. */
const endsWithRequest = globalThis.navigator?.userAgent === 'Cloudflare-Workers'

/**
 * The request in whose handler something was made that goes on between requests. On Cloudflare Workers, its timers and promises end with that
 * request and nothing says so: another request would wait for ever. All requests of a Durable Object are one.
 */
export class RequestContext {
  readonly #what: string
  /** An object that the runtime refuses to another request. */
  #probe: Response | undefined

  /**
   * @param what Name of the thing for the message, such as "a gateway".
   * @throws LogUnsupportedError in a Worker outside of a request.
   */
  constructor(what: string) {
    this.#what = what
    this.#probe = this.#made()
  }

  /** @throws LogUnsupportedError in a Worker in another request. */
  check(): void {
    if (this.#probe === undefined) return
    try {
      this.#probe.clone()
    } catch (cause) {
      throw this.#error(cause)
    }
    // A clone keeps the original that it was made from.
    this.#probe = this.#made()
  }

  #made(): Response | undefined {
    try {
      return endsWithRequest ? new Response(' ') : undefined
    } catch (cause) {
      throw this.#error(cause)
    }
  }

  #error(cause: unknown): LogUnsupportedError {
    const message = `${this.#what} in a Worker ends with the request that has created it: create it in a Durable Object, whose requests share it`
    return new LogUnsupportedError(message, { cause })
  }
}
