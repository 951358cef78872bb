import { setImmediate } from 'node:timers/promises'
import { createPlugin } from '@mdream/js'
import { streamHtmlToMarkdown } from '@mdream/js/core'
import { filterPlugin } from '@mdream/js/plugins'
import { calendarDate, oneLine } from '../corpus/document.ts'
import { readHtmlMetadata } from '../corpus/html.ts'
import { parseMarkdown } from '../corpus/markdown.ts'
import type { WebResponse } from '../web/safe-fetch.ts'
import { decodeText } from './charset.ts'

/** A page with its content. */
export interface Page {
  readonly title: string | null
  /** YYYY-MM-DD. */
  readonly publishDate: string | null
  /** Markdown. */
  readonly text: string
}

const HTML = ['text/html', 'application/xhtml+xml']
const MARKDOWN = ['text/markdown', 'text/x-markdown']

/** The media types that {@link readPage} reads. */
export const PAGE_TYPES = [...HTML, ...MARKDOWN, 'text/plain']

/** HTML is converted in parts of this length, in characters, so that a long page does not block the event loop. */
const PART_LENGTH = 8_192
/** Elements that have no content of the page. */
const SKIPPED = ['iframe', 'nav', 'noscript', 'script', 'style', 'svg', 'template', 'title']

/** Reads a page as Markdown. Rejects with the signal's reason when it aborts. */
export async function readPage(response: WebResponse, signal: AbortSignal): Promise<Page> {
  const { mediaType, headers, body, url } = response
  const isHtml = HTML.includes(mediaType)
  const source = decodeText(body, headers['content-type'] ?? '', isHtml)
  if (isHtml) {
    const { title, heading, published, end } = readHtmlMetadata(source)
    const text = await htmlToMarkdown(source.slice(0, end), url, signal)
    return page(text, title ?? heading, published)
  }
  if (!MARKDOWN.includes(mediaType)) return page(source)
  const { text, title, publishDate } = parseMarkdown(source)
  return page(text, title, publishDate)
}

function page(text: string, title?: string, published?: string): Page {
  return {
    title: oneLine(title ?? '') || null,
    publishDate: calendarDate(published) ?? null,
    text: text.replaceAll(/\r\n?/g, '\n').trim(),
  }
}

async function htmlToMarkdown(html: string, url: string, signal: AbortSignal): Promise<string> {
  const plugins = [absoluteLinks(url), filterPlugin({ exclude: SKIPPED })]
  let markdown = ''
  for await (const part of streamHtmlToMarkdown(partsOf(html, signal), { plugins })) markdown += part
  return markdown
}

function partsOf(html: string, signal: AbortSignal): ReadableStream<string> {
  let start = 0
  return new ReadableStream({
    async pull(controller) {
      await setImmediate()
      signal.throwIfAborted()
      if (start < html.length) controller.enqueue(html.slice(start, start + PART_LENGTH))
      else controller.close()
      start += PART_LENGTH
    },
  })
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
