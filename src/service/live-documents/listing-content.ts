import { WebError, type WebErrorKind } from '../web/web-error.ts'
import { type FeedItem, readFeed } from './feed.ts'
import { readSitemap } from './sitemap.ts'
import type { ListedUrl } from './store.ts'
import { isTextSitemap, readTextSitemap } from './text-sitemap.ts'
import { decodeXml, rootOf } from './xml.ts'

/** Maximum number of entries of a sitemap; further ones are ignored. */
const MAX_ENTRIES = 50_000
/** Maximum number of items of a feed; further ones are ignored. */
const MAX_ITEMS = 500

const MAPS = new Set(['urlset', 'sitemapindex'])
const FEEDS = new Set(['rss', 'feed', 'rdf:rdf'])

/** A response that may be a sitemap or a feed, decompressed. */
export interface ListingSource {
  /** The base URL of its links. */
  readonly url: string
  /** Media type in lower case, without parameters. */
  readonly mediaType: string
  /** The header of the response; empty if it had none. */
  readonly contentType: string
  readonly body: Uint8Array
}

/** The content of a sitemap or a feed. */
export type ListingContent =
  /** A sitemap: URLs of its own host. */
  | { readonly type: 'sitemap'; readonly entries: readonly ListedUrl[] }
  | { readonly type: 'feed'; readonly items: readonly FeedItem[] }

/** Why a sitemap or a feed is refused. A result, since an error of the isolated thread has no kind. */
export interface ListingRefusal {
  readonly type: 'refused'
  readonly kind: WebErrorKind
  readonly message: string
}

/**
 * Reads a sitemap or a feed, recognised by its root element, or a sitemap of plain text; undefined for anything else. This may take
 * long for hostile XML: the isolated thread executes it.
 */
export function readListingContent({
  url,
  mediaType,
  contentType,
  body,
}: ListingSource): ListingContent | ListingRefusal | undefined {
  const source = decodeXml(body, contentType)
  try {
    if (mediaType !== 'text/html' && isTextSitemap(source)) {
      return sitemapOf(url, readTextSitemap(source, MAX_ENTRIES))
    }
    const root = rootOf(source)?.toLowerCase() ?? ''
    if (MAPS.has(root)) return sitemapOf(url, readSitemap(source, url, MAX_ENTRIES))
    return FEEDS.has(root) ? { type: 'feed', items: readFeed(source, url, MAX_ITEMS) } : undefined
  } catch (error) {
    if (!(error instanceof WebError)) throw error
    return { type: 'refused', kind: error.kind, message: error.message }
  }
}

function sitemapOf(url: string, entries: readonly ListedUrl[]): ListingContent {
  const { host } = new URL(url)
  return { type: 'sitemap', entries: entries.filter((entry) => new URL(entry.url).host === host) }
}
