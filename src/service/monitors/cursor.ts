/** Encodes a position in a list as an opaque cursor. `scope` identifies the list. */
export function encodeCursor(scope: string, position: number): string {
  return Buffer.from(`${scope}:${position}`).toString('base64url')
}

/** Decodes a cursor of this list; undefined for any other text. */
export function decodeCursor(scope: string, cursor: string): number | undefined {
  const position = Number(
    Buffer.from(cursor, 'base64url')
      .toString()
      .slice(scope.length + 1),
  )
  // Other texts may decode to a position too, so it is encoded again and compared.
  const isGenuine = Number.isSafeInteger(position) && position > 0 && encodeCursor(scope, position) === cursor
  return isGenuine ? position : undefined
}
