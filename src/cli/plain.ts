import { stripVTControlCharacters } from 'node:util'

// oxlint-disable-next-line no-control-regex -- A terminal would interpret them.
const SPACE_AND_CONTROL = /[\s\u0000-\u001F\u007F-\u009F]+/g

// oxlint-disable-next-line no-control-regex -- The same, without line feeds and tabs.
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]+/g

/** Untrusted text with its lines, without control characters and escape sequences. */
export function plainLines(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/\r\n?/g, '\n').replace(CONTROL, ' ')
}

/** Untrusted text on one line of at most `length` characters, without control characters and escape sequences. */
export function oneLine(text: string, length: number): string {
  const line = stripVTControlCharacters(text).replace(SPACE_AND_CONTROL, ' ').trim()
  if (line.length <= length) return line
  return `${line
    .slice(0, Math.max(0, length - 1))
    .toWellFormed()
    .trimEnd()}…`
}

// These expressions run on untrusted text, so they are linear: each repetition is bounded, or ends at the next delimiter.
// A Markdown parser would be quadratic on such text, and take as long to load as the rest of the command.

/** The target of an image or a link: an address, with balanced or angle brackets, or a reference. */
const TARGET = String.raw`(?:\((?:<[^<>\n]*>)?[^()]{0,2048}(?:\([^()]{0,256}\)[^()]{0,256}){0,8}\)|\[[^\[\]]*\])`
const IMAGE = new RegExp(String.raw`!\[[^\[\]]*\]${TARGET}`, 'g')
const LINK = new RegExp(String.raw`\[([^\[\]]*)\]${TARGET}`, 'g')
const TAG = /<[a-z/!][^<>]*>/gi

/** Markdown as plain text, without badges, link targets and emphasis. */
export function withoutMarkup(markdown: string): string {
  return markdown
    .replace(IMAGE, '')
    .replace(LINK, '$1')
    .replace(TAG, '')
    .replace(/^[ \t]*(?:#{1,6}|>|```\w*)[ \t]*/gm, '')
    .replace(/\*\*|__|`/g, '')
}
