import type { StoredDocument } from './document-cache.ts'
import type { DocumentKind } from './document-kind.ts'
import type { SearchTerms } from './query-terms.ts'
import { stem } from './stems.ts'
import { TermMatcher } from './term-matcher.ts'

/** A document of a search, with its matching passages. */
export interface Candidate {
  readonly document: StoredDocument
  /** Its first passage. */
  readonly beginning: string | undefined
  /** Its matching passages, best first, at most {@link COUNTED_PASSAGES}. */
  readonly passages: readonly ScoredPassage[]
}

interface ScoredPassage {
  readonly text: string
  /** Its BM25, higher is better. */
  readonly score: number
}

/**
 * How much the second and the third best passage of a document add to the best one: a document with several good passages is better
 * than one with a single one, but a long document must not win by its length.
 */
const PASSAGE_SHARES = [1, 0.25, 0.1]
/** Number of passages of a document that count. */
export const COUNTED_PASSAGES = PASSAGE_SHARES.length

/** How much a term counts by where it stands: title, name and beginning tell what a document is about, other passages mention it. */
const IN_NAME = 1
const IN_BEGINNING = 0.9
const IN_PASSAGE = 0.4

/** The score of a document without any of the terms, as a share of that of a document with all of them. */
const WITHOUT_TERMS = 0.1

/** A changelog mentions everything once, and a licence is about no subject. They rank normally in a query that asks for them. */
const KIND_SHARES: Readonly<Record<DocumentKind, number>> = {
  readme: 1,
  manifest: 0.9,
  page: 0.95,
  changelog: 0.6,
  licence: 0.4,
}
/** A copy of another work, such as `openai/node_modules/zod`, ranks after the original. */
const COPY_SHARE = 0.7
/** A manifest next to its README has the same subject, so another subject may rank before it. */
const SECOND_SHARE = 0.8

const stemsOf = (words: string) => new Set(words.split(' ').map(stem))
/** Words by which a query asks for a kind of document. */
const KIND_WORDS: readonly (readonly [kind: DocumentKind, stems: ReadonlySet<string>])[] = [
  [
    'changelog',
    stemsOf(
      'change changes changelog history release releases version versions breaking fixed deprecated migration upgrade',
    ),
  ],
  ['licence', stemsOf('licence license licensing copyright warranty copying')],
  ['manifest', stemsOf('manifest homepage repository author version keywords engines')],
]

/** A document with its score. */
export interface ScoredDocument {
  readonly document: StoredDocument
  readonly score: number
}

/** A term of a query, as it is found in documents. */
interface Term {
  readonly matcher: TermMatcher
  readonly weight: number
}

/** What the score of a document is made of. */
interface Parts {
  readonly document: StoredDocument
  /** The BM25 of its passages. */
  readonly base: number
  /** For each query, where each of its terms stands: 0 if nowhere, else {@link IN_NAME} and so on. */
  readonly found: readonly (readonly number[])[]
}

/**
 * The scores of documents, in their order. The score of a document is the root of the BM25 of its best passages, times
 *
 * - the share of the query's terms that it has, by their weights and by where they stand;
 * - a share for its kind, unless the query asks for that kind, and one for copies.
 *
 * A README and the manifest of its folder are about the same thing, so each also has the terms of the other.
 */
export function scoreDocuments(
  terms: SearchTerms,
  candidates: readonly Candidate[],
): readonly ScoredDocument[] {
  const queries = terms.queries.map((query) =>
    query.map((term): Term => ({ matcher: new TermMatcher(term), weight: term.weight })),
  )
  const asked = new Set(
    KIND_WORDS.filter(([, stems]) =>
      terms.queries.some((query) => query.some(({ word }) => stems.has(stem(word)))),
    ).map(([kind]) => kind),
  )
  const all = candidates.map((candidate) => partsOf(candidate, queries))
  const introductions = Map.groupBy(
    all.filter(({ document }) => isIntroduction(document)),
    ({ document }) => document.folder,
  )
  return all.map((parts) => {
    const { document } = parts
    const { kind } = document.source
    const same = isIntroduction(document) ? (introductions.get(document.folder) ?? [parts]) : [parts]
    const base = same.reduce((best, other) => Math.max(best, other.base), 0)
    const hasReadme = same.some((other) => other.document.source.kind === 'readme')
    const second = kind === 'manifest' && !asked.has(kind) && hasReadme
    return {
      document,
      score:
        // BM25 sums over the terms, which the coverage counts again: its root keeps one dense passage from winning.
        Math.sqrt(base) *
        (WITHOUT_TERMS + (1 - WITHOUT_TERMS) * coverageOf(queries, same)) *
        (asked.has(kind) ? 1 : KIND_SHARES[kind]) *
        (second ? SECOND_SHARE : 1) *
        (document.isCopied ? COPY_SHARE : 1),
    }
  })
}

function isIntroduction({ source: { kind } }: StoredDocument): boolean {
  return kind === 'readme' || kind === 'manifest'
}

function partsOf({ document, beginning, passages }: Candidate, queries: readonly (readonly Term[])[]): Parts {
  const first = beginning?.toLowerCase()
  const others = passages.filter(({ text }) => text !== beginning).map(({ text }) => text.toLowerCase())
  return {
    document,
    base: passages.reduce((sum, { score }, index) => sum + score * (PASSAGE_SHARES[index] ?? 0), 0),
    found: queries.map((query) =>
      query.map(({ matcher }) => {
        if (matcher.isIn(document.name)) return IN_NAME
        if (first !== undefined && matcher.isIn(first)) return IN_BEGINNING
        return others.some((text) => matcher.isIn(text)) ? IN_PASSAGE : 0
      }),
    ),
  }
}

/** The share of the queries' terms that documents about the same thing have together. */
function coverageOf(queries: readonly (readonly Term[])[], same: readonly Parts[]): number {
  const shares = queries.map((query, index) => {
    let total = 0
    let found = 0
    for (const [term, { weight }] of query.entries()) {
      total += weight
      found += weight * same.reduce((best, other) => Math.max(best, other.found[index]?.[term] ?? 0), 0)
    }
    return found / total
  })
  // Queries may be forms of one question, or different questions: half counts the best one, half counts all.
  return (Math.max(...shares) + shares.reduce((sum, share) => sum + share, 0) / shares.length) / 2
}
