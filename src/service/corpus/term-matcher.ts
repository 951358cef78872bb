import type { QueryTerm } from './query-terms.ts'
import { stem } from './stems.ts'

/** A form of a term: the stems of its words, and how all words with the first stem begin. */
interface TermForm {
  readonly beginning: string
  readonly stems: readonly string[]
}

const WORD = /[\p{L}\p{N}\p{M}]+/uy
const LETTER = /[\p{L}\p{N}\p{M}]/u
/** The characters that may be between the words of a phrase. */
const SEPARATOR = /[^\p{L}\p{N}\p{M}]{1,3}/uy

/**
 * Finds terms in texts, with the stems of the index. Looks up the stem of those words alone that begin like a term, which is much
 * faster than all stems of a text.
 */
export class TermMatcher {
  readonly #forms: readonly TermForm[]

  constructor({ forms }: QueryTerm) {
    this.#forms = forms.map((form) => {
      const all = form.split(' ')
      const stems = all.map(stem)
      const [word = '', root = ''] = [all[0], stems[0]]
      let length = 0
      // The stem of `library` is `librari`.
      while (length < root.length && word[length] === root[length]) length += 1
      return { beginning: word.slice(0, length), stems }
    })
  }

  /** Whether a lowercase text has the term. */
  isIn(text: string): boolean {
    return this.#forms.some((form) => hasForm(text, form))
  }
}

function hasForm(text: string, { beginning, stems }: TermForm): boolean {
  if (beginning === '') return false
  for (let at = text.indexOf(beginning); at >= 0; at = text.indexOf(beginning, at + 1)) {
    if (at > 0 && LETTER.test(text.charAt(at - 1))) continue
    if (stemsAt(text, at, stems)) return true
  }
  return false
}

function stemsAt(text: string, start: number, stems: readonly string[]): boolean {
  let at = start
  for (const [index, expected] of stems.entries()) {
    if (index > 0) {
      SEPARATOR.lastIndex = at
      if (!SEPARATOR.test(text)) return false
      at = SEPARATOR.lastIndex
    }
    WORD.lastIndex = at
    const word = WORD.exec(text)?.[0]
    if (word === undefined || stem(word) !== expected) return false
    at = WORD.lastIndex
  }
  return true
}
