import { describe, expect, it } from 'vitest'
import { withoutName } from '../../bench/quality/search/describe.ts'
import { packageOf, rankOf, searchFigures } from '../../bench/quality/search/rank.ts'

const at = (path: string) => ({ url: `file:///p/node_modules/${path}` })
const query = { subject: 'pino', kind: 'description' } as const

describe('the rank of a package', () => {
  it('is that of the first document of its own folder', () => {
    const results = [at('ajv/README.md'), at('pino/CHANGELOG.md'), at('pino/README.md')]
    expect(rankOf(query, results, undefined).rank).toBe(2)
  })

  it('counts no other package whose name begins alike, and none nested in it', () => {
    const results = [
      at('pino-x/README.md'),
      at('pino/node_modules/ajv/README.md'),
      at('x/node_modules/pino/README.md'),
    ]
    expect(rankOf(query, results, undefined).rank).toBeUndefined()
    expect(packageOf(at('@hono/node-server/README.md').url)).toBe('@hono/node-server')
  })

  it('counts a README with the same text, since the service returns one of them', () => {
    const copy = { ...at('pino-copy/README.md'), readme: '# pino' }
    expect(rankOf(query, [copy], '# pino').rank).toBe(1)
    expect(rankOf(query, [copy], '# other').rank).toBeUndefined()
    expect(rankOf(query, [at('ajv/README.md')], undefined).rank).toBeUndefined()
  })

  it('is undefined beyond the tenth result', () => {
    const others = Array.from({ length: 10 }, () => at('ajv/README.md'))
    expect(rankOf(query, [...others, at('pino/README.md')], undefined).rank).toBeUndefined()
  })

  it('is measured without manifests too', () => {
    const results = [
      at('pino/package.json'),
      at('ajv/package.json'),
      at('ajv/README.md'),
      at('pino/README.md'),
    ]
    expect(rankOf(query, results, undefined)).toMatchObject({ rank: 1, withoutManifests: 2 })
  })
})

describe('the figures of searches', () => {
  it('are shares of all queries, and the mean reciprocal rank', () => {
    const figures = searchFigures([
      { kind: 'description', rank: 1, withoutManifests: 4 },
      { kind: 'paraphrase', rank: undefined, withoutManifests: undefined },
    ])
    const value = (name: string) => figures.find((figure) => figure.name === name)?.value
    expect([value('first 10'), value('first 3'), value('MRR')]).toEqual([0.5, 0.5, 0.5])
    expect(value('without manifests: first 3')).toBe(0)
    expect(value('descriptions: without manifests: MRR')).toBe(0.25)
  })
})

describe('a description without the name', () => {
  it('keeps words that have the name in them', () => {
    expect(withoutName('React is a library. Reactive too, and react-dom', 'react')).toBe(
      'is a library. Reactive too, and react-dom',
    )
    expect(withoutName('Markdown-it - modern parser 🎶', 'markdown-it')).toBe('modern parser')
  })
})
