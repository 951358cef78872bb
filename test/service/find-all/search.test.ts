import { describe, expect, it } from 'vitest'
import type { Corpus } from '../../../src/service/corpus/corpus.ts'
import { findCandidates } from '../../../src/service/find-all/search.ts'
import { LIBRARIES } from './caller.ts'

describe('the search for candidates', () => {
  it('gives other work its turn between the documents', async () => {
    let [turn, calls, longest] = [0, 0, 0]
    let last = turn
    const source = (url: string) => ({ url, title: url, publishDate: null, kind: 'readme' as const })
    const corpus: Pick<Corpus, 'search' | 'entity'> = {
      search: ({ limit }) =>
        Array.from({ length: limit }, (_, index) => ({
          ...source(`https://a.example/${index}`),
          excerpts: [],
          score: 1,
        })),
      entity: (url) => {
        calls = last === turn ? calls + 1 : 1
        last = turn
        longest = Math.max(longest, calls)
        return { name: url, url, documents: [source(url)] }
      },
    }
    let isOver = false
    const tick = () => {
      turn += 1
      if (!isOver) setImmediate(tick)
    }
    tick()
    const { candidates, hasMore } = await findCandidates(corpus, [LIBRARIES.objective], 1_000)
    isOver = true

    expect(candidates).toHaveLength(1_000)
    expect(hasMore).toBe(true)
    expect(longest).toBeLessThanOrEqual(64)
  })
})
