import { parse } from 'yaml'
import { isObject } from '../../protocol/event.ts'
import { htmlHeading } from './html.ts'
import { inlineText } from './inline-text.ts'
import type { ParsedText } from './parsed-text.ts'
import { headBlocks } from './passages.ts'

/** Reads Markdown: its text as it is, without the front matter, whose `title`, `date` and `url` are used. */
export function parseMarkdown(source: string): ParsedText {
  const { matter, text } = splitFrontMatter(source)
  return {
    text,
    title: textOf(matter['title']) ?? firstHeading(text),
    publishDate: textOf(matter['date']) ?? textOf(matter['published']),
    url: textOf(matter['url']),
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
  // What is no YAML mapping is no front matter: a text may well begin with a line across the page.
  return isObject(matter) ? { matter, text: source.slice(match[0].length) } : { matter: {}, text: source }
}

function parseYaml(source: string): unknown {
  try {
    return parse(source, { logLevel: 'error' })
  } catch {
    return undefined
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : undefined
}

/** Headings are looked for in this many characters. */
const HEAD = 20_000

/** The first heading that says something, in Markdown or in HTML. */
function firstHeading(text: string): string | undefined {
  for (const { kind, source } of headBlocks(text.slice(0, HEAD))) {
    const title = kind === 'heading' ? inlineText(source) : htmlHeading(source)
    if (title !== undefined && title !== '') return title
  }
  return undefined
}
