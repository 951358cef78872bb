import { compile } from 'html-to-text'
import { Parser } from 'htmlparser2'
import type { ParsedText } from './document.ts'

/** Deeper nesting than this is no document, and would overflow the stack. */
const DEEPEST = 400

const heading = (level: number) => ({ selector: `h${level}`, options: { uppercase: false } })
const skipped = (selector: string) => ({ selector, format: 'skip' })

const toText = compile({
  wordwrap: false,
  limits: { maxDepth: DEEPEST },
  selectors: [
    { selector: 'a', options: { ignoreHref: true } },
    { selector: 'table', options: { uppercaseHeaderCells: false } },
    ...[1, 2, 3, 4, 5, 6].map(heading),
    ...['img', 'nav', 'script', 'style', 'noscript', 'template', 'svg'].map(skipped),
  ],
})

/** Reads HTML: its text without markup, and what its head says of title, address and date. */
export function parseHtml(source: string): ParsedText {
  const { title, heading: firstHeading, canonical, published } = readMetadata(source)
  return { text: toText(source), title: title ?? firstHeading, publishDate: published, url: canonical }
}

/** Where pages say when they were published, the most reliable first. */
const DATE_NAMES = ['article:published_time', 'datepublished', 'dc.date', 'dcterms.created', 'date']

interface Metadata {
  readonly title: string | undefined
  readonly heading: string | undefined
  readonly canonical: string | undefined
  readonly published: string | undefined
}

function readMetadata(source: string): Metadata {
  const dates = new Map<string, string>()
  const texts = new Map<string, string>()
  let canonical: string | undefined
  let open: string | undefined
  let foreign = 0
  const parser = new Parser({
    onopentag(name, attributes) {
      // A picture has a <title> of its own.
      if (name === 'svg') foreign += 1
      if (name === 'meta') {
        const key = (
          attributes['property'] ??
          attributes['name'] ??
          attributes['itemprop'] ??
          ''
        ).toLowerCase()
        const content = attributes['content']
        if (content !== undefined && DATE_NAMES.includes(key) && !dates.has(key)) dates.set(key, content)
      } else if (name === 'link' && attributes['rel']?.toLowerCase() === 'canonical') {
        canonical ??= attributes['href']
      } else if (foreign === 0 && (name === 'title' || name === 'h1') && !texts.has(name)) {
        open = name
        texts.set(name, '')
      }
    },
    ontext(text) {
      if (open !== undefined) texts.set(open, `${texts.get(open) ?? ''}${text}`)
    },
    onclosetag(name) {
      if (name === 'svg') foreign -= 1
      if (name === open) open = undefined
    },
  })
  parser.end(source)
  return {
    title: texts.get('title'),
    heading: texts.get('h1'),
    canonical,
    published: DATE_NAMES.map((name) => dates.get(name)).find((date) => date !== undefined),
  }
}
