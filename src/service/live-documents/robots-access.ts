import type { Clock } from '../clock.ts'
import { decodeText } from '../extract/charset.ts'
import type { Web } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { ALLOW_ALL, MAX_ROBOTS_BYTES, parseRobots, type RobotsRules } from './robots.ts'
import type { SourceHeaders } from './source-headers.ts'

/** How long the rules of a site are used, in ms of real time. RFC 9309 allows a day. */
const MAX_AGE = 3_600_000
/** How long old rules are used before the next attempt to read new ones, in ms of real time. */
const RETRY = 600_000
/** How long old rules are used while new ones cannot be read, in ms of real time. */
const MAX_STALE = 24 * MAX_AGE
/** A longer robots.txt is not downloaded; of one up to this size, the first 500 KiB are parsed. In bytes. */
const MAX_DOWNLOAD = 4 * MAX_ROBOTS_BYTES
/** Maximum number of sites whose rules are kept. */
const MAX_SITES = 1_000
/** A robots.txt with more redirects, to any hosts, is as one that does not exist (RFC 9309, 2.3.1.2). */
const MAX_REDIRECTS = 5
/** Timeout of a request, in ms of real time. */
const TIMEOUT = 10_000

/** The rules of sites. */
export interface Robots {
  /**
   * The rules for a URL, at most an hour old. Rejects with a {@link WebError} when the site cannot say them: with a status of
   * 5xx or 429, or no response. Without a robots.txt (4xx, or too many redirects), everything is allowed.
   */
  rulesFor(url: URL, signal: AbortSignal): Promise<RobotsRules>
  /** The delay between two requests that the site asks for, in ms; undefined if none is known. */
  crawlDelay(url: URL): number | undefined
}

interface SiteAccess {
  readonly rules: RobotsRules
  /** When the rules were read, Unix ms. */
  readonly readAt: number
  readonly nextAt: number
}

/** Creates the access to the robots.txt of sites. `clock` is the clock of connections. */
export function createRobots(web: Web, clock: Clock, headers: SourceHeaders): Robots {
  const sites = new Map<string, SiteAccess>()

  async function read(origin: string, signal: AbortSignal): Promise<RobotsRules> {
    const request = {
      headers: headers.get(origin) ?? {},
      timeout: TIMEOUT,
      maxBytes: MAX_DOWNLOAD,
      maxRedirects: MAX_REDIRECTS,
      signal,
    }
    const response = await web.fetch(`${origin}/robots.txt`, request).catch((error: unknown) => {
      if (error instanceof WebError && error.kind === 'too_many_redirects') return undefined
      throw error
    })
    if (response === undefined) return ALLOW_ALL
    const { status, body } = response
    if (status >= 500 || status === 429) {
      throw new WebError('fetch_error', `The robots.txt responded with ${status}`, { status })
    }
    if (status < 200 || status > 299) return ALLOW_ALL
    return parseRobots(decodeText(body.subarray(0, MAX_ROBOTS_BYTES), 'text/plain; charset=utf-8', false))
  }

  return {
    async rulesFor({ origin }, signal) {
      const known = sites.get(origin)
      const now = clock.now()
      if (known !== undefined && now < known.nextAt) return known.rules
      try {
        const rules = await read(origin, signal)
        sites.delete(origin)
        sites.set(origin, { rules, readAt: now, nextAt: now + MAX_AGE })
        const [oldest] = sites.keys()
        if (oldest !== undefined && sites.size > MAX_SITES) sites.delete(oldest)
        return rules
      } catch (error) {
        signal.throwIfAborted()
        if (known === undefined || now > known.readAt + MAX_STALE) throw error
        sites.set(origin, { ...known, nextAt: now + RETRY })
        return known.rules
      }
    },
    crawlDelay({ origin }) {
      const delay = sites.get(origin)?.rules.crawlDelay
      return delay === undefined ? undefined : delay * 1_000
    },
  }
}
