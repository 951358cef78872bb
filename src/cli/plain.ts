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

/*
 * The expressions below read what a service sends, which may be hostile. So their time is in proportion to the text: what
 * may repeat ends at the next mark, or at the longest that an address may be. A parser of Markdown takes time that grows
 * with the square of such texts, and would load as long as all else that the command does.
 */

/** What an image or a link points to: its address, which may have pairs of brackets in it or stand in angle brackets, or a name. */
const TARGET = String.raw`(?:\((?:<[^<>\n]*>)?[^()]{0,2048}(?:\([^()]{0,256}\)[^()]{0,256}){0,8}\)|\[[^\[\]]*\])`
const IMAGE = new RegExp(String.raw`!\[[^\[\]]*\]${TARGET}`, 'g')
const LINK = new RegExp(String.raw`\[([^\[\]]*)\]${TARGET}`, 'g')
const TAG = /<[a-z/!][^<>]*>/gi

/** Markdown as it reads without its marks: no badges, no link targets, no emphasis. */
export function withoutMarks(markdown: string): string {
  return markdown
    .replace(IMAGE, '')
    .replace(LINK, '$1')
    .replace(TAG, '')
    .replace(/^[ \t]*(?:#{1,6}|>|```\w*)[ \t]*/gm, '')
    .replace(/\*\*|__|`/g, '')
}
