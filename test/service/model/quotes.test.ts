import { describe, expect, it } from 'vitest'
import type { Passage } from '../../../src/service/corpus/corpus.ts'
import { checkQuotes, findWords } from '../../../src/service/model/quotes.ts'

const passage = (url: string, text: string): Passage => ({
  url,
  title: url,
  publishDate: null,
  kind: 'page',
  text,
  hash: text,
  score: 1,
})
const PASSAGES = [
  passage('a', 'Acme was founded\n  in 2018.'),
  passage('b', 'Acme makes anvils. Globex too.'),
]

describe('quotes of a model', () => {
  it.each([
    ['stands there', 'Acme makes anvils', 2, 'b', 'Acme makes anvils'],
    ['has other white space, as the passage has it', 'was founded in 2018', 1, 'a', 'was founded\n  in 2018'],
    ['has the number of another passage', 'Globex too.', 1, 'b', 'Globex too.'],
    ['has a number that no passage has', 'Globex too.', 99, 'b', 'Globex too.'],
  ])('are kept: one that %s', (_, quote, number, url, excerpt) => {
    expect(checkQuotes([{ passage: number, quote }], PASSAGES)).toEqual({
      citations: [{ url, title: url, excerpts: [excerpt] }],
      dropped: 0,
    })
  })

  it.each([
    ['is invented', 'Acme was founded in Vienna'],
    ['changes a word', 'Acme makes anvil'],
    ['changes the case', 'acme makes anvils'],
    ['leaves words out', 'Acme anvils'],
    ['joins two passages', 'in 2018. Acme makes'],
    ['is part of a word', '018'],
    ['is empty', ''],
    ['is a space', ' '],
    ['is a single letter', 'a'],
  ])('are dropped: one that %s', (_, quote) => {
    expect(checkQuotes([{ passage: 1, quote }], PASSAGES)).toEqual({ citations: [], dropped: 1 })
  })

  it('are one citation for each document, without repeated excerpts', () => {
    const quote = { passage: 2, quote: 'Globex too.' }

    expect(checkQuotes([quote, { passage: 2, quote: 'anvils.' }, quote], PASSAGES).citations).toEqual([
      { url: 'b', title: 'b', excerpts: ['Globex too.', 'anvils.'] },
    ])
  })

  it('are found in a text that repeats their beginning a hundred thousand times', () => {
    expect(findWords('a b '.repeat(100_000) + 'a c', 'a c')).toBe('a c')
  })

  it('take bounded time, however often quotes and passages repeat a word', () => {
    const repeating = Array.from({ length: 27 }, (_, index) => passage(String(index), 'a '.repeat(600)))
    const quotes = Array.from({ length: 200 }, () => ({ passage: 1, quote: `${'a '.repeat(300)}b` }))
    const startedAt = performance.now()

    expect(checkQuotes(quotes, repeating).dropped).toBe(200)
    // The word-by-word comparison takes minutes.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  it('have the white space of the passage', () => {
    expect(findWords('  one\n\n two\tthree ', 'two three')).toBe('two\tthree')
    expect(findWords('  one\n\n two\tthree ', ' one two ')).toBe('one\n\n two')
  })
})
