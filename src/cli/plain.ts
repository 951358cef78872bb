import { stripVTControlCharacters } from 'node:util'

// oxlint-disable-next-line no-control-regex -- A terminal would obey them.
const SPACE_AND_CONTROL = /[\s\u0000-\u001F\u007F-\u009F]+/g

/**
 * Text of a document or a service on one line of at most `length` characters, without the control characters and escape
 * sequences that a terminal would obey.
 */
export function oneLine(text: string, length: number): string {
  const line = stripVTControlCharacters(text).replace(SPACE_AND_CONTROL, ' ').trim()
  if (line.length <= length) return line
  return `${line
    .slice(0, Math.max(0, length - 1))
    .toWellFormed()
    .trimEnd()}…`
}

/** What an image or a link points to, in the source of a RegExp: its address, which may stand in angle brackets, or a name. */
const TARGET = String.raw`(?:\((?:<[^<>\n]*>)?[^)]*\)|\[[^\]]*\])`
const IMAGE = new RegExp(String.raw`!\[[^\]]*\]${TARGET}`, 'g')
const LINK = new RegExp(String.raw`\[([^\]]*)\]${TARGET}`, 'g')

/** Markdown as it reads without its marks: no badges, no link targets, no emphasis. */
export function withoutMarks(markdown: string): string {
  return markdown
    .replace(IMAGE, '')
    .replace(LINK, '$1')
    .replace(/<[^>]+>/g, '')
    .replace(/^\s*(?:#{1,6}|>|```\w*)\s*/gm, '')
    .replace(/\*\*|__|`/g, '')
}
