import { request } from 'undici'
import { createGuardedAgent } from '../web/guarded-agent.ts'

/** Sends webhooks over its own connections. */
export interface Poster {
  /**
   * Sends a JSON body by POST; resolves with the status as soon as it is known. Rejects on a timeout, when the connection
   * fails and after `close`. Does not follow redirects.
   */
  post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<number>
  /** Destroys all connections; pending calls reject. */
  close(): Promise<void>
}

/** Maximum size of a response body that is read to reuse the connection, in bytes. */
const BODY_LIMIT = 16_384

/**
 * Creates a poster. `timeout` is the limit of a whole attempt, in ms of real time. `isAllowed` is called with each IP address
 * before a connection to it.
 */
export function createPoster(timeout: number, isAllowed: (address: string) => boolean): Poster {
  const agent = createGuardedAgent({ isAllowed, timeout })
  return {
    async post(url, headers, body) {
      const response = await request(url, {
        method: 'POST',
        headers,
        body,
        dispatcher: agent,
        signal: AbortSignal.timeout(timeout),
      })
      // Only the status matters, so the body is not awaited.
      response.body.dump({ limit: BODY_LIMIT }).catch(() => undefined)
      return response.statusCode
    },
    close: () => agent.destroy(),
  }
}
