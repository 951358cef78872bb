import type { MonitorProcessor } from '../../protocol/monitor.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { Corpus, Passage } from '../corpus/corpus.ts'
import type { EventStreamRequest } from './request.ts'

/** Maximum number of matching passages that an execution compares, by processor. */
const MAX_PASSAGES: Readonly<Record<MonitorProcessor, number>> = { lite: 1_000, base: 10_000, core: 100_000 }

/** The passages that match a monitor's query, best first, and warnings for its clients. */
export interface Findings {
  readonly passages: readonly Passage[]
  readonly warnings: readonly Warning[]
}

/** The passages with all words of a monitor's query, in its allowed sources. */
export function searchFor({ processor, settings }: EventStreamRequest, corpus: Corpus): Findings {
  const limit = MAX_PASSAGES[processor]
  const passages = corpus.passages({
    queries: [settings.query],
    match: 'all',
    sourcePolicy: settings.advanced_settings?.source_policy,
    limit,
  })
  const warnings: Warning[] = []
  if (passages.length >= limit) {
    const message = `The query has more matches than the processor ${processor} compares: only the best ${limit} were compared`
    warnings.push({ type: 'warning', message })
  }
  if (settings.advanced_settings?.location !== undefined) {
    const message = 'settings.advanced_settings.location has no effect: the documents belong to no country'
    warnings.push({ type: 'input_validation_warning', message })
  }
  return { passages, warnings }
}
