import { parse } from 'yaml'
import { isObject } from '../../protocol/event.ts'
import type { ParsedText } from './parsed-text.ts'

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

function firstHeading(text: string): string | undefined {
  // Comments in shell listings look like headings.
  const head = text.slice(0, HEAD).replace(/^[ \t]*(`{3,}|~{3,})[\s\S]*?(?:^[ \t]*\1|$(?![\s\S]))/gm, '')
  const headings =
    /^ {0,3}#{1,6}[ \t]+(.+)$|^(\S[^\n]{0,200})\r?\n=+[ \t]*\r?$|<h[1-3][^>]*>([\s\S]{1,500}?)<\/h[1-3]>/gim
  for (const match of head.matchAll(headings)) {
    const title = plain(match[1] ?? match[2] ?? match[3] ?? '')
    if (title !== '') return title
  }
  return undefined
}

/** What an image or a link points to, in the source of a RegExp: its address, which may stand in angle brackets, or a name. */
export const TARGET = String.raw`(?:\((?:<[^<>\n]*>)?[^)]*\)|\[[^\]]*\])`
const IMAGE = new RegExp(String.raw`!\[([^\]]*)\]${TARGET}`, 'g')
const LINK = new RegExp(String.raw`\[([^\]]*)\]${TARGET}`, 'g')

/** A heading without its markup and badges. Where an image is all that there is, it stands for its description. */
function plain(markup: string): string {
  return readable(markup, '') || readable(markup, '$1')
}

function readable(markup: string, image: string): string {
  return markup
    .replace(IMAGE, image)
    .replace(/<img[^>]*?\balt="([^"]*)"[^>]*>/gi, image)
    .replace(LINK, '$1')
    .replace(/<[^>]*>/g, '')
    .replace(/[\s#]+$/, '')
    .replace(/[*`]+|(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}])/gu, '')
    .replaceAll('&nbsp;', ' ')
    .trim()
}
