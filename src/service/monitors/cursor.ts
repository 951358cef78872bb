/** A place in a list, as text that means nothing to a client. `scope` names the list that it belongs to. */
export function encodeCursor(scope: string, position: number): string {
  return Buffer.from(`${scope}:${position}`).toString('base64url')
}

/** The place that a cursor of this list stands for; undefined for any other text. */
export function decodeCursor(scope: string, cursor: string): number | undefined {
  const position = Number(
    Buffer.from(cursor, 'base64url')
      .toString()
      .slice(scope.length + 1),
  )
  // Only what encodes to the very same text is a cursor that was given out.
  const genuine = Number.isSafeInteger(position) && position > 0 && encodeCursor(scope, position) === cursor
  return genuine ? position : undefined
}
