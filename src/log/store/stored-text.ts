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
