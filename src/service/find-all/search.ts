import { setImmediate } from 'node:timers/promises'
import type { EntitySearchRequest, FoundEntity } from '../../protocol/find-all.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { readEntity } from './entity-text.ts'
import { describe } from './evaluate.ts'
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

/** Maximum number of entities when no number is asked for; beyond the interface document. */
const DEFAULT_ENTITIES = 100

/** Number of documents whose entities are looked up at once, about 20 ms of work. */
const BATCH = 64

/**
 * Searches the documents for at most `limit` entities: one for each package, and for each other document. Yields to the event loop
 * between documents.
 */
export async function findCandidates(
  corpus: Pick<Corpus, 'search' | 'entity'>,
  queries: readonly string[],
  limit: number,
): Promise<FoundCandidates> {
  const wanted = limit * DOCUMENTS_PER_CANDIDATE
  const hits = corpus.search({ queries, limit: wanted }, { charactersPerResult: 1, excerptsPerResult: 1 })
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

/**
 * Searches the documents for entities, best first, without judging conditions. Rejects with the reason of the signal when that is aborted.
 */
export async function searchEntities(
  corpus: Corpus,
  { objective, entity_type, match_limit = DEFAULT_ENTITIES }: EntitySearchRequest,
  signal: AbortSignal,
): Promise<FoundEntity[]> {
  await corpus.settled()
  signal.throwIfAborted()
  const { candidates } = await findCandidates(corpus, [objective, entity_type], match_limit)
  const entities: FoundEntity[] = []
  for (const { name, url } of candidates) {
    signal.throwIfAborted()
    // oxlint-disable-next-line no-await-in-loop -- yields to the event loop between two entities
    const passages = await readEntity(corpus, url, EFFORTS.preview)
    entities.push({ name, url, description: describe(name, passages) ?? '' })
  }
  return entities
}
