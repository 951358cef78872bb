import {
  type Candidate,
  type DocumentScore,
  isIntroduction,
  passagesOf,
  type Parts,
} from './document-score.ts'
import type { PassageTexts } from './passage-texts.ts'

/** Number of documents that are read per requested one. */
const READ_PER_HIT = 2
/** Minimum number of documents that are read. */
const MIN_READ = 20

/** A document with its score and its matching passages. */
export interface BestDocument extends Candidate {
  readonly score: number
}

/** A candidate before its texts are read. */
interface Unread {
  readonly candidate: Candidate
  readonly most: Parts
}

/**
 * The best documents, best first; of documents with the same text only the best. Returns at least `limit` if there are so many.
 *
 * Reading texts and finding terms in them is most of the work after ranking. So it takes documents in the order of the highest scores that
 * they could have, with all terms in their names or beginnings, and reads the first ones alone: more only if these have equal texts.
 */
export function bestDocuments(
  candidates: readonly Candidate[],
  score: DocumentScore,
  limit: number,
  texts: PassageTexts,
): readonly BestDocument[] {
  const unread = candidates.map((candidate): Unread => ({ candidate, most: score.mostOf(candidate) }))
  const introductions = Map.groupBy(
    unread.filter(({ candidate }) => isIntroduction(candidate.document)),
    ({ candidate }) => candidate.document.folder,
  )
  const queue = unread
    .map((one) => {
      const { candidate } = one
      const { document } = candidate
      const same = isIntroduction(document) ? (introductions.get(document.folder) ?? [one]) : [one]
      const most = score.of(
        document,
        same.map((other) => other.most),
      )
      return { candidate, same, most }
    })
    .toSorted((a, b) => b.most - a.most || a.candidate.document.id - b.candidate.document.id)
  const size = Math.max(MIN_READ, limit * READ_PER_HIT)
  let best: BestDocument[] = []
  for (let from = 0; from < queue.length && best.length < limit; from += size) {
    const batch = queue.slice(from, from + size)
    texts.load(batch.flatMap(({ same }) => same.flatMap(({ candidate }) => passagesOf(candidate))))
    const scored = batch.map(({ candidate: { document, passages }, same }): BestDocument => {
      const parts = same.map((other) => score.partsOf(other.candidate, other.most, texts))
      return { document, passages, score: score.of(document, parts) }
    })
    best = distinct(
      [...best, ...scored].toSorted((a, b) => b.score - a.score || a.document.id - b.document.id),
    )
  }
  return best
}

/** The first documents of each text. */
function distinct(documents: readonly BestDocument[]): BestDocument[] {
  const hashes = new Set<string>()
  return documents.filter(({ document: { textHash } }) => !hashes.has(textHash) && hashes.add(textHash))
}
