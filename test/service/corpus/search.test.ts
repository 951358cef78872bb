import * as fc from 'fast-check'
import type { Corpus, CorpusQuery } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { corpusOf } from './folder.ts'

const BUDGET = { charactersPerResult: 2_000, excerptsPerResult: 3 }
const long = (topic: string) => `${topic} is discussed here at some length. `.repeat(15)

function urls(corpus: Corpus, query: Partial<CorpusQuery>): string[] {
  return corpus.search({ queries: [], limit: 10, ...query }, BUDGET).map(({ url }) => url)
}

describe('search', () => {
  it('ranks documents by all queries and the objective together', async () => {
    const corpus = await corpusOf({
      'a.example/one.md': 'Solid state batteries and their electrolytes.',
      'a.example/two.md': 'Batteries of questions in an exam.',
      'a.example/three.md': 'Nothing of the kind.',
    })
    expect(urls(corpus, { queries: ['batteries'], objective: 'electrolytes of solid state cells' })).toEqual([
      'https://a.example/one.md',
      'https://a.example/two.md',
    ])
  })

  it('finds other forms of a word, ignoring case and accents', async () => {
    const corpus = await corpusOf({ 'a.md': 'The Cafés were retried.' })
    expect(urls(corpus, { queries: ['CAFE'] })).toHaveLength(1)
    expect(urls(corpus, { queries: ['retrying'] })).toHaveLength(1)
  })

  it('prefers a document whose title has the words', async () => {
    const corpus = await corpusOf({
      'x.example/body.md': '# Other\n\nA word on lithium and more words.',
      'x.example/title.md': '# Lithium\n\nA word on metals and more words.',
    })
    expect(urls(corpus, { queries: ['lithium'] })[0]).toBe('https://x.example/title.md')
  })

  it('returns verbatim excerpts of the document, within the budget', async () => {
    const sections = Array.from({ length: 12 }, (_, i) => `## Part ${i}\n\n${long(`topic${i % 3}`)}\r\n`)
    const corpus = await corpusOf({ 'a.md': sections.join('\n\n') })
    const [hit] = corpus.search({ queries: ['topic1'], limit: 1 }, BUDGET)
    const text = corpus.document(hit?.url ?? '')?.text
    expect(hit?.excerpts.length).toBeGreaterThan(0)
    expect(hit?.excerpts.length).toBeLessThanOrEqual(3)
    expect(hit?.excerpts.join('').length).toBeLessThanOrEqual(2_000)
    expect(hit?.excerpts[0]).toContain('topic1')
    for (const excerpt of hit?.excerpts ?? []) expect(text).toContain(excerpt)
  })

  it('joins adjacent passages into one excerpt', async () => {
    const corpus = await corpusOf({ 'a.md': `## One\n\n${long('alpha')}\n\n## Two\n\n${long('beta')}` })
    const [hit] = corpus.search(
      { queries: ['alpha beta'], limit: 1 },
      { charactersPerResult: 5_000, excerptsPerResult: 5 },
    )
    expect(hit?.excerpts).toEqual([corpus.document(hit?.url ?? '')?.text])
  })

  it('truncates an excerpt that is too long after a word', async () => {
    const corpus = await corpusOf({ 'a.md': 'reading words '.repeat(60) })
    const [hit] = corpus.search(
      { queries: ['words'], limit: 1 },
      { charactersPerResult: 100, excerptsPerResult: 1 },
    )
    expect(hit?.excerpts[0]).toMatch(/^(?:reading words )*reading(?: words)?$/)
    expect(hit?.excerpts[0]?.length).toBeLessThanOrEqual(100)
  })

  it('counts documents with the same text once', async () => {
    const text = '# Same\n\nThe very same words.'
    const corpus = await corpusOf({
      'a.example/x.md': text,
      'b.example/x.md': text,
      'c.example/y.md': 'other words',
    })
    expect(urls(corpus, { queries: ['words'] })).toHaveLength(2)
    expect(corpus.passages({ queries: ['same'], limit: 10 })).toHaveLength(1)
  })

  it('finds enough documents when the best passages are all in one', async () => {
    const big = Array.from({ length: 200 }, (_, i) => `## Part ${i}\n\ntarget target`).join('\n\n')
    const corpus = await corpusOf({ 'a.example/big.md': big, 'b.example/small.md': `target ${long('else')}` })
    expect(urls(corpus, { queries: ['target'], limit: 2 })).toHaveLength(2)
  })

  it('sorts hits by their scores, and gives each the title of its document', async () => {
    const corpus = await corpusOf(
      Object.fromEntries(
        Array.from({ length: 12 }, (_, i) => [
          `s${i}.example/a.md`,
          `# Report ${i}\n\n${'river '.repeat(i + 1)}${long('bank')}\n\n## More\n\n${long(`river ${i}`)}`,
        ]),
      ),
    )
    const hits = corpus.search({ queries: ['river report'], limit: 5 }, BUDGET)
    expect(hits).toHaveLength(5)
    expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).toSorted((a, b) => b - a))
    expect(hits.map(({ url, title }) => ({ url, title }))).toEqual(
      hits.map(({ url }) => ({ url, title: corpus.document(url)?.title })),
    )
  })

  it('shows the better of two documents with the same text, and fills the limit with others', async () => {
    const corpus = await corpusOf({
      'a.example/plain.md': 'tide tables\n',
      'b.example/tide.md': 'tide tables',
      'c.example/other.md': 'tide and more of other things',
    })
    expect(urls(corpus, { queries: ['tide'], limit: 2 })).toEqual([
      'https://b.example/tide.md',
      'https://c.example/other.md',
    ])
  })

  it('shows the neighbours of a passage on both sides, and none of another document', async () => {
    const corpus = await corpusOf({
      'a.example/a.md': long('first'),
      'b.example/b.md': ['before', 'needle', 'behind']
        .map((word) => `## ${word}\n\n${long(word)}`)
        .join('\n\n'),
      'c.example/c.md': long('third'),
    })
    const [hit] = corpus.search(
      { queries: ['needle'], limit: 1 },
      { charactersPerResult: 50_000, excerptsPerResult: 8 },
    )
    expect(hit?.excerpts).toEqual([corpus.document('https://b.example/b.md')?.text])
  })

  it('is deterministic', async () => {
    const corpus = await corpusOf(
      Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`s${i}.example/a.md`, `word number${i}`])),
    )
    expect(urls(corpus, { queries: ['word'], limit: 7 })).toEqual(
      urls(corpus, { queries: ['word'], limit: 7 }),
    )
  })

  it('obeys the limit, and finds nothing for an empty query', async () => {
    const corpus = await corpusOf({ 'a.md': 'word a', 'b.md': 'word b' })
    expect(urls(corpus, { queries: ['word'], limit: 1 })).toHaveLength(1)
    expect(urls(corpus, { queries: [] })).toEqual([])
    expect(urls(corpus, { queries: ['', ' *** '] })).toEqual([])
    expect(urls(corpus, { queries: ['word'], limit: 0 })).toEqual([])
  })

  it('ignores stop words unless there are no other words', async () => {
    const corpus = await corpusOf({ 'a.md': 'to be or not to be', 'b.md': 'a batteries primer' })
    expect(urls(corpus, { queries: ['to the batteries'] })).toHaveLength(1)
    expect(urls(corpus, { queries: ['to be'] })).toHaveLength(1)
  })
})

describe('a source policy', () => {
  const files = {
    'mit.edu/a.md': '---\ndate: 2024-01-01\n---\nword one',
    'lab.mit.edu/b.md': '---\ndate: 2023-01-01\n---\nword two',
    'notmit.edu/c.md': '---\ndate: 2022-01-01\n---\nword three',
    'example.org/d.md': '---\ndate: 2021-01-01\n---\nword four',
    'plain/e.md': '---\ndate: 2020-01-01\n---\nword five',
  }
  const names = (found: string[]) =>
    found
      .map((url) => url.at(-4))
      .toSorted()
      .join('')

  it.each([
    [{ include_domains: ['mit.edu'] }, 'ab'],
    [{ include_domains: ['.edu'] }, 'abc'],
    [{ include_domains: ['MIT.edu', 'example.org'] }, 'abd'],
    [{ include_domains: [] }, 'abcde'],
    [{ exclude_domains: ['.edu'] }, 'de'],
    [{ exclude_domains: ['lab.mit.edu'] }, 'acde'],
    [{ include_domains: ['.edu'], exclude_domains: ['mit.edu'] }, 'c'],
    [{ after_date: '2022-01-01' }, 'abc'],
    [{ after_date: '2022-01-02', include_domains: ['.edu'] }, 'ab'],
    [{ include_domains: ['it.edu'] }, ''],
  ])('%j allows %s', async (sourcePolicy, expected) => {
    const corpus = await corpusOf(files)
    expect(names(urls(corpus, { queries: ['word'], sourcePolicy }))).toBe(expected)
    expect(names(corpus.passages({ queries: ['word'], limit: 9, sourcePolicy }).map(({ url }) => url))).toBe(
      expected,
    )
  })
})

describe('a name', () => {
  it.each([
    ['rxjs', ['rxjs/README.md']],
    ['@hono/node-server', ['@hono/node-server/README.md']],
    ['hono', ['hono/README.md']],
    ['Guide', ['docs/guide.md']],
    ['the manual', ['docs/other.md']],
    ['%', []],
  ])('%s restricts a search to the documents with that name', async (about, expected) => {
    const corpus = await corpusOf({
      'rxjs/README.md': 'word one',
      '@hono/node-server/README.md': 'word two',
      'hono/README.md': 'word three',
      'docs/guide.md': 'word four',
      'docs/other.md': '# The Manual\n\nword five',
    })
    const found = urls(corpus, { queries: ['word'], about })
    expect(found.map((url) => expected.find((path) => url.endsWith(`/${path}`)))).toEqual(expected)
  })
})

describe('passages', () => {
  it('need all significant terms of one query in the passage and its title with match all', async () => {
    const corpus = await corpusOf({
      'both.md': 'a new release of the engine',
      'title.md': '# Engine\n\na new release',
      'half.md': 'a new engine',
      'engine/folder.md': 'a release elsewhere',
    })
    const found = corpus.passages({ queries: ['the release of engines', 'zebra'], match: 'all', limit: 10 })
    expect(found.map(({ url }) => url.replace(/.*\//, '')).toSorted()).toEqual(['both.md', 'title.md'])
  })

  it('match each of several queries with many terms, and name the terms of one that has too many', async () => {
    const words = (name: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${name}${index}x`).join(' ')
    const corpus = await corpusOf({
      'first.md': words('alpha', 20),
      'second.md': words('beta', 20),
      'third.md': words('gamma', 32),
      'half.md': words('gamma', 31),
      'long.md': words('delta', 33),
    })
    const query = {
      queries: [words('alpha', 20), words('beta', 20), words('gamma', 32), words('delta', 33)],
      match: 'all' as const,
    }
    const found = corpus.passages({ ...query, limit: 10 })
    expect(found.map(({ url }) => url.replace(/.*\//, '')).toSorted()).toEqual([
      'first.md',
      'second.md',
      'third.md',
    ])
    expect(corpus.unusedTerms(query)).toEqual(words('delta', 33).split(' '))
  })

  it('carry a hash of their text and document', async () => {
    const text = 'the same passage'
    const corpus = await corpusOf({ 'a.md': `# A\n\n${text}`, 'b.md': `# B\n\n${text}` })
    const hashes = () => corpus.passages({ queries: ['passage'], limit: 10 }).map(({ hash }) => hash)
    expect(new Set(hashes()).size).toBe(2)
    expect(hashes()).toEqual(hashes())
  })

  it('are sorted best first, with comparable scores', async () => {
    const corpus = await corpusOf({ 'a.md': 'alpha beta', 'b.md': 'alpha gamma' })
    const scores = corpus.passages({ queries: ['alpha beta'], limit: 10 }).map(({ score }) => score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
  })
})

describe('whatever users write', () => {
  const files = {
    'a.md': `# Title\n\n${long('near text')}\n\n## Café 🌍\n\n${long('title col')}`,
    'b.txt': 'x'.repeat(5_000),
  }

  it.each([
    '"',
    'NEAR(',
    'a*',
    'title:near',
    'text : x',
    '^a',
    '-a',
    '{a b}:c',
    "'; DROP TABLE corpus_files; --",
    'AND',
    'OR NOT',
    '(',
    '\0',
    '\uD800',
    '\u0301',
  ])('treats %j as words, not as FTS5 syntax', async (query) => {
    const corpus = await corpusOf(files)
    for (const match of ['any', 'all'] as const) {
      expect(() => corpus.passages({ queries: [query, `${query} near`], match, limit: 5 })).not.toThrow()
    }
    expect(urls(corpus, { queries: ['near'] })).toHaveLength(1)
  })

  it('never fails, and quotes documents verbatim', async () => {
    const corpus = await corpusOf(files)
    const words = fc.constantFrom(
      'near',
      'title',
      'text',
      'NEAR(',
      '"',
      '*',
      ':',
      'café',
      '🌍',
      'AND',
      'x'.repeat(70),
    )
    const query = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(words).map((list) => list.join(' ')),
    )
    fc.assert(
      fc.property(
        fc.array(query, { maxLength: 4 }),
        fc.option(query, { nil: undefined }),
        fc.constantFrom('any' as const, 'all' as const),
        fc.integer({ min: 1, max: 3_000 }),
        fc.integer({ min: 0, max: 4 }),
        (queries, objective, match, charactersPerResult, excerptsPerResult) => {
          const hits = corpus.search(
            { queries, objective, match, limit: 5 },
            { charactersPerResult, excerptsPerResult },
          )
          for (const { url, excerpts } of hits) {
            const text = corpus.document(url)?.text ?? ''
            expect(excerpts.length).toBeLessThanOrEqual(excerptsPerResult)
            expect(excerpts.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(
              charactersPerResult,
            )
            for (const excerpt of excerpts) expect(text.includes(excerpt)).toBe(true)
          }
        },
      ),
    )
  })
})
