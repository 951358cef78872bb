import type { Passage } from '../corpus/corpus.ts'
import type { MonitorFindings } from './search.ts'
import type { FreshPassage, TextOf } from './seen.ts'
import { readableText, statementsOf } from './statements.ts'
import type { StoredMonitor } from './store.ts'

/** A passage that is reported. */
export interface News {
  readonly passage: Passage
  /** The new statements of the passage; all statements of an earlier match. */
  readonly statements: readonly string[]
  /** Why it is reported, in sentences. */
  readonly reason: string
}

/** Maximum number of earlier matches that are reported with `include_backfill`. */
const BACKFILL_SAMPLE = 10

/**
 * The report of an execution: the passages with unseen statements about the query. The first execution with `include_backfill` adds
 * a sample of the earlier matches before them.
 */
export function detectNews(
  { hasBaseline, owesBackfill }: StoredMonitor,
  { passages, reasonFor }: MonitorFindings,
  unseen: readonly FreshPassage[],
  textOf: TextOf,
): News[] {
  // Without a baseline nothing counts as new: the current passages become the baseline.
  const fresh = hasBaseline ? unseen : []
  const found: News[] = []
  if (owesBackfill) {
    const news = new Set(fresh.map(({ hash }) => hash))
    const earlier = passages.flatMap((passage) => {
      if (news.has(passage.hash)) return []
      const statements = statementsOf(readableText(passage))
      const reason = reasonFor(passage, statements, textOf(passage.url))
      return reason === undefined ? [] : [{ ...passage, statements, reason }]
    })
    for (const passage of sample(earlier))
      found.push({ passage, statements: passage.statements, reason: passage.reason })
  }
  for (const passage of fresh.toSorted(byDate)) {
    const reason = reasonFor(passage, passage.news, textOf(passage.url))
    if (reason === undefined) continue
    const change = passage.documentKnown
      ? 'It is new in a document that had matched before.'
      : 'It is the first match in its document.'
    found.push({ passage, statements: passage.news, reason: `${reason} ${change}` })
  }
  return found
}

/** The most recent passages, oldest first. */
function sample<Found extends Passage>(passages: readonly Found[]): Found[] {
  const distinct = new Map(passages.map((passage) => [passage.hash, passage]))
  return [...distinct.values()].toSorted(byDate).slice(-BACKFILL_SAMPLE)
}

/** Oldest first, as in the log. Passages without a date are the oldest. */
function byDate(a: Passage, b: Passage): number {
  const [dateA, dateB] = [a.publishDate ?? '', b.publishDate ?? '']
  if (dateA === dateB) return a.score - b.score
  return dateA < dateB ? -1 : 1
}
