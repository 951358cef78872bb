import { compile } from 'html-to-text'
import { Parser } from 'htmlparser2'
import type { ParsedText } from './parsed-text.ts'

/** Maximum nesting. Deeper HTML would overflow the stack, and takes the parser quadratic time. */
const MAX_DEPTH = 400

const heading = (level: number) => ({ selector: `h${level}`, options: { uppercase: false } })
const skipped = (selector: string) => ({ selector, format: 'skip' })

const toText = compile({
  wordwrap: false,
  limits: { maxDepth: MAX_DEPTH },
  selectors: [
    { selector: 'a', options: { ignoreHref: true } },
    { selector: 'table', options: { uppercaseHeaderCells: false } },
    ...[1, 2, 3, 4, 5, 6].map(heading),
    ...['img', 'nav', 'script', 'style', 'noscript', 'template', 'svg'].map(skipped),
  ],
})

/**
 * Parses HTML: its text without markup, and the title, URL and date of its head. Content after {@link MAX_DEPTH} is exceeded is
 * ignored.
 */
export function parseHtml(source: string): ParsedText {
  const { title, heading: firstHeading, canonical, published, end } = readHtmlMetadata(source)
  const text = toText(source.slice(0, end))
  return { text, title: title ?? firstHeading, publishDate: published, url: canonical }
}

/** Names of meta elements with the publication date, the most reliable first. */
const DATE_NAMES = ['article:published_time', 'datepublished', 'dc.date', 'dcterms.created', 'date']

/** The metadata in the head of an HTML document. */
export interface HtmlMetadata {
  readonly title: string | undefined
  readonly heading: string | undefined
  readonly canonical: string | undefined
  readonly published: string | undefined
  /** The directives for robots, such as `noindex`; of several elements all, joined with commas. */
  readonly robots: string | undefined
  /** The length of the source that is not nested too deeply. */
  readonly end: number
}

/** Reads the metadata of HTML. */
export function readHtmlMetadata(source: string): HtmlMetadata {
  const dates = new Map<string, string>()
  const texts = new Map<string, string>()
  let canonical: string | undefined
  let robots: string | undefined
  let open: string | undefined
  let svgDepth = 0
  let depth = 0
  let end = source.length
  const parser = new Parser({
    onopentag(name, attributes) {
      depth += 1
      if (depth > MAX_DEPTH && end === source.length) {
        end = parser.startIndex
        parser.pause()
      }
      // An SVG image has its own <title>.
      if (name === 'svg') svgDepth += 1
      if (name === 'meta') {
        const key = (
          attributes['property'] ??
          attributes['name'] ??
          attributes['itemprop'] ??
          ''
        ).toLowerCase()
        const content = attributes['content']
        if (key === 'robots' || key === 'rivulet') robots = [robots, content].filter(Boolean).join(',')
        if (content !== undefined && DATE_NAMES.includes(key) && !dates.has(key)) dates.set(key, content)
      } else if (name === 'link' && attributes['rel']?.toLowerCase() === 'canonical') {
        canonical ??= attributes['href']
      } else if (svgDepth === 0 && (name === 'title' || name === 'h1') && !texts.has(name)) {
        open = name
        texts.set(name, '')
      }
    },
    ontext(text) {
      if (open !== undefined) texts.set(open, `${texts.get(open) ?? ''}${text}`)
    },
    onclosetag(name) {
      depth -= 1
      if (name === 'svg') svgDepth -= 1
      if (name === open) open = undefined
    },
  })
  parser.write(source)
  // `end` would resume a paused parser.
  if (end === source.length) parser.end()
  return {
    title: texts.get('title'),
    heading: texts.get('h1'),
    canonical,
    published: DATE_NAMES.map((name) => dates.get(name)).find((date) => date !== undefined),
    robots,
    end,
  }
}

/** The text of the first heading of level 1 to 3 in HTML; the descriptions of its images if it has no text. */
export function htmlHeading(source: string): string | undefined {
  let open: string | undefined
  let text = ''
  let images = ''
  let found: string | undefined
  const parser = new Parser({
    onopentag(name, { alt }) {
      if (open === undefined && found === undefined && /^h[1-3]$/.test(name)) open = name
      else if (open !== undefined && name === 'img') images += ` ${alt ?? ''}`
    },
    ontext(data) {
      if (open !== undefined) text += data
    },
    onclosetag(name, isImplied) {
      if (name !== open) return
      open = undefined
      // A heading without an end tag is ignored.
      if (!isImplied) found = text.trim() || images.trim() || undefined
      text = images = ''
    },
  })
  parser.end(source)
  return found
}

/** The descriptions of the images in HTML. */
export function imageDescriptions(source: string): string {
  let images = ''
  const parser = new Parser({
    onopentag(name, { alt }) {
      if (name === 'img') images += ` ${alt ?? ''}`
    },
  })
  parser.end(source)
  return images.trim()
}
