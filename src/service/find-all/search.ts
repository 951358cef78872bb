import { setImmediate } from 'node:timers/promises'
import type { FindAllRequest } from '../../protocol/find-all.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { EFFORTS } from './generators.ts'
import type { PlannedCandidate } from './store.ts'

/** The candidates of a search, best first. */
export interface FoundCandidates {
  readonly candidates: readonly PlannedCandidate[]
  /** Whether there are more than the generator takes. */
  readonly hasMore: boolean
}

/** Number of documents that are searched for each candidate, since several may be about the same entity. */
const DOCUMENTS_PER_CANDIDATE = 3

/** Number of documents whose entities are looked up at once, about 20 ms of work. */
const BATCH = 64

/**
 * Searches the documents for entities that may match: one for each package, and for each other document. Yields to the event
 * loop between documents.
 */
export async function findCandidates(
  corpus: Pick<Corpus, 'search' | 'entity'>,
  request: FindAllRequest,
): Promise<FoundCandidates> {
  const { objective, entity_type, match_conditions, generator } = request
  const { candidates: limit } = EFFORTS[generator]
  const wanted = limit * DOCUMENTS_PER_CANDIDATE
  const hits = corpus.search(
    {
      queries: [objective, ...match_conditions.map(({ description }) => description), entity_type],
      limit: wanted,
    },
    { charactersPerResult: 1, excerptsPerResult: 1 },
  )
  const found = new Map<string, PlannedCandidate>()
  for (const [index, { url }] of hits.entries()) {
    if (index % BATCH === 0) await setImmediate()
    const entity = corpus.entity(url, 1)
    if (entity === undefined || found.has(entity.url)) continue
    if (found.size === limit) return { candidates: [...found.values()], hasMore: true }
    found.set(entity.url, { name: entity.name, url: entity.url })
  }
  return { candidates: [...found.values()], hasMore: hits.length === wanted }
}
