import { describe, expect, it } from 'vitest'
import { distinguishing } from '../../../src/service/corpus/distinguishing-terms.ts'

const term = (word: string, passages: number, weight: number) => ({
  word,
  forms: [word],
  isKnown: true,
  passages,
  weight,
})
const searched = (...queries: ReturnType<typeof term>[][]) =>
  distinguishing({ queries, dropped: [] })?.map(({ word }) => word)

describe('distinguishing', () => {
  it('leaves out common terms of little weight, the commonest first', () => {
    const [rare, common, commonest] = [term('a', 20, 6), term('b', 900, 1.5), term('c', 5_000, 0.5)]
    expect(searched([commonest, rare, common])).toEqual(['a'])
    expect(searched([commonest, rare], [common, term('d', 900, 1.5)])).toEqual(['a', 'b', 'd'])
  })

  it('keeps terms that are most of a query', () => {
    expect(searched([term('a', 5_000, 1), term('b', 4_000, 1.2)])).toBeUndefined()
    expect(searched([term('a', 20, 6), term('c', 5_000, 0.5)], [term('c', 5_000, 0.5)])).toBeUndefined()
  })

  it('keeps all terms where few passages would be left out', () => {
    expect(searched([term('a', 20, 6), term('b', 100, 1)])).toBeUndefined()
    expect(searched([term('a', 5_000, 6), term('b', 4_900, 1)])).toBeUndefined()
  })

  it('keeps all terms of a search without terms', () => {
    expect(searched()).toBeUndefined()
  })
})
