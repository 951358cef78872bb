import { webUrl } from './listed-url.ts'
import type { ListedUrl } from './store.ts'

/** A line that is a URL and nothing else. */
const URL_LINE = /^[ \t]*https?:\/\/[^\s<>"]+[ \t]*$/i
const LINE = /[^\r\n]+/g

/** Whether a text is a sitemap of plain text (sitemaps.org): each line that is not empty is an http or https URL. */
export function isTextSitemap(source: string): boolean {
  let hasUrl = false
  for (const [line] of source.matchAll(LINE)) {
    if (line.trim() === '') continue
    if (!URL_LINE.test(line)) return false
    hasUrl = true
  }
  return hasUrl
}

/** Reads a sitemap of plain text: at most `limit` URLs, in their order, each once. Lines without a usable URL are ignored. */
export function readTextSitemap(source: string, limit: number): ListedUrl[] {
  const found = new Map<string, ListedUrl>()
  for (const [line] of source.matchAll(LINE)) {
    const url = webUrl(line, 'about:blank')
    if (url !== undefined) found.set(url, { url, role: 'page' })
    if (found.size >= limit) break
  }
  return [...found.values()]
}
