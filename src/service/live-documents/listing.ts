import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { calendarDate, titleOf } from '../corpus/document.ts'
import type { CorpusDocument } from '../corpus/corpus.ts'
import { WebError } from '../web/web-error.ts'
import type { FeedItem } from './feed.ts'
import type { ListingSource } from './listing-content.ts'
import type { Readers } from './readers.ts'
import type { ListedUrl } from './store.ts'

/** Maximum size of a sitemap or a feed after it was decompressed, in bytes. */
export const MAX_LISTING_BYTES = 10 * 2 ** 20
/** How long the items of a feed may take, in ms of real time. */
const MAX_ITEMS_TIME = 30_000

/** A sitemap or a feed. */
export interface Listing {
  /** URLs of the listing's own host. */
  readonly entries: readonly ListedUrl[]
  /** Items whose content is in the feed, and whose page is of another host, or that have no page. */
  readonly items: readonly ItemDocument[]
  /** Number of items whose content could not be read. Their earlier copies stay. */
  readonly unread: number
  /** Whether there was no time for some of them, so that a later attempt may read them. */
  readonly isCut: boolean
}

/**
 * The content of an item as a document. Its URL is the feed's URL with a fragment: the feed itself states the item. It has no query: the
 * query of a feed is often the token of a subscriber, and results show the URL.
 */
interface ItemDocument {
  readonly url: string
  readonly document: CorpusDocument
}

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

/**
 * Reads a sitemap or a feed; undefined for anything else. `now` is real time, Unix time in ms. Rejects as the {@link Readers} do;
 * an item that cannot be read is left out.
 */
export async function readListing(
  source: ListingSource,
  readers: Readers,
  now: () => number,
  signal: AbortSignal,
): Promise<Listing | undefined> {
  const content = await readers.readListing(source, signal)
  if (content === undefined) return undefined
  if (content.type === 'sitemap') return { entries: content.entries, items: [], unread: 0, isCut: false }
  const { host } = new URL(source.url)
  const pages: ListedUrl[] = []
  const contents: FeedItem[] = []
  for (const item of content.items) {
    const { link, date } = item
    if (link !== undefined && new URL(link).host === host) pages.push({ url: link, role: 'page', date })
    else if (item.content !== '') contents.push(item)
  }
  const documents: ItemDocument[] = []
  let read = 0
  let unread = 0
  const latest = now() + MAX_ITEMS_TIME
  // One after another, so that the pages of others wait for one item at the most.
  for (const item of contents) {
    if (now() >= latest) break
    try {
      // oxlint-disable-next-line no-await-in-loop -- as above
      documents.push(...(await itemDocuments(item, source.url, readers, signal)))
    } catch (error) {
      if (!(error instanceof WebError)) throw error
      unread += 1
    }
    read += 1
  }
  return {
    entries: [...pages, ...documents.map(({ url }) => ({ url, role: 'item' as const }))],
    items: documents,
    unread: unread + contents.length - read,
    isCut: read < contents.length,
  }
}

/** The content of an item, unless it has no text. */
async function itemDocuments(
  { id, link, title, date, content }: FeedItem,
  feed: string,
  { readPage }: Readers,
  signal: AbortSignal,
): Promise<ItemDocument[]> {
  const page = await readPage(
    {
      url: link ?? feed,
      mediaType: 'text/html',
      contentType: 'text/html; charset=utf-8',
      body: Buffer.from(content),
    },
    signal,
  )
  if (page.text === '') return []
  const url = new URL(feed)
  url.search = ''
  url.hash = id
  return [
    {
      url: url.href,
      document: {
        url: url.href,
        title: titleOf(title) || url.host,
        publishDate: dayOf(date),
        kind: 'page',
        text: page.text,
      },
    },
  ]
}

/** The day of a date as it is written in a feed, a sitemap or a header; null if the text is no date. */
export function dayOf(date: string | undefined): string | null {
  if (date === undefined) return null
  // Dates of RFC 822 have a zone.
  const time = /^\s*\d{4}/.test(date) ? Number.NaN : Date.parse(date)
  return Number.isNaN(time) ? (calendarDate(date) ?? null) : new Date(time).toISOString().slice(0, 10)
}
