import type { CorpusQuery } from './corpus.ts'
import type { TermStatistics } from './frequencies.ts'
import { otherSpelling } from './spelling.ts'
import { significantTerms, words } from './terms.ts'

/** Maximum number of terms of a search, divided among its queries and its objective. Each term is a scan of its postings. */
export const MAX_SEARCH_TERMS = 64
/** Maximum number of terms that a passage must all have. */
export const MAX_TERMS = 32
/** Maximum length of a query that is read, in characters; the limit of requests. */
const MAX_QUERY_LENGTH = 5_000
/** Minimum length of each part of a compound word. */
const MIN_PART_LENGTH = 3
/** A compound word is only split if fewer passages than this have it: a common one is the usual way to write it. */
const MAX_COMPOUND_PASSAGES = 1_000

/** A term of a query. */
export interface QueryTerm {
  /** The word as in the query. */
  readonly word: string
  /** The word, its other spelling, and its compound forms. A space separates the words of a phrase. */
  readonly forms: readonly string[]
  /** Number of passages that have the words of its forms. */
  readonly passages: number
  /** Whether a document may have it. */
  readonly isKnown: boolean
  /** How much it distinguishes documents. */
  readonly weight: number
}

/** The terms of a search. */
export interface SearchTerms {
  /** The terms of each query, and of the objective as the last one. */
  readonly queries: readonly (readonly QueryTerm[])[]
  /** The words that are left out, since there are more than {@link MAX_SEARCH_TERMS}, or than {@link MAX_TERMS} in a query for all. */
  readonly dropped: readonly string[]
}

/** The terms of a text. */
export function queryTerms(query: string): string[] {
  return significantTerms(query.slice(0, MAX_QUERY_LENGTH))
}

/** Whether a search for these texts uses all of their terms. */
export function hasFewTerms(texts: readonly string[]): boolean {
  return texts.reduce((sum, text) => sum + queryTerms(text).length, 0) <= MAX_SEARCH_TERMS
}

/**
 * The terms of a search. If there are too many, each query and the objective get their rarest remaining terms, one at a time, so that each
 * of them counts.
 */
export function searchTerms(
  { queries, objective = '' }: Pick<CorpusQuery, 'queries' | 'objective'>,
  frequencies: TermStatistics,
): SearchTerms {
  const all = [...queries, objective].map((query) => termsOf(query, frequencies))
  // The others find nothing, although they are the rarest.
  const known = all.map((terms) => terms.filter(({ isKnown }) => isKnown))
  const distinct = new Set(known.flat().map(({ word }) => word))
  if (distinct.size <= MAX_SEARCH_TERMS) return { queries: nonEmpty(all), dropped: [] }
  const rarest = known.map((terms) => terms.toSorted((a, b) => b.weight - a.weight))
  const kept = new Set<string>()
  while (kept.size < MAX_SEARCH_TERMS) {
    for (const terms of rarest) {
      // A term of an earlier query takes no turn: otherwise a query that shares terms would get fewer.
      const term = terms.find(({ word }) => !kept.has(word))
      if (term !== undefined && kept.size < MAX_SEARCH_TERMS) kept.add(term.word)
    }
  }
  return {
    queries: nonEmpty(known.map((terms) => terms.filter(({ word }) => kept.has(word)))),
    dropped: [...distinct].filter((word) => !kept.has(word)),
  }
}

/**
 * The terms of a search for passages with all terms of a query. Each query counts alone. One with more than {@link MAX_TERMS} is left
 * out: with fewer of its terms, it would match other passages.
 */
export function wholeQueries(queries: readonly string[], frequencies: TermStatistics): SearchTerms {
  const all = queries.map((query) => termsOf(query, frequencies))
  const kept = all.filter((terms) => terms.length <= MAX_TERMS)
  const used = new Set(kept.flat().map(({ word }) => word))
  const asked = new Set(all.flat().map(({ word }) => word))
  return { queries: nonEmpty(kept), dropped: [...asked].filter((word) => !used.has(word)) }
}

function nonEmpty<Item>(lists: readonly (readonly Item[])[]): (readonly Item[])[] {
  return lists.filter((list) => list.length > 0)
}

function termsOf(query: string, frequencies: TermStatistics): QueryTerm[] {
  const text = query.slice(0, MAX_QUERY_LENGTH)
  const compounds = compoundsIn(text, frequencies)
  return significantTerms(text).map((word) => {
    const forms = [word]
    const other = otherSpelling(word)
    if (other !== undefined && frequencies.of(other) > 0) forms.push(other)
    forms.push(...(compounds.get(word) ?? []), ...partsOf(word, frequencies))
    // A spelling that no document has does not make the term rare.
    const passages = forms.reduce((sum, form) => sum + (form.includes(' ') ? 0 : frequencies.of(form)), 0)
    const isKnown = passages > 0 || forms.some((form) => form.includes(' '))
    return {
      word,
      forms: [...new Set(forms)],
      isKnown,
      passages,
      weight: frequencies.weight(passages),
    }
  })
}

/** `websocket` for each word of `web socket`, if a document has it. */
function compoundsIn(text: string, frequencies: TermStatistics): Map<string, string[]> {
  const found = new Map<string, string[]>()
  const all = words(text)
  for (const [index, second] of all.entries()) {
    const first = all[index - 1]
    if (first === undefined || first.length + second.length > 40) continue
    const whole = first + second
    const isCompound = Math.min(first.length, second.length) >= MIN_PART_LENGTH || /^\p{N}+$/u.test(second)
    if (!isCompound || frequencies.of(whole) === 0) continue
    for (const word of [first, second]) found.set(word, [...(found.get(word) ?? []), whole])
  }
  return found
}

/** The phrases `web socket` of `websocket`, and `json 5` of `json5`, if a document has it. */
function partsOf(word: string, frequencies: TermStatistics): string[] {
  const numbered = /^(\p{L}{2,})(\p{N}+)$/u.exec(word)
  if (numbered !== null) return [`${numbered[1]} ${numbered[2]}`]
  if (word.length < 2 * MIN_PART_LENGTH || word.length > 24 || frequencies.of(word) > MAX_COMPOUND_PASSAGES)
    return []
  const phrases: string[] = []
  for (let cut = MIN_PART_LENGTH; cut <= word.length - MIN_PART_LENGTH; cut++) {
    const [first, second] = [word.slice(0, cut), word.slice(cut)]
    if (frequencies.hasPhrase(first, second)) phrases.push(`${first} ${second}`)
  }
  return phrases
}
