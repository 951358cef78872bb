import type { StoredDocument } from './document-cache.ts'
import type { DocumentKind } from './document-kind.ts'
import type { PassageTexts } from './passage-texts.ts'
import type { SearchTerms } from './query-terms.ts'
import { stem } from './stems.ts'
import { firstPassage } from './tables.ts'
import { TermMatcher } from './term-matcher.ts'

/** A document of a search, with its matching passages. */
export interface Candidate {
  readonly document: StoredDocument
  /** Its matching passages, best first. None for a README that its manifest has brought. */
  readonly passages: readonly ScoredPassage[]
}

interface ScoredPassage {
  readonly passage: number
  /** Its BM25, higher is better. */
  readonly score: number
}

/**
 * How much the second and the third best passage of a document add to the best one: a document with several good passages is better
 * than one with a single one, but a long document must not win by its length.
 */
const PASSAGE_SHARES = [1, 0.25, 0.1]
/** Number of passages of a document that count. */
const COUNTED_PASSAGES = PASSAGE_SHARES.length

/** The weight of a term by its position: title, name and beginning state the subject of a document, other passages mention things. */
const IN_NAME = 1
/** All of a manifest describes its package. */
const IN_DESCRIPTION = 1
const IN_BEGINNING = 0.9
const IN_PASSAGE = 0.4

/** The score of a document without any of the terms, as a share of the score of a document with all of them. */
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

/** A term of a query, as it is found in documents. */
interface SearchTerm {
  readonly matcher: TermMatcher
  readonly weight: number
}

/** The parts of a document's score. */
export interface Parts {
  readonly document: StoredDocument
  /** The BM25 of its passages. */
  readonly base: number
  /** For each query, the position of each of its terms: 0 if it has none, else {@link IN_NAME} and so on. */
  readonly found: readonly (readonly number[])[]
}

/**
 * Scores documents for a search. The score of a document is the root of the BM25 of its best passages, times
 *
 * - the share of the query's terms that it has, by their weights and their positions;
 * - a share for its kind, unless the query asks for that kind, and one for copies.
 *
 * A README and the manifest of its folder are about the same thing, so each also has the terms of the other.
 */
export class DocumentScore {
  readonly #queries: readonly (readonly SearchTerm[])[]
  /** The kinds of documents that the query asks for. */
  readonly #asked: ReadonlySet<DocumentKind>

  constructor({ queries }: SearchTerms) {
    this.#queries = queries.map((query) =>
      query.map((term): SearchTerm => ({ matcher: new TermMatcher(term), weight: term.weight })),
    )
    this.#asked = new Set(
      KIND_WORDS.filter(([, stems]) =>
        queries.some((query) => query.some(({ word }) => stems.has(stem(word)))),
      ).map(([kind]) => kind),
    )
  }

  /** The parts of the score of a document before its texts are read: as if all terms that are not in its name were in its beginning. */
  mostOf({ document, passages }: Candidate): Parts {
    const elsewhere = passages.length === 0 ? 0 : IN_BEGINNING
    return {
      document,
      base: passages
        .slice(0, COUNTED_PASSAGES)
        .reduce((sum, { score }, index) => sum + score * (PASSAGE_SHARES[index] ?? 0), 0),
      found: this.#queries.map((query) =>
        query.map(({ matcher }) => (matcher.isIn(document.name) ? IN_NAME : elsewhere)),
      ),
    }
  }

  /** The parts of the document's score. `most` is of {@link mostOf}. */
  partsOf(candidate: Candidate, { document, base, found }: Parts, texts: PassageTexts): Parts {
    const [beginning, ...others] = [...new Set(passagesOf(candidate))].map((id) =>
      texts.get(id)?.text.toLowerCase(),
    )
    const { kind } = document.source
    const place = ({ matcher }: SearchTerm) => {
      const isElsewhere = () => others.some((text) => text !== undefined && matcher.isIn(text))
      const isInBeginning = beginning !== undefined && matcher.isIn(beginning)
      if (kind === 'manifest') return isInBeginning || isElsewhere() ? IN_DESCRIPTION : 0
      return isInBeginning ? IN_BEGINNING : isElsewhere() ? IN_PASSAGE : 0
    }
    return {
      document,
      base,
      found: this.#queries.map((query, at) =>
        query.map((term, index) => (found[at]?.[index] === IN_NAME ? IN_NAME : place(term))),
      ),
    }
  }

  /** The score of a document. `same` are the parts of it and of the others about the same thing. */
  of(document: StoredDocument, same: readonly Parts[]): number {
    const { kind } = document.source
    const base = same.reduce((best, other) => Math.max(best, other.base), 0)
    const hasReadme = same.some((other) => other.document.source.kind === 'readme')
    const second = kind === 'manifest' && !this.#asked.has(kind) && hasReadme
    return (
      // BM25 sums over the terms, which the coverage counts again: its root keeps one dense passage from winning.
      Math.sqrt(base) *
      (WITHOUT_TERMS + (1 - WITHOUT_TERMS) * this.#coverageOf(same)) *
      (this.#asked.has(kind) ? 1 : KIND_SHARES[kind]) *
      (second ? SECOND_SHARE : 1) *
      (document.isCopied ? COPY_SHARE : 1)
    )
  }

  /** The share of the queries' terms that documents about the same thing have together. */
  #coverageOf(same: readonly Parts[]): number {
    const shares = this.#queries.map((query, index) => {
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
}

/** Whether the document introduces its folder, as the others that do. */
export function isIntroduction({ source: { kind } }: StoredDocument): boolean {
  return kind === 'readme' || kind === 'manifest'
}

/** The passages whose texts {@link DocumentScore.partsOf} needs, the beginning first. */
export function passagesOf({ document, passages }: Candidate): number[] {
  if (passages.length === 0) return []
  const counted = passages.slice(0, COUNTED_PASSAGES).map(({ passage }) => passage)
  return [firstPassage(document.id), ...counted]
}
