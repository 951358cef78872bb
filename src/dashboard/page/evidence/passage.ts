/** A part of a text, by its indexes. */
export interface Passage {
  readonly from: number
  readonly to: number
}

/**
 * Finds an excerpt in its document: verbatim, else without regard to white space, case and the marks of Markdown. A
 * shortened excerpt is found by the longest of its pieces. Undefined if it is not there.
 */
export function findPassage(text: string, excerpt: string): Passage | undefined {
  const wanted = excerpt.trim()
  if (wanted === '') return undefined
  const exact = text.indexOf(wanted)
  if (exact >= 0) return { from: exact, to: exact + wanted.length }

  const folded = fold(text)
  const whole = findFolded(folded, fold(wanted).text)
  if (whole !== undefined) return whole
  const pieces = wanted
    .split(/\s*(?:…|\.{3}|\[\.{3}\]|\n{2,})\s*/)
    .toSorted((a, b) => b.length - a.length)
    .filter((piece) => piece.length >= 20)
  for (const piece of pieces) {
    const found = findFolded(folded, fold(piece).text)
    if (found !== undefined) return found
  }
  return undefined
}

interface Folded {
  readonly text: string
  /** For each UTF-16 unit, its index in the original. */
  readonly indexes: Uint32Array
}

function fold(original: string): Folded {
  const indexes = new Uint32Array(original.length)
  const parts: string[] = []
  let length = 0
  for (let index = 0; index < original.length; index += 1) {
    const unit = original.charAt(index)
    if (/[\s*_`#>|\\]/.test(unit)) continue
    const lower = unit.toLowerCase()
    // A few letters become two, which would shift the indexes.
    parts.push(lower.length === 1 ? lower : unit)
    indexes[length] = index
    length += 1
  }
  return { text: parts.join(''), indexes }
}

function findFolded({ text, indexes }: Folded, wanted: string): Passage | undefined {
  if (wanted === '') return undefined
  const start = text.indexOf(wanted)
  if (start < 0) return undefined
  const from = indexes[start]
  const last = indexes[start + wanted.length - 1]
  return from === undefined || last === undefined ? undefined : { from, to: last + 1 }
}
