/**
 * A text as it is stored. UTF-8 has no lone surrogates, and SQLite's JSON functions end a text at a null character: such a text
 * is stored as a JSON string, which escapes them. Different texts are stored as different ones.
 */
export function storedText(text: string): string {
  return text.isWellFormed() && !text.startsWith('"') && !text.includes('\0') ? text : JSON.stringify(text)
}

/** The text that {@link storedText} was given. */
export function originalText(stored: string): string {
  return stored.startsWith('"') ? String(JSON.parse(stored)) : stored
}

/** The order of texts that are stored: by code point. */
export function compareStored(first: string, second: string): number {
  const length = Math.min(first.length, second.length)
  let at = 0
  while (at < length && first.charCodeAt(at) === second.charCodeAt(at)) at++
  if (at === length) return first.length - second.length
  return codeOrder(first.charCodeAt(at)) - codeOrder(second.charCodeAt(at))
}

/** In UTF-16, a character beyond U+FFFF begins with a smaller number than those from U+E000. */
function codeOrder(code: number): number {
  if (code < 0xd800) return code
  return code < 0xe000 ? code + 0x2000 : code - 0x800
}
