/** The text of an error that has none. */
export const NO_TEXT = 'an error without a text'

/** An error as text, whatever was thrown. */
export function errorText(error: unknown): string {
  try {
    return String(error)
  } catch {
    // A getter of it throws, or it has no text.
    return NO_TEXT
  }
}
