import { basename, extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isCalendarDate } from '../../protocol/limits.ts'
import type { CorpusDocument } from './corpus.ts'
import { documentKind } from './document-kind.ts'
import { parseHtml } from './html.ts'
import { parseManifest } from './manifest.ts'
import { parseMarkdown } from './markdown.ts'
import { oneLine } from './one-line.ts'
import type { ParsedText } from './parsed-text.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** A file that may be a document. */
export interface SourceFile {
  /** Absolute path of the folder that is indexed. */
  readonly root: string
  /** Path below the root, with `/` on every platform. */
  readonly relative: string
  /** Absolute path of the file. */
  readonly path: string
  /** Time of the last modification, Unix ms. The date of a document that states none. */
  readonly modified: number
  /** Its URL on the site of its folder, if it has one. */
  readonly address?: string | undefined
}

const MAX_TITLE_LENGTH = 300

/**
 * Parses a file into a document; undefined if it is binary, not UTF-8, empty, or a manifest without content.
 *
 * Its URL is the URL that the document states; else its URL on the site of its folder; else its URL on the site whose domain
 * is the name of its first folder; else its `file:` URL.
 */
export function parseDocument(file: SourceFile, bytes: Uint8Array): CorpusDocument | undefined {
  const source = decode(bytes)
  if (source === undefined) return undefined
  const kind = documentKind(file.relative)
  const parsed = kind === 'manifest' ? parseManifest(source) : parseSource(file.relative, source)
  if (parsed === undefined) return undefined
  const text = parsed.text.trim()
  if (text === '') return undefined
  return {
    url: webUrl(parsed.url) ?? file.address ?? siteUrl(file) ?? pathToFileURL(file.path).href,
    title: titleOf(parsed.title ?? '') || basename(file.relative, extname(file.relative)),
    publishDate: calendarDate(parsed.publishDate) ?? new Date(file.modified).toISOString().slice(0, 10),
    kind,
    text,
  }
}

function decode(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function parseSource(path: string, source: string): ParsedText {
  switch (extname(path).toLowerCase()) {
    case '.html':
    case '.htm':
      return parseHtml(source)
    case '.md':
    case '.markdown':
      return parseMarkdown(source)
    default:
      return { text: source }
  }
}

/** The stated URL of a document, if it is http or https. */
function webUrl(claimed: string | undefined): string | undefined {
  if (claimed === undefined || !URL.canParse(claimed)) return undefined
  const url = new URL(claimed)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined
  url.hash = ''
  url.username = ''
  url.password = ''
  return url.href
}

/** `https://example.edu/papers/a.md` for the file `example.edu/papers/a.md`. */
function siteUrl({ root, relative }: SourceFile): string | undefined {
  const [domain = '', ...rest] = relative.split('/')
  // There, `socket.io` is a package and not a domain.
  if (rest.length === 0 || basename(root) === 'node_modules') return undefined
  if (!/^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/i.test(domain)) return undefined
  const claimed = `https://${domain}/${rest.map(encodeURIComponent).join('/')}`
  return URL.canParse(claimed) ? new URL(claimed).href : undefined
}

/** The stated date of a document, as YYYY-MM-DD. */
export function calendarDate(stated: string | undefined): string | undefined {
  const iso = /^\s*(\d{4}-\d{2}-\d{2})(?!\d)/.exec(stated ?? '')?.[1]
  if (iso !== undefined) return isCalendarDate(iso) ? iso : undefined
  // Parsed as UTC: `May 3, 2021` is a day, not an instant of the local time zone.
  const ms = Date.parse(`${stated ?? ''} UTC`)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().slice(0, 10)
}

/** A title on one line, truncated. */
export function titleOf(text: string): string {
  return cutText(oneLine(text), MAX_TITLE_LENGTH).toWellFormed()
}
