import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { calendarDate, oneLine } from '../corpus/document.ts'
import type { CorpusDocument } from '../corpus/corpus.ts'
import type { WebResponse } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { type FeedItem, readFeed } from './feed.ts'
import type { ReadPage } from './page.ts'
import { readSitemap } from './sitemap.ts'
import type { ListedUrl } from './store.ts'
import { decodeXml, rootOf } from './xml.ts'

/** Maximum size of a sitemap or a feed after it was decompressed, in bytes. */
export const MAX_LISTING_BYTES = 10 * 2 ** 20
/** Maximum number of entries of a listing; further ones are ignored. */
const MAX_ENTRIES = 50_000
/** Maximum number of items of a feed. */
const MAX_ITEMS = 500

/** A sitemap or a feed. */
export interface Listing {
  /** URLs of the listing's own host. */
  readonly entries: readonly ListedUrl[]
  /** Items whose content is in the feed, and whose page is of another host, or that have no page. */
  readonly items: readonly ItemDocument[]
}

/**
 * The content of an item as a document. Its URL is that of the feed with a fragment: the feed itself says this. It has no query:
 * that of a feed often is the token of a subscriber, and results show the URL.
 */
interface ItemDocument {
  readonly url: string
  readonly document: CorpusDocument
}

const MAPS = new Set(['urlset', 'sitemapindex'])
const FEEDS = new Set(['rss', 'feed', 'rdf:rdf'])

const unzip = promisify(gunzip)

/** Decompresses a body that is a gzip file, such as `sitemap.xml.gz`. Rejects with a WebError when it is too large or broken. */
export async function unzipped(body: Uint8Array): Promise<Uint8Array> {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body
  try {
    return await unzip(body, { maxOutputLength: MAX_LISTING_BYTES })
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge
      ? new WebError('too_large', `The decompressed body is longer than ${MAX_LISTING_BYTES} bytes`)
      : new WebError('fetch_error', 'The compressed body is broken')
  }
}

/** Reads a sitemap or a feed, recognised by its root element; undefined for anything else. `host` is the one of its entries. */
export async function readListing(
  response: WebResponse,
  readPage: ReadPage,
  signal: AbortSignal,
): Promise<Listing | undefined> {
  const { url, headers, body } = response
  const source = decodeXml(body, headers['content-type'] ?? '')
  const root = rootOf(source)?.toLowerCase() ?? ''
  const { host } = new URL(url)
  if (MAPS.has(root)) {
    const entries = await readSitemap(source, url, MAX_ENTRIES, signal)
    return { entries: entries.filter((entry) => new URL(entry.url).host === host), items: [] }
  }
  if (!FEEDS.has(root)) return undefined
  const items = await readFeed(source, url, MAX_ITEMS, signal)
  const pages: ListedUrl[] = []
  const contents: FeedItem[] = []
  for (const item of items) {
    const { link, date } = item
    if (link !== undefined && new URL(link).host === host) pages.push({ url: link, role: 'page', date })
    else if (item.content !== '') contents.push(item)
  }
  const documents: ItemDocument[] = []
  for (const item of contents) {
    const found = await itemDocument(item, response, readPage, signal)
    if (found !== undefined) documents.push(found)
  }
  return {
    entries: [...pages, ...documents.map(({ url: itemUrl }) => ({ url: itemUrl, role: 'item' as const }))],
    items: documents,
  }
}

async function itemDocument(
  { id, link, title, date, content }: FeedItem,
  { url: feed }: WebResponse,
  readPage: ReadPage,
  signal: AbortSignal,
): Promise<ItemDocument | undefined> {
  const source = {
    url: link ?? feed,
    mediaType: 'text/html',
    contentType: 'text/html; charset=utf-8',
    body: Buffer.from(content),
  }
  const page = await readPage(source, signal).catch((error: unknown) => {
    // The other items remain.
    if (error instanceof WebError) return undefined
    throw error
  })
  if (page === undefined || page.text === '') return undefined
  const url = new URL(feed)
  url.search = ''
  url.hash = id
  return {
    url: url.href,
    document: {
      url: url.href,
      title: oneLine(title) || url.host,
      publishDate: dayOf(date),
      kind: 'page',
      text: page.text,
    },
  }
}

/** The day of a date as it is written in a feed, a sitemap or a header; null if it is none. */
export function dayOf(date: string | undefined): string | null {
  if (date === undefined) return null
  // Dates of RFC 822 have a zone.
  const time = /^\s*\d{4}/.test(date) ? Number.NaN : Date.parse(date)
  return Number.isNaN(time) ? (calendarDate(date) ?? null) : new Date(time).toISOString().slice(0, 10)
}
