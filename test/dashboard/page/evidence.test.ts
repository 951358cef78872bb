import { describe, expect, it } from 'vitest'
import { linkAddress, siteOf } from '../../../src/dashboard/page/evidence/address.ts'
import {
  countSources,
  lowestConfidence,
  oneLine,
  readOutput,
  summaryOf,
} from '../../../src/dashboard/page/evidence/evidence.ts'
import { findPassage } from '../../../src/dashboard/page/evidence/passage.ts'

describe('a passage in its document', () => {
  const found = (text: string, excerpt: string) => {
    const passage = findPassage(text, excerpt)
    return passage && text.slice(passage.from, passage.to)
  }

  it.each([
    ['as it stands', 'One. Two and three. Four.', 'Two and three.', 'Two and three.'],
    ['with other white space', 'One.\n\nTwo\n  and three. Four.', 'Two and three.', 'Two\n  and three.'],
    ['without the marks of Markdown', '# A **bold** `claim` here', 'a bold claim', 'A **bold** `claim'],
    [
      'by its longest piece, where it was shortened',
      'Once upon a time there was a library. Then came the streams.',
      'Long gone beginning … there was a library. Then came',
      'there was a library. Then came',
    ],
    [
      'with letters that become two when they are lower case',
      'İİİ Zürich lies there',
      'zürich LIES',
      'Zürich lies',
    ],
  ])('is found %s', (_, text, excerpt, passage) => {
    expect(found(text, excerpt)).toBe(passage)
  })

  it.each(['', '   ', 'elsewhere', '… ', '***'])('is not found for %j', (excerpt) => {
    expect(found('One. Two and three.', excerpt)).toBeUndefined()
  })

  it('is found in a document of megabytes', () => {
    const text = `${'a b '.repeat(500_000)}the  end`
    expect(found(text, 'The end')).toBe('the  end')
  })
})

describe('an address', () => {
  it.each([
    ['https://a.example/b', 'https://a.example/b'],
    ['http://a.example', 'http://a.example/'],
    ['javascript:alert(1)', undefined],
    ['JAVASCRIPT:alert(1)', undefined],
    ['\u0001javascript:alert(1)', undefined],
    ['data:text/html,x', undefined],
    ['file:///etc/passwd', undefined],
    ['https://user:secret@a.example/', undefined],
    ['/relative', undefined],
    ['', undefined],
  ])('%j is the link %s', (url, link) => {
    expect(linkAddress(url)).toBe(link)
  })

  it.each([
    ['https://www.a.example:8080/b', 'a.example:8080'],
    ['file:///docs/guide.md', 'guide.md'],
    ['not a url', 'not a url'],
  ])('%j is of the site %s', (url, site) => {
    expect(siteOf(url)).toBe(site)
  })
})

describe('an output', () => {
  it.each([[null], [undefined], ['text'], [[]], [{}], [{ type: 'text', content: null }]])(
    '%o is none',
    (output) => {
      expect(readOutput(output)).toEqual({ kind: 'none' })
      expect(summaryOf(output)).toBe('')
    },
  )

  it('has the evidence of its fields, of which each part may be absent or of another type', () => {
    const basis = [
      null,
      {},
      { field: 'a' },
      {
        field: 'b',
        reasoning: 5,
        confidence: 'low',
        citations: [null, { url: 1 }, { url: 'https://a.example', title: ' ', excerpts: ['x', null, ''] }],
      },
      { field: 'c', reasoning: 'so', confidence: null, citations: 'none' },
    ]
    expect(readOutput({ type: 'text', content: 'It is.', basis })).toEqual({
      kind: 'text',
      text: 'It is.',
      evidence: [
        { field: 'a', reasoning: '', confidence: undefined, sources: [] },
        {
          field: 'b',
          reasoning: '',
          confidence: 'low',
          sources: [{ url: 'https://a.example', title: undefined, excerpts: ['x'] }],
        },
        { field: 'c', reasoning: 'so', confidence: undefined, sources: [] },
      ],
    })
  })

  it('is shown as fields where its content is no text', () => {
    expect(readOutput({ content: { a: 1 } })).toEqual({ kind: 'fields', fields: [['a', 1]], evidence: [] })
    expect(readOutput({ content: [1] })).toEqual({ kind: 'fields', fields: [['output', [1]]], evidence: [] })
  })

  it('has a summary of its plain values, in one line', () => {
    const content = { name: 'A\n B', year: 2026, list: ['x', { deep: 1 }], none: null, is: false }
    expect(summaryOf({ type: 'json', content })).toBe('A B · 2026 · x · false')
    expect(summaryOf({ content: '## Install\n> `npm i` **now**\n```sh\n- a * b\n```' })).toBe(
      'Install npm i now a * b',
    )
    expect(oneLine(`${'word '.repeat(1_000)}`, 12)).toBe('word word wo…')
  })

  it('is as sure as the field that is the least sure', () => {
    const of = (...levels: (string | undefined)[]) =>
      lowestConfidence(levels.map((confidence) => ({ field: 'a', reasoning: '', confidence, sources: [] })))
    expect(of('high', 'medium', undefined)).toBe('medium')
    expect(of('high', 'enormous')).toBe('high')
    expect(of(undefined)).toBeUndefined()
  })

  it('counts each source once', () => {
    const source = (url: string) => ({ url, title: undefined, excerpts: [] })
    const field = { field: 'a', reasoning: '', confidence: undefined }
    expect(
      countSources([
        { ...field, sources: [source('a'), source('b')] },
        { ...field, sources: [source('a')] },
      ]),
    ).toBe(2)
  })
})
