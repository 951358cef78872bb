import type { MonitorEventStreamEvent } from '../../protocol/monitor.ts'
import type { Passage } from '../corpus/corpus.ts'
import { identifier } from '../identifier.ts'
import { passageOutput } from './output.ts'
import type { EventStreamRequest } from './request.ts'
import type { SeenPassages, TextOf } from './seen.ts'
import type { StoredMonitor } from './store.ts'

/** Maximum number of earlier matches that are reported with `include_backfill`. */
const BACKFILL_SAMPLE = 10

/**
 * The events of one execution: one for each passage with unseen statements. The first execution with `include_backfill` adds
 * a sample of the earlier matches before them. Marks all passages as seen.
 */
export function detectNews(
  monitor: StoredMonitor,
  { settings }: EventStreamRequest,
  passages: readonly Passage[],
  seen: SeenPassages,
  textOf: TextOf,
  groupId: string,
): MonitorEventStreamEvent[] {
  const unseen = seen.mark(monitor.id, passages, textOf)
  // Without a baseline nothing counts as new: the current passages become the baseline.
  const fresh = monitor.hasBaseline ? unseen : []
  const events: MonitorEventStreamEvent[] = []
  if (monitor.owesBackfill) {
    const news = new Set(fresh.map(({ hash }) => hash))
    const earlier = passages.filter(({ hash }) => !news.has(hash))
    for (const passage of sample(earlier)) report(passage, `It has all words of "${settings.query}".`)
  }
  for (const passage of fresh.toSorted(byDate)) {
    const change = passage.documentKnown
      ? 'It is new in a document that had matched before.'
      : 'It is the first match in its document.'
    report(passage, `It has all words of "${settings.query}". ${change}`)
  }
  return events

  function report(passage: Passage, reasoning: string): void {
    events.push({
      event_type: 'event_stream',
      event_id: identifier('mevt'),
      event_group_id: groupId,
      event_date: passage.publishDate,
      output: passageOutput(passage, reasoning, settings.output_schema),
    })
  }
}

/** The most recent passages, oldest first. */
function sample(passages: readonly Passage[]): Passage[] {
  const distinct = new Map(passages.map((passage) => [passage.hash, passage]))
  return [...distinct.values()].toSorted(byDate).slice(-BACKFILL_SAMPLE)
}

/** Oldest first, as in the log. Passages without a date are the oldest. */
function byDate(a: Passage, b: Passage): number {
  const [dateA, dateB] = [a.publishDate ?? '', b.publishDate ?? '']
  if (dateA === dateB) return a.score - b.score
  return dateA < dateB ? -1 : 1
}
