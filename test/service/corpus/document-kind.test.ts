import { describe, expect, it } from 'vitest'
import { documentKind } from '../../../src/service/corpus/document-kind.ts'
import { corpusOf } from './folder.ts'

describe('the kind of a document', () => {
  it.each([
    ['a/README.md', 'readme'],
    ['readme', 'readme'],
    ['README.zh-CN.md', 'readme'],
    ['a/package.json', 'manifest'],
    ['package-lock.json', 'page'],
    ['CHANGELOG.md', 'changelog'],
    ['History.markdown', 'changelog'],
    ['changes.txt', 'changelog'],
    ['LICENSE', 'licence'],
    ['licence.md', 'licence'],
    ['LICENSE-MIT', 'licence'],
    ['COPYING', 'licence'],
    ['LICENSE-3rdparty.csv', 'page'],
    ['ThirdPartyNotices.txt', 'page'],
    ['licensing.md', 'page'],
    ['readme/guide.md', 'page'],
    ['historical.md', 'page'],
  ])('of %s is %s', (path, kind) => expect(documentKind(path)).toBe(kind))

  it('is that of its hits, passages and entity', async () => {
    const corpus = await corpusOf({ 'a/README.md': 'word one', 'a/LICENSE': 'word two' })
    const kinds = (documents: readonly { readonly kind: string }[]) =>
      documents.map(({ kind }) => kind).toSorted()
    const query = { queries: ['word'], limit: 9 }
    const hits = corpus.search(query, { charactersPerResult: 100, excerptsPerResult: 1 })
    expect(kinds(hits)).toEqual(['licence', 'readme'])
    expect(kinds(corpus.passages(query))).toEqual(['licence', 'readme'])
    expect(hits.map(({ url, kind }) => corpus.document(url)?.kind === kind)).toEqual([true, true])
    expect(corpus.entity(hits[0]?.url ?? '', 9)?.documents.map(({ kind }) => kind)).toEqual([
      'readme',
      'licence',
    ])
  })
})
