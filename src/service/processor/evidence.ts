import type { SourcePolicy } from '../../protocol/task.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { splitPassages } from '../corpus/passages.ts'
import { significantTerms, words } from '../corpus/terms.ts'
import { type Evidence, Judge, type SourcePassage } from './judge.ts'
import type { Subject } from './subject.ts'
import { type Question, questionOf } from './vocabulary.ts'

/** The result of a search for evidence. */
export interface Findings {
  readonly question: Question
  /** The search terms. */
  readonly query: string
  /** The name whose documents were searched; undefined for all documents. */
  readonly about: string | undefined
  readonly passages: number
  /** The URLs of the documents of these passages. */
  readonly sources: readonly string[]
  /** Best first. */
  readonly evidence: readonly Evidence[]
}

/** Settings of {@link findEvidence}. */
export interface EvidenceSearch {
  readonly corpus: Corpus
  readonly subject: Subject
  readonly sourcePolicy: SourcePolicy | undefined
  /** Maximum number of passages that are read. */
  readonly depth: number
}

/** Maximum number of sentences and lines that are returned. */
const MAX_EVIDENCE = 200
/** Maximum number of documents whose beginnings are read for a definition. */
const LEAD_DOCUMENTS = 6
/** Number of passages of the beginning of a document. */
const LEAD_PASSAGES = 6

/**
 * Finds the sentences and lines that answer a question: in the documents with the subject's name if there are any, else in all.
 */
export function findEvidence(search: EvidenceSearch, text: string): Findings {
  const { subject } = search
  const nameWords = subject.names.flatMap((name) => words(name))
  const question = questionOf(text, nameWords)
  const scopes = [...subject.names, undefined]
  let findings: Findings | undefined
  for (const about of scopes) {
    const found = searchScope(search, question, about)
    if (found.evidence.length > 0) return found
    findings ??= found
  }
  return findings ?? { question, query: '', about: undefined, passages: 0, sources: [], evidence: [] }
}

function searchScope(search: EvidenceSearch, question: Question, about: string | undefined): Findings {
  const { corpus, subject, sourcePolicy, depth } = search
  const subjectWords = about === undefined ? [...subject.names, subject.text] : []
  const wanted = [...question.terms.flatMap((term) => term.words), ...subjectWords].join(' ')
  const query = significantTerms(wanted).join(' ')
  // A document usually defines its subject at the beginning, and seldom with the terms of the question.
  const passages = about === undefined ? [] : leads(search, about)
  if (about === undefined || question.terms.length > 0) {
    passages.unshift(...corpus.passages({ queries: [query], about, sourcePolicy, limit: depth }))
  }
  const judge = new Judge(question, subject, about)
  const seen = new Set<string>()
  const evidence: Evidence[] = []
  for (const [rank, passage] of passages.entries()) {
    const key = `${passage.url}\n${passage.text}`
    if (seen.has(key)) continue
    seen.add(key)
    evidence.push(...judge.read(passage, rank))
  }
  // A stable sort keeps the order of passages for equal scores, so that answers are deterministic.
  evidence.sort((a, b) => b.score - a.score)
  const sources = [...new Set(passages.map(({ url }) => url))]
  return { question, query, about, passages: seen.size, sources, evidence: evidence.slice(0, MAX_EVIDENCE) }
}

/** The beginnings of the documents with a name; only those of its README or index if there is one. */
function leads({ corpus, sourcePolicy }: EvidenceSearch, about: string): SourcePassage[] {
  const hits = corpus.search(
    { queries: [about], about, sourcePolicy, limit: LEAD_DOCUMENTS },
    { charactersPerResult: 1, excerptsPerResult: 1 },
  )
  const introductions = hits.filter(({ url }) => /\/(?:readme|index)(?:\.[^/]*)?$/i.test(url))
  return (introductions.length > 0 ? introductions : hits).flatMap(({ url }) => {
    const document = corpus.document(url)
    if (document === undefined) return []
    const { title, text } = document
    return splitPassages(text.slice(0, 20_000))
      .slice(0, LEAD_PASSAGES)
      .map(({ start, end }) => ({ url, title, text: text.slice(start, end) }))
  })
}
