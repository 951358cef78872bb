import { createHash } from 'node:crypto'
import { webUrl } from './listed-url.ts'
import { parseXml } from './xml.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Maximum length of an item's content, in characters; longer content is cut. */
const MAX_CONTENT = 256 * 1_024
/** Maximum length of another field of an item, in characters. */
const MAX_FIELD = 4_096

/** An item of a feed. */
export interface FeedItem {
  /** Equal for the same item of later versions of the feed: a hash of its id, link or title. */
  readonly id: string
  /** URL of the item's page. */
  readonly link: string | undefined
  readonly title: string
  /** The date as it is written. */
  readonly date: string | undefined
  /** HTML; empty if the feed has none. */
  readonly content: string
}

/** The elements of RSS 2.0, RSS 1.0 (RDF) and Atom, by the field that they are; the first of an item counts. */
const FIELDS: Readonly<Record<string, string>> = {
  title: 'title',
  link: 'link',
  guid: 'id',
  id: 'id',
  pubDate: 'date',
  'dc:date': 'date',
  published: 'date',
  updated: 'updated',
  description: 'summary',
  summary: 'summary',
  'content:encoded': 'content',
  content: 'content',
}

/**
 * Reads RSS 2.0, RSS 1.0 or Atom: at most `limit` items, each once. Items without a link, an id and a title are ignored. A guid
 * that is a URL is the link of an item that has none.
 */
export function readFeed(source: string, base: string, limit: number): FeedItem[] {
  const items = new Map<string, FeedItem>()
  /** The fields of the item that is read; undefined outside of an item. */
  let fields: Map<string, string> | undefined
  /** The open elements within the item. */
  let path: string[] = []

  const append = (name: string, text: string) => {
    const known = fields?.get(name) ?? ''
    const room = (name === 'content' || name === 'summary' ? MAX_CONTENT : MAX_FIELD) - known.length
    if (room > 0) fields?.set(name, known + cutText(text, room))
  }
  /** The field that is read, unless an earlier element of the item has it. */
  let field: string | undefined

  const handler = {
    open(name: string, attributes: Readonly<Record<string, string>>) {
      if (fields === undefined) {
        if (name !== 'item' && name !== 'entry') return
        fields = new Map()
        path = []
        const about = attributes['rdf:about']
        if (about !== undefined) fields.set('id', about)
        return
      }
      path.push(name)
      if (path.length > 1) {
        // Atom's XHTML, without attributes.
        if (field === 'content' || field === 'summary') append(field, `<${name}>`)
        return
      }
      const known = FIELDS[name]
      field = known === undefined || (fields.has(known) && known !== 'link') ? undefined : known
      if (name !== 'link') return
      const { href, rel = 'alternate' } = attributes
      if (href !== undefined && rel === 'alternate' && !fields.has('link')) fields.set('link', href)
      // RSS has the link as a text.
      if (href !== undefined || fields.has('link')) field = undefined
    },
    text(text: string) {
      if (field === undefined) return
      append(field, path.length > 1 ? escaped(text) : text)
    },
    close(name: string) {
      if (fields === undefined) return
      if (path.length === 0) {
        const item = toItem(fields, base)
        if (item !== undefined && !items.has(item.id)) items.set(item.id, item)
        fields = undefined
        return
      }
      path.pop()
      if (path.length === 0) field = undefined
      else if (field === 'content' || field === 'summary') append(field, `</${name}>`)
    },
    get isDone() {
      return items.size >= limit
    },
  }
  parseXml(source, handler)
  return [...items.values()].slice(0, limit)
}

function toItem(fields: ReadonlyMap<string, string>, base: string): FeedItem | undefined {
  const text = (name: string) => fields.get(name)?.trim() || undefined
  const [id, title] = [text('id'), text('title')]
  const permalink = id !== undefined && /^https?:/i.test(id) ? id : undefined
  const link = webUrl(text('link') ?? permalink, base)
  const key = id ?? link ?? title
  if (key === undefined) return undefined
  return {
    id: createHash('sha256').update(key).digest('hex').slice(0, 24),
    link,
    title: title ?? '',
    date: text('updated') ?? text('date'),
    content: text('content') ?? text('summary') ?? '',
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
