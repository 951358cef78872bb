/** The longest id of the service, in characters. */
const MAX_ID = 512

/** Description of the texts that {@link isId} accepts, for errors. */
export const ID_EXPECTED = `an id, a non-empty string of at most ${MAX_ID} characters`

/**
 * Whether the value can be an id of the service: well-formed text of 1 to 512 characters, without control characters, and
 * not a dot segment. Anything else must not become part of a path.
 */
export function isId(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_ID) return false
  return isPlainText(value) || isUnusualId(value)
}

/** The id, encoded as a segment of a path. */
export function segment(id: string): string {
  return isPlainText(id) ? id : encodeURIComponent(id.toWellFormed())
}

function isUnusualId(text: string): boolean {
  // A dot segment survives encodeURIComponent and would lead to another path.
  // oxlint-disable-next-line no-control-regex
  return text.isWellFormed() && /^(?!\.\.?$)[^\u0000-\u001F\u007F]+$/.test(text)
}

/** The last plain text. An id is checked, and encoded immediately after. */
let lastPlain = 'x'

/** Whether the text has only letters, digits, `-` and `_`, as nearly all ids do. */
function isPlainText(text: string): boolean {
  if (text === lastPlain) return true
  if (!/^[\w-]+$/.test(text)) return false
  lastPlain = text
  return true
}
