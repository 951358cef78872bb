import { Scalar } from 'yaml'

/**
 * The position in a YAML text of a character of a scalar's value.
 *
 * @param offset Offset of the character in the value; the value's length for its end.
 */
export function positionInScalar(text: string, scalar: Scalar, offset: number): number {
  const [start = 0, end = start] = scalar.range ?? []
  switch (scalar.type) {
    case Scalar.QUOTE_DOUBLE:
      return inFlow({ text, start: start + 1, end: end - 1 }, offset, doubleQuotedWidth)
    case Scalar.QUOTE_SINGLE:
      return inFlow({ text, start: start + 1, end: end - 1 }, offset, singleQuotedWidth)
    case Scalar.BLOCK_FOLDED:
    case Scalar.BLOCK_LITERAL: {
      const value = typeof scalar.value === 'string' ? scalar.value : ''
      return inBlock({ text, start: text.indexOf('\n', start) + 1, end }, value, offset)
    }
    default:
      return inFlow({ text, start, end }, offset, () => ONE)
  }
}

/** The part of a text in which a scalar is written. */
interface Span {
  readonly text: string
  readonly start: number
  readonly end: number
}

/** How many code units something has in the file and in the value. */
interface Width {
  readonly written: number
  readonly read: number
}

const ONE: Width = { written: 1, read: 1 }

/** Plain and quoted scalars. A line break with the white space around it is one space, or a line break less. */
function inFlow(
  { text, start, end }: Span,
  offset: number,
  widthAt: (text: string, at: number) => Width,
): number {
  const fold = /[ \t]*(?:\r?\n[ \t]*)+/y
  const foldAt = (at: number): Width => {
    fold.lastIndex = at
    const written = fold.exec(text)?.[0] ?? ''
    return { written: written.length, read: Math.max(1, written.split('\n').length - 2) }
  }
  let at = start
  let read = 0
  while (at < end) {
    const folded = /[ \t\r\n]/.test(text[at] ?? '') ? foldAt(at) : undefined
    const width = folded !== undefined && folded.written > 0 ? folded : widthAt(text, at)
    if (width.read > 0 && read + width.read > offset) break
    at += width.written
    read += width.read
  }
  return Math.min(at, end)
}

function singleQuotedWidth(text: string, at: number): Width {
  return text.startsWith("''", at) ? { written: 2, read: 1 } : ONE
}

function doubleQuotedWidth(text: string, at: number): Width {
  if (text[at] !== '\\') return ONE
  const lineBreak = /\\\r?\n[ \t]*/y
  lineBreak.lastIndex = at
  const escaped = lineBreak.exec(text)
  if (escaped !== null) return { written: escaped[0].length, read: 0 }
  switch (text[at + 1]) {
    case 'x':
      return { written: 4, read: 1 }
    case 'u':
      return { written: 6, read: 1 }
    case 'U':
      return { written: 10, read: Number.parseInt(text.slice(at + 2, at + 10), 16) > 0xffff ? 2 : 1 }
    default:
      return { written: 2, read: 1 }
  }
}

/**
 * Block scalars. Their white space differs from that of the value: indentation is removed, and lines may be folded. All other characters
 * are the same, in the same order.
 */
function inBlock({ text, start, end }: Span, value: string, offset: number): number {
  let at = start
  for (let index = 0; index < offset && at < end; index++) {
    const character = value[index] ?? ''
    if (!isSpace(character)) at = skipSpace(text, at, end) + 1
    // If a line was folded, the next character finds its position.
    else if (character !== '\n' && text[at] === character) at++
  }
  return isSpace(value[offset] ?? ' ') ? at : skipSpace(text, at, end)
}

function skipSpace(text: string, from: number, end: number): number {
  let at = from
  while (at < end && isSpace(text[at] ?? '')) at++
  return at
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\t' || character === '\r'
}
