/**
 * The characters that a terminal interprets, that end a line, or that show a text in another order: controls, separators, and marks of
 * direction.
 */
const INTERPRETED =
  // oxlint-disable-next-line no-control-regex -- A terminal would interpret them.
  /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g

/**
 * A text for a terminal, with its lines and tabs: other characters that a terminal interprets, or shows in another order, are written as
 * JSON escapes, such as `\\u202e`.
 */
export function plain(text: string): string {
  return text
    .replaceAll(/\r\n?/g, '\n')
    .replace(INTERPRETED, (each) => (each === '\n' || each === '\t' ? each : escapeOf(each)))
}

/** The same on one line of at most `length` characters. */
export function oneLine(text: string, length: number): string {
  const line = plain(text.replaceAll(/\s+/g, ' ').trim())
  if (line.length <= length) return line
  return `${line
    .slice(0, Math.max(0, length - 1))
    .toWellFormed()
    .trimEnd()}…`
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
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
