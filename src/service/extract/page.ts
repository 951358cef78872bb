import { createPlugin } from '@mdream/js'
import { htmlToMarkdown } from '@mdream/js/core'
import { filterPlugin } from '@mdream/js/plugins'
import { calendarDate, titleOf } from '../corpus/document.ts'
import { readHtmlMetadata } from '../corpus/html.ts'
import { parseMarkdown } from '../corpus/markdown.ts'
import { decodeText } from './charset.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** A page with its content. */
export interface Page {
  readonly title: string | null
  /** YYYY-MM-DD. */
  readonly publishDate: string | null
  /** Markdown. */
  readonly text: string
  /** The canonical URL that the page states, as it is written. */
  readonly canonical?: string | undefined
  /** The directives for robots that the page states, such as `noindex`. */
  readonly robots?: string | undefined
}

const HTML = ['text/html', 'application/xhtml+xml']
const MARKDOWN = ['text/markdown', 'text/x-markdown']

/** The media types that {@link readPage} reads. */
export const PAGE_TYPES = [...HTML, ...MARKDOWN, 'text/plain']

/** Maximum length of a page's Markdown, in characters: the length for the largest page. Relative links and nested lists lengthen it. */
const MAX_CHARACTERS = 4 * 2 ** 20

/** Elements that have no content of the page. */
const SKIPPED = ['iframe', 'nav', 'noscript', 'script', 'style', 'svg', 'template', 'title']

/** A page as it was downloaded. */
export interface PageSource {
  /** One of {@link PAGE_TYPES}. */
  readonly mediaType: string
  /** The header of the response; empty if it had none. */
  readonly contentType: string
  readonly body: Uint8Array
  /** The base URL of its links. */
  readonly url: string
}

/** Reads a page as Markdown. The time for hostile HTML has no bound: the isolated thread executes it. */
export function readPage({ mediaType, contentType, body, url }: PageSource): Page {
  const isHtml = HTML.includes(mediaType)
  const source = decodeText(body, contentType, isHtml)
  if (isHtml) {
    const { title, heading, published, canonical, robots, end } = readHtmlMetadata(source)
    const plugins = [absoluteLinks(url), filterPlugin({ exclude: SKIPPED })]
    const text = htmlToMarkdown(source.slice(0, end), { plugins })
    return { ...page(text, title ?? heading, published), canonical, robots }
  }
  if (!MARKDOWN.includes(mediaType)) return page(source)
  const { text, title, publishDate } = parseMarkdown(source)
  return page(text, title, publishDate)
}

function page(text: string, title?: string, published?: string): Page {
  return {
    title: titleOf(title ?? '') || null,
    publishDate: calendarDate(published) ?? null,
    text: cutText(text, MAX_CHARACTERS).replaceAll(/\r\n?/g, '\n').trim(),
  }
}

/** Resolves the links of a page, and removes those that are no addresses, such as `javascript:`. */
function absoluteLinks(base: string) {
  return createPlugin({
    onNodeEnter({ attributes }) {
      for (const name of ['href', 'src']) {
        const link = attributes[name]
        if (link === undefined) continue
        const target = URL.canParse(link, base) ? new URL(link, base) : undefined
        attributes[name] =
          target !== undefined && /^(https?|mailto):$/.test(target.protocol) ? target.href : ''
      }
    },
  })
}
