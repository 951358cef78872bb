import { compareStored, storedText } from '../../protocol/stored-text.ts'

/** Keys as they are stored: those from `from` on and before `to`, which is undefined if all after `from` are meant. */
export interface KeyRange {
  readonly from: string
  readonly to: string | undefined
}

/**
 * The ranges of stored keys that have a prefix, in order. Keys that are stored as a JSON string are apart from the others.
 *
 * @param prefix Well-formed.
 */
export function keyRanges(prefix: string): readonly KeyRange[] {
  const escaped = rangeOf(JSON.stringify(prefix).slice(0, -1))
  if (prefix === '') return [{ from: '', to: undefined }]
  if (storedText(prefix) !== prefix) return [escaped]
  return [rangeOf(prefix), escaped].toSorted((a, b) => compareStored(a.from, b.from))
}

function rangeOf(from: string): KeyRange {
  return { from, to: successor(from) }
}

/** The least text that is greater than each text with this prefix; undefined for none. */
function successor(prefix: string): string | undefined {
  const characters = Array.from(prefix)
  while (characters.length > 0) {
    const code = characters.pop()?.codePointAt(0) ?? 0
    if (code === 0x10_ffff) continue
    // Surrogates are no characters of their own.
    return characters.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1)
  }
  return undefined
}
