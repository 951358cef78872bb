import { describe, expect, it } from 'vitest'
import { corpusOf, type Files, folderOf } from './folder.ts'

const SITE = 'https://docs.example'
const filler = (topic: string) =>
  `More words about ${topic} follow here, for the length of a passage. `.repeat(12)
const manifest = (name: string, description: string) => JSON.stringify({ name, description, license: 'MIT' })

/** Searches a folder of these files: the paths of the documents that are found, best first. */
async function ranked(files: Files) {
  const folder = await folderOf(files)
  const corpus = await corpusOf({}, { folders: [{ folder, site: SITE }], enter: () => true })
  return (...queries: string[]) =>
    corpus
      .search({ queries, limit: 10 }, { charactersPerResult: 500, excerptsPerResult: 2 })
      .map(({ url }) => decodeURIComponent(url.slice(SITE.length + 1)))
}

describe('the ranking of documents', () => {
  it('prefers the package that is described by the query to one that mentions its words in many places', async () => {
    const search = await ranked({
      'logger/package.json': manifest('logger', 'Very fast structured JSON logs for node'),
      'logger/README.md': `# logger\n\nLow overhead.\n\n${filler('speed')}`,
      'api/package.json': manifest('api', 'The official library of an API'),
      'api/README.md': `# api\n\nAn API.\n\n## Structured outputs\n\nstructured structured structured ${filler('structured')}\n\n## JSON\n\nJSON JSON JSON ${filler('JSON')}`,
      'other/README.md': `# other\n\n${filler('node')}`,
    })
    expect(search('structured JSON logger for node')[0]).toBe('logger/README.md')
  })

  it('shows the README of a manifest that has the words, although the README has none of them', async () => {
    const search = await ranked({
      'tiny/package.json': manifest('tiny', 'Walks up the parents of a path'),
      'tiny/README.md': '# tiny\n\nIt is small.',
      'big/README.md': '# big\n\nIt has no such thing.',
    })
    expect(search('parents of a path')).toEqual(['tiny/README.md', 'tiny/package.json'])
  })

  it('counts the description of a manifest for more than the beginning of a README', async () => {
    const search = await ranked({
      'one/package.json': manifest('one', 'A valve for steam'),
      'one/README.md': `# one\n\n${filler('pipes')}`,
      'two/README.md': `# two\n\nA valve for steam. ${filler('pipes')}`,
    })
    expect(search('steam valve')[0]).toBe('one/README.md')
  })

  it('has documents with a rare word before those with common words alone, and these where there are no others', async () => {
    const common = Array.from({ length: 250 }, (_, index): [string, string] => [
      `common${index}.md`,
      `# Number ${index}\n\nplain words`,
    ])
    const search = await ranked({
      ...Object.fromEntries(common),
      'rare.md': '# Other\n\nthe word quokka',
      'both.md': '# Another\n\nplain quokka',
    })
    const found = search('quokka plain')
    expect(found.slice(0, 2)).toEqual(['both.md', 'rare.md'])
    expect(found).toHaveLength(10)
  })

  it('finds as many documents as are wanted behind many with equal texts', async () => {
    const search = await ranked(
      Object.fromEntries(
        Array.from({ length: 60 }, (_, index): [string, string] => [
          `${index}.md`,
          index < 48 ? 'alpha beta' : `alpha beta ${filler(`thing${index}`)}`,
        ]),
      ),
    )
    expect(new Set(search('alpha beta')).size).toBe(10)
  })

  it('counts the passages of a document together', async () => {
    const section = (word: string) => `## On ${word}\n\n${word} is here. ${filler('things')}`
    const search = await ranked({
      'one.md': `# One\n\n${section('alpha')}\n\n${section('gamma')}`,
      'two.md': `# Two\n\n${section('alpha')}\n\n${section('beta')}`,
      'three.md': `# Three\n\n${section('beta')}\n\n${section('gamma')}`,
      'four.md': `# Four\n\n${section('delta')}`,
    })
    expect(search('alpha beta')[0]).toBe('two.md')
    expect(search('beta gamma')[0]).toBe('three.md')
  })

  const engine = {
    'engine/CHANGELOG.md': '# Changes\n\nThe engine has a valve. The valve of the engine opens.',
    'engine/LICENSE': 'The valve of the engine comes without a warranty. The valve, the engine.',
    'engine/README.md': `# engine\n\nThe engine has a valve. ${filler('pistons')}`,
  }

  it('has the README before the changelog and the licence, unless the query asks for one of them', async () => {
    const search = await ranked(engine)
    expect(search('engine valve')).toEqual(['engine/README.md', 'engine/CHANGELOG.md', 'engine/LICENSE'])
    expect(search('changes of the engine valve')[0]).toBe('engine/CHANGELOG.md')
    expect(search('licence of the engine valve')[0]).toBe('engine/LICENSE')
  })

  it('has copies in other packages after the original', async () => {
    const search = await ranked({
      'app/node_modules/schema/README.md': '# schema\n\nValidates schemas with types.',
      'schema/README.md': '# schema\n\nValidates schemas with types. And more.',
      'app/README.md': '# app\n\nAn app.',
    })
    expect(search('validates schemas with types')).toEqual([
      'schema/README.md',
      'app/node_modules/schema/README.md',
    ])
  })

  it.each([
    ['colours', 'Strips the colors of a text'],
    ['color', 'Strips the colours of a text'],
    ['licence texts', 'Reads a license from a file'],
    ['serialise', 'It serializes values'],
    ['normalization', 'The normalisation of names'],
    ['behaviours', 'Describes a behavior'],
    ['centre', 'Put it in the center'],
    ['analyzer', 'An analyser of code'],
    ['cancelled', 'A canceled request'],
    ['catalog', 'A catalogue of things'],
    ['websocket', 'A web socket of your own'],
    ['web socket', 'Opens a WebSocket'],
    ['json5', 'Reads JSON 5 files'],
    ['json 5', 'Reads JSON5 files'],
    ['node.js', 'For node alone'],
    ['libraries', 'A library'],
  ])('finds %s in "%s"', async (query, text) => {
    const search = await ranked({ 'found.md': text, 'other.md': 'Nothing of the kind' })
    expect(search(query)).toEqual(['found.md'])
  })

  it('is the same for the same documents in another order', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [`p${i}/README.md`, `# p${i}\n\nA word and number ${i % 4}.`]),
    )
    const one = await ranked(files)
    expect(one('word number 2')).toEqual(one('word number 2'))
    expect(one('word number 2').slice(0, 5).toSorted()).toEqual(
      [2, 6, 10, 14, 18].map((i) => `p${i}/README.md`).toSorted(),
    )
  })
})

describe('a search with many words', () => {
  const words = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => `common${from + i}`).join(' ')

  async function corpusOfMany() {
    const documents = Array.from({ length: 41 }, (_, i): [string, string] => [
      `topic${i}.md`,
      `# Topic ${i}\n\nIt is about special${i} only.`,
    ])
    const padding = Array.from({ length: 5 }, (_, i): [string, string] => [
      `padding${i}.md`,
      `padding ${i} ${words(0, 600)}`,
    ])
    return corpusOf(Object.fromEntries([...documents, ...padding]))
  }

  it('finds the documents of each of 40 queries and of the objective', async () => {
    const corpus = await corpusOfMany()
    const queries = Array.from({ length: 40 }, (_, i) => `${words(i * 10, 10)} special${i}`)
    const query = { queries, objective: `${words(0, 500)} special40`, limit: 46 }
    const found = corpus.search(query, { charactersPerResult: 200, excerptsPerResult: 1 })
    const titles = found.map(({ title }) => title)
    expect(titles).toEqual(expect.arrayContaining(Array.from({ length: 41 }, (_, i) => `Topic ${i}`)))
  })

  it('keeps the rarest words of each query, and names the others', async () => {
    const corpus = await corpusOfMany()
    const query = { queries: [words(0, 200), `${words(300, 100)} special7`], objective: 'special9' }
    const unused = corpus.unusedTerms(query)
    expect(unused).toHaveLength(302 - 64)
    expect(unused).not.toContain('special7')
    expect(unused).not.toContain('special9')
    expect(corpus.unusedTerms({ queries: ['a few words'], objective: 'and an objective' })).toEqual([])
  })

  it('reads queries of 5,000 characters', async () => {
    const corpus = await corpusOfMany()
    const long = `${words(0, 600).slice(0, 4_980)} special3`
    const found = corpus.search(
      { queries: [long, long], objective: long, limit: 10 },
      { charactersPerResult: 200, excerptsPerResult: 1 },
    )
    expect(found.map(({ title }) => title)).toContain('Topic 3')
  })
})
