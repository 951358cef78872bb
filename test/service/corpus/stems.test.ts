import { describe, expect, it } from 'vitest'
import { createStemmer, stem } from '../../../src/service/corpus/stems.ts'
import { corpusOf } from './folder.ts'

describe('stem', () => {
  it.each([
    ['installed', 'installation'],
    ['licensed', 'licensing'],
    ['requires', 'requirement'],
    ['releases', 'released'],
    ['cafés', 'cafe'],
    ['e\u0301t\u00e9', 'ete'],
  ])('of %s is that of %s', (one, other) => expect(stem(one)).toBe(stem(other)))

  it.each([
    ['version', 'versatile'],
    ['日本語', '日本'],
  ])('of %s is not that of %s', (one, other) => expect(stem(one)).not.toBe(stem(other)))

  it('is the same after any number of other words, and for words without tokens', () => {
    const stemOf = createStemmer(10)
    const before = stemOf('operators')
    for (let index = 0; index < 100; index++) stemOf(`word${index}`)
    expect([stemOf('operators'), stemOf('-')]).toEqual([before, '-'])
  })

  it('is consistent with searches', async () => {
    const corpus = await corpusOf({ 'a.md': 'It was installing daemons.' })
    const found = (query: string) => corpus.passages({ queries: [query], limit: 1 }).length > 0
    const words = ['install', 'installations', 'daemon', 'demon', 'instance']
    expect(words.filter(found)).toEqual(
      words.filter((word) => [stem('installing'), stem('daemons')].includes(stem(word))),
    )
  })
})
