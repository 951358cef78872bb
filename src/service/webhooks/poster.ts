import { Agent, request } from 'undici'

/** Sends webhooks over connections of its own. */
export interface Poster {
  /**
   * One POST of a JSON body; resolves with the status as soon as it is known. Rejects when there is none within the
   * time-out, when the connection fails and when the signal aborts. Redirects are not followed.
   */
  post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<number>
  /** Ends every connection; what is under way rejects. */
  close(): Promise<void>
}

/** Bytes of an answer's body that are read so that the connection can be used again; more than that ends it. */
const BODY_LIMIT = 16_384

/** Posts through undici. `timeout` is in ms of real time and counts for the whole attempt. */
export function createPoster(timeout: number): Poster {
  const agent = new Agent({ connect: { timeout } })
  return {
    async post(url, headers, body) {
      const response = await request(url, {
        method: 'POST',
        headers,
        body,
        dispatcher: agent,
        signal: AbortSignal.timeout(timeout),
      })
      // The status is all that counts: what becomes of the body, and how slowly, does not.
      response.body.dump({ limit: BODY_LIMIT }).catch(() => undefined)
      return response.statusCode
    },
    close: () => agent.destroy(),
  }
}
