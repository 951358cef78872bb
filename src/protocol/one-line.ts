/** A text on one line, without characters that control a terminal or the direction of text, cut. */
export function oneLine(text: string, maxLength: number): string {
  const line = text
    .slice(0, 4 * maxLength)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1).toWellFormed()}…`
}
