import type { MonitorProcessor } from '../../protocol/monitor.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { Corpus, Passage } from '../corpus/corpus.ts'
import type { MonitorRequest } from './request.ts'

/** How many matching passages an execution looks at, at the most: what a dearer processor is worth. */
const REACH: Readonly<Record<MonitorProcessor, number>> = { lite: 1_000, base: 10_000, core: 100_000 }

/** What a monitor's query finds, best first, and what its reader should know. */
export interface Findings {
  readonly passages: readonly Passage[]
  readonly warnings: readonly Warning[]
}

/** The passages that have all words of a monitor's query, in the sources that it allows. */
export function searchFor({ processor, settings }: MonitorRequest, corpus: Corpus): Findings {
  const limit = REACH[processor]
  const passages = corpus.passages({
    queries: [settings.query],
    match: 'all',
    sourcePolicy: settings.advanced_settings?.source_policy,
    limit,
  })
  const warnings: Warning[] = []
  if (passages.length >= limit) {
    const message = `The query has more matches than the processor ${processor} looks at: only the best ${limit} were compared`
    warnings.push({ type: 'warning', message })
  }
  if (settings.advanced_settings?.location !== undefined) {
    const message = 'settings.advanced_settings.location has no effect: the documents belong to no country'
    warnings.push({ type: 'input_validation_warning', message })
  }
  return { passages, warnings }
}
