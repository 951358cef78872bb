/** The length of the text literal at this position, or undefined if none begins. Unclosed: up to the end, and a negative number. */
export function textLiteralAt(text: string, at: number): number | undefined {
  const prefix = /^(?:[rR][bB]?|[bB][rR]?)?(?='|")/.exec(text.slice(at, at + 3))
  if (prefix === null) return undefined
  const start = at + prefix[0].length
  const isRaw = /r/i.test(prefix[0])
  const single = text.charAt(start)
  const quote = text.startsWith(single.repeat(3), start) ? single.repeat(3) : single
  let end = start + quote.length
  while (end < text.length) {
    if (text.startsWith(quote, end)) return end + quote.length - at
    if (quote.length === 1 && text.charAt(end) === '\n') break
    end += text.charAt(end) === '\\' && !isRaw ? 2 : 1
  }
  return -(text.length - at)
}

/** The word, number, operator or text that begins at this position. Empty at the end. */
export function tokenAt(text: string, at: number): string {
  const literal = textLiteralAt(text, at)
  if (literal !== undefined) return text.slice(at, at + Math.abs(literal))
  return /^(?:[\p{L}\p{N}_]+|&&|\|\||[=!<>]=|.)/su.exec(text.slice(at))?.[0] ?? ''
}
