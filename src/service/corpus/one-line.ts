/** A text of a document on one line, without control characters. */
export function oneLine(text: string): string {
  return (
    text
      // oxlint-disable-next-line no-control-regex -- YAML and JSON can contain them.
      .replace(/[\s\u0000-\u001F\u007F]+/g, ' ')
      .trim()
      .toWellFormed()
  )
}
