import type { Citation } from '../../protocol/output.ts'
import type { SourcePassage } from '../processor/passages/place.ts'

/** A citation as a model claims it. */
export interface ClaimedQuote {
  /** The number of the passage in the prompt, from 1. */
  readonly passage: number
  /** Words of the passage. */
  readonly quote: string
}

/** Citations that the passages have, and how many others were dropped. */
export interface CheckedQuotes {
  readonly citations: readonly Citation[]
  readonly dropped: number
}

/** Minimum length of a quote, in characters. A shorter quote does not identify its passage. */
const MIN_LENGTH = 3

/**
 * Checks quotes against the passages, word for word: only white space may differ. An excerpt is the passage's own text. A quote
 * under a wrong number is cited from the passage that has it.
 */
export function checkQuotes(
  claimed: readonly ClaimedQuote[],
  passages: readonly SourcePassage[],
): CheckedQuotes {
  const found = new Map<string, { title: string; excerpts: Set<string> }>()
  let dropped = 0
  for (const { passage: number, quote } of claimed) {
    const named = passages[number - 1]
    const isLongEnough = quote.trim().length >= MIN_LENGTH
    const source = (isLongEnough ? [...(named === undefined ? [] : [named]), ...passages] : [])
      .map((passage) => ({ passage, excerpt: findWords(passage.text, quote) }))
      .find(({ excerpt }) => excerpt !== undefined)
    if (source?.excerpt === undefined) {
      dropped += 1
      continue
    }
    const { url, title } = source.passage
    const citation = found.get(url) ?? { title, excerpts: new Set() }
    citation.excerpts.add(source.excerpt)
    found.set(url, citation)
  }
  const citations = [...found].map(([url, { title, excerpts }]) => ({ url, title, excerpts: [...excerpts] }))
  return { citations, dropped }
}

/** The part of a text that has these words, next to each other; undefined if there is none. */
export function findWords(text: string, wanted: string): string | undefined {
  const quote = oneSpaced(wanted).trim()
  if (quote === '' || quote.length > text.length) return undefined
  const searched = oneSpaced(text)
  for (let start = searched.indexOf(quote); start !== -1; start = searched.indexOf(quote, start + 1)) {
    if (isWhole(searched, start, start + quote.length)) return originalOf(text, start, quote.length)
  }
  return undefined
}

function oneSpaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}

/** The part of a text that {@link oneSpaced} has at this position, with its own white space. */
function originalOf(text: string, start: number, length: number): string {
  let at = 0
  let from = 0
  for (const { 0: character, index } of text.matchAll(/\s+|\S/g)) {
    if (at === start) from = index
    at += 1
    if (at === start + length) return text.slice(from, index + character.length)
  }
  return text.slice(from)
}

/** Whether a part of a text neither begins nor ends within a word: `18` is no quote of `2018`. */
function isWhole(text: string, start: number, end: number): boolean {
  const isLetter = (index: number) => /[\p{L}\p{N}]/u.test(text.charAt(index))
  const cutsStart = isLetter(start) && start > 0 && isLetter(start - 1)
  const cutsEnd = isLetter(end - 1) && end < text.length && isLetter(end)
  return !cutsStart && !cutsEnd
}
