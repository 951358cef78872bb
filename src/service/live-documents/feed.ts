import { createHash } from 'node:crypto'
import { webUrl } from './listed-url.ts'
import { parseXml, type XmlHandler } from './xml.ts'
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
  const reader = new FeedReader(base, limit)
  parseXml(source, reader)
  return [...reader.items.values()].slice(0, limit)
}

class FeedReader implements XmlHandler {
  readonly #base: string
  readonly #limit: number
  readonly items = new Map<string, FeedItem>()
  /** The fields of the item that is read; undefined outside of an item. */
  #fields: Map<string, string> | undefined
  /** The open elements within the item. */
  #path: string[] = []
  /** The field that is read, unless an earlier element of the item has it. */
  #field: string | undefined

  constructor(base: string, limit: number) {
    this.#base = base
    this.#limit = limit
  }

  get isDone(): boolean {
    return this.items.size >= this.#limit
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (this.#fields !== undefined) this.#openWithin(this.#fields, name, attributes)
    else if (name === 'item' || name === 'entry') {
      this.#fields = new Map()
      this.#path = []
      const about = attributes['rdf:about']
      if (about !== undefined) this.#fields.set('id', about)
    }
  }

  #openWithin(fields: Map<string, string>, name: string, attributes: Readonly<Record<string, string>>): void {
    this.#path.push(name)
    if (this.#path.length > 1) {
      // Atom's XHTML, without attributes.
      this.#appendMarkup(`<${name}>`)
      return
    }
    const known = FIELDS[name]
    this.#field = known === undefined || (fields.has(known) && known !== 'link') ? undefined : known
    if (name !== 'link') return
    const { href, rel = 'alternate' } = attributes
    if (href !== undefined && rel === 'alternate' && !fields.has('link')) fields.set('link', href)
    // RSS has the link as a text.
    if (href !== undefined || fields.has('link')) this.#field = undefined
  }

  text(text: string): void {
    if (this.#field !== undefined) this.#append(this.#field, this.#path.length > 1 ? escaped(text) : text)
  }

  close(name: string): void {
    if (this.#fields === undefined) return
    if (this.#path.length === 0) {
      const item = toItem(this.#fields, this.#base)
      if (item !== undefined && !this.items.has(item.id)) this.items.set(item.id, item)
      this.#fields = undefined
      return
    }
    this.#path.pop()
    if (this.#path.length === 0) this.#field = undefined
    else this.#appendMarkup(`</${name}>`)
  }

  #appendMarkup(tag: string): void {
    if (this.#field === 'content' || this.#field === 'summary') this.#append(this.#field, tag)
  }

  #append(field: string, text: string): void {
    const known = this.#fields?.get(field) ?? ''
    const room = (field === 'content' || field === 'summary' ? MAX_CONTENT : MAX_FIELD) - known.length
    if (room > 0) this.#fields?.set(field, known + cutText(text, room))
  }
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
