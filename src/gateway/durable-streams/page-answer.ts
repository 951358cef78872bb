import { nextCursor } from './cursor.ts'
import { offsetOf } from './offset.ts'
import type { VisiblePage } from './visible-entries.ts'

/** The headers of all responses. The content of a response depends on the grant. */
export const HEADERS = { 'cross-origin-resource-policy': 'cross-origin', vary: 'Authorization, Cookie' }

/** The headers of a request and of its response that concern caching. */
export interface PageDetails {
  /** `Cache-Control`. Without storing, there is no tag. */
  readonly caching: 'no-store' | 'private, no-cache'
  /** `If-None-Match` of the request. Default: it has nothing. */
  readonly ifNoneMatch?: string | null
  /** The cursor in the request of a live response; null if the request had none. */
  readonly cursor?: string | null
}

/** A page as JSON: an array of entries; 304 if the client has it. */
export async function pageAnswer(
  page: VisiblePage,
  { caching, ifNoneMatch = null, cursor }: PageDetails,
): Promise<Response> {
  const body = new TextEncoder().encode(`[${page.messages.join(',')}]`)
  const tagless = { ...pageHeaders(page, caching, cursor), 'content-type': 'application/json' }
  if (caching === 'no-store') return new Response(body, { headers: tagless })
  const tag = await entityTag(body, page)
  const headers = { ...tagless, etag: tag }
  return hasTag(ifNoneMatch, tag)
    ? new Response(null, { status: 304, headers })
    : new Response(body, { headers })
}

/** The answer to a long poll without entries. */
export function emptyAnswer(page: VisiblePage, cursor: string | null): Response {
  return new Response(null, { status: 204, headers: pageHeaders(page, 'no-store', cursor) })
}

function pageHeaders(page: VisiblePage, caching: string, cursor?: string | null): Record<string, string> {
  return {
    ...HEADERS,
    'cache-control': caching,
    'stream-next-offset': offsetOf(page.position),
    ...(page.isEnd && { 'stream-up-to-date': 'true' }),
    ...(cursor !== undefined && { 'stream-cursor': nextCursor(cursor, Date.now()) }),
  }
}

/**
 * An entity tag of the content. It is not made of the offsets, as the protocol proposes: grants differ in what they make visible, and
 * `log.forget` deletes entries between two offsets.
 */
async function entityTag(body: Uint8Array<ArrayBuffer>, { position, isEnd }: VisiblePage): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', body)
  const hex = Array.from(new Uint8Array(digest, 0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('')
  return `"${hex}-${offsetOf(position)}${isEnd ? '-end' : ''}"`
}

function hasTag(ifNoneMatch: string | null, tag: string): boolean {
  return (ifNoneMatch ?? '').split(',').some((each) => each.trim().replace(/^W\//, '') === tag)
}
