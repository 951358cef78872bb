import { basename, extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isCalendarDate } from '../../protocol/limits.ts'
import type { CorpusDocument } from './corpus.ts'
import { parseHtml } from './html.ts'
import { parseMarkdown } from './markdown.ts'
import type { ParsedText } from './parsed-text.ts'

/** A file that may be a document. */
export interface SourceFile {
  /** Absolute path of the folder that is indexed. */
  readonly root: string
  /** Path below the root, with `/` on every platform. */
  readonly relative: string
  /** Absolute path of the file. */
  readonly path: string
  /** When it was last written, Unix time in ms. The date of a document that states none. */
  readonly modified: number
  /** Its address on the site that its folder is published under, where one is known. */
  readonly address?: string | undefined
}

const LONGEST_TITLE = 300

/**
 * Makes a document of a file's bytes, or nothing where they are no text: binary, not UTF-8, or empty.
 *
 * Its URL is what the document says itself, else its address on the site that its folder is published under, else that
 * on the site whose domain the first folder is named after, else the file's own.
 */
export function parseDocument(file: SourceFile, bytes: Uint8Array): CorpusDocument | undefined {
  const source = decode(bytes)
  if (source === undefined) return undefined
  const parsed = parseSource(file.relative, source)
  const text = parsed.text.trim()
  if (text === '') return undefined
  return {
    url: webUrl(parsed.url) ?? file.address ?? siteUrl(file) ?? pathToFileURL(file.path).href,
    title: oneLine(parsed.title ?? '') || basename(file.relative, extname(file.relative)),
    publishDate: calendarDate(parsed.publishDate) ?? new Date(file.modified).toISOString().slice(0, 10),
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

/** The URL that a document claims, where it is one of the web. */
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
  // `socket.io` is a package there, whatever it looks like.
  if (rest.length === 0 || basename(root) === 'node_modules') return undefined
  if (!/^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/i.test(domain)) return undefined
  const claimed = `https://${domain}/${rest.map(encodeURIComponent).join('/')}`
  return URL.canParse(claimed) ? new URL(claimed).href : undefined
}

/** The date in what a document says of its own, as YYYY-MM-DD. */
function calendarDate(stated: string | undefined): string | undefined {
  const iso = /^\s*(\d{4}-\d{2}-\d{2})(?!\d)/.exec(stated ?? '')?.[1]
  if (iso !== undefined) return isCalendarDate(iso) ? iso : undefined
  // Words such as `May 3, 2021` name a day, not an instant of the local time zone.
  const ms = Date.parse(`${stated ?? ''} UTC`)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().slice(0, 10)
}

function oneLine(text: string): string {
  // oxlint-disable-next-line no-control-regex -- YAML can spell them, titles have no use for them.
  const line = text.replace(/[\s\u0000-\u001F\u007F]+/g, ' ').trim()
  return line.slice(0, LONGEST_TITLE).toWellFormed()
}
