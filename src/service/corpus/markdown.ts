import { parse } from 'yaml'
import { isObject } from '../../protocol/json.ts'
import { blocksOf } from './blocks.ts'
import { htmlHeading } from './html.ts'
import { inlineText } from './inline.ts'
import type { ParsedText } from './parsed-text.ts'

/** Parses Markdown: its text without the front matter, and the `title`, `date` and `url` of the front matter. */
export function parseMarkdown(source: string): ParsedText {
  const { matter, text } = splitFrontMatter(source)
  return {
    text,
    title: scalarText(matter['title']) ?? firstHeading(text),
    publishDate: scalarText(matter['date']) ?? scalarText(matter['published']),
    url: scalarText(matter['url']),
  }
}

interface FrontMatter {
  readonly matter: Readonly<Record<string, unknown>>
  readonly text: string
}

function splitFrontMatter(source: string): FrontMatter {
  const match = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(source)
  if (match === null) return { matter: {}, text: source }
  const matter = parseYaml(match[1] ?? '')
  // Front matter is a YAML mapping. Otherwise the text begins with a thematic break.
  return isObject(matter) ? { matter, text: source.slice(match[0].length) } : { matter: {}, text: source }
}

function parseYaml(source: string): unknown {
  try {
    return parse(source, { logLevel: 'error' })
  } catch {
    return undefined
  }
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : undefined
}

/** The first heading is searched in the first prefix of these lengths, and then in the longer one. In characters. */
const PREFIXES = [2_000, 20_000]
/** Number of characters that are read after the blank line that ends the block of an HTML heading. */
const MAX_HTML_HEADING = 500

function firstHeading(text: string): string | undefined {
  for (const length of PREFIXES) {
    const heading = headingIn(text, length)
    if (heading !== undefined || text.length <= length) return heading
  }
  return undefined
}

/** The first heading with text, in Markdown or in HTML, that begins before `limit`. */
function headingIn(text: string, limit: number): string | undefined {
  for (const { kind, content, start, end } of blocksOf(text.slice(0, limit))) {
    let title: string | undefined
    if (kind === 'heading') title = inlineText(content)
    else if (kind === 'html' && /<h[1-3][\s>]/i.test(content)) {
      title = htmlHeading(text.slice(start, end + MAX_HTML_HEADING))
    }
    if (title !== undefined && title !== '') return title
  }
  return undefined
}
