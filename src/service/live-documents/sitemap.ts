import { webUrl } from './listed-url.ts'
import type { ListedUrl } from './store.ts'
import { parseXml } from './xml.ts'

/** Maximum length of a text that is kept, in characters. A URL that is longer is ignored. */
const MAX_TEXT = 4_096

/**
 * Reads a sitemap or an index of sitemaps (sitemaps.org): at most `limit` URLs, in their order, each once. Entries without a
 * usable URL are ignored.
 */
export function readSitemap(source: string, base: string, limit: number): ListedUrl[] {
  const found = new Map<string, ListedUrl>()
  let role: 'sitemap' | 'page' | undefined
  let field: string | undefined
  let texts = new Map<string, string>()
  const handler = {
    open(name: string) {
      if (name === 'url' || name === 'sitemap') {
        role = name === 'url' ? 'page' : 'sitemap'
        texts = new Map()
      }
      field = role !== undefined && (name === 'loc' || name === 'lastmod') ? name : undefined
    },
    text(text: string) {
      if (field === undefined) return
      const known = texts.get(field) ?? ''
      if (known.length <= MAX_TEXT) texts.set(field, known + text)
    },
    close(name: string) {
      field = undefined
      if (role === undefined || (name !== 'url' && name !== 'sitemap')) return
      const url = webUrl(texts.get('loc'), base)
      if (url !== undefined && !found.has(url)) {
        found.set(url, { url, role, date: texts.get('lastmod')?.trim().slice(0, 40) || undefined })
      }
      role = undefined
    },
    get isDone() {
      return found.size >= limit
    },
  }
  parseXml(source, handler)
  return [...found.values()].slice(0, limit)
}
