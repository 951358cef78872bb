import { describe, expect, it } from 'vitest'
import { manifestLines, parseManifest } from '../../../src/service/corpus/manifest.ts'
import { corpusOf } from './folder.ts'

const textOf = (manifest: unknown) => parseManifest(JSON.stringify(manifest))?.text
const linesOf = (manifest: unknown) => manifestLines(textOf(manifest) ?? '')

const THING = {
  name: '@scope/thing',
  version: '1.2.3-beta.4',
  private: false,
  description: 'Turns "things" into — things',
  keywords: ['thing', 'two words'],
  scripts: { test: 'secret-script', license: 'GPL-3.0' },
  license: '(MIT OR Apache-2.0)',
  author: { name: 'Ann O’Nym', email: 'ann@example.org', url: 'https://example.org' },
  homepage: 'https://example.org/thing#readme',
  repository: { type: 'git', url: 'git+https://example.org/thing.git' },
  engines: { node: '>=20', npm: '>=10' },
}

describe('a manifest', () => {
  it('is a document of the members that describe the package, and its passages are parts of the file', async () => {
    const file = JSON.stringify(THING, null, 2)
    const corpus = await corpusOf({ 'thing/package.json': file, 'thing/other.json': '{}' })
    expect(corpus.size).toBe(1)
    const [passage] = corpus.passages({ queries: ['things'], limit: 2 })
    expect(passage).toMatchObject({
      title: '@scope/thing',
      kind: 'manifest',
      text: `"description": "Turns \\"things\\" into — things",
  "keywords": [
    "thing",
    "two words"
  ]`,
    })
    const text = corpus.document(passage?.url ?? '')?.text ?? ''
    const passages = text.split(',\n\n')
    expect(passages).toHaveLength(3)
    for (const one of passages) expect(file).toContain(one)
    expect(text).not.toContain('secret-script')
    expect(manifestLines(text)).toEqual([
      'name: @scope/thing',
      'version: 1.2.3-beta.4',
      'description: Turns "things" into — things',
      'keywords: thing, two words',
      'license: (MIT OR Apache-2.0)',
      'author: Ann O’Nym <ann@example.org> (https://example.org)',
      'homepage: https://example.org/thing#readme',
      'repository: git+https://example.org/thing.git',
      'engines.node: >=20',
    ])
  })

  it('is quoted as it is written, and what it states is read', () => {
    const file = String.raw`{"license":"Apache-2.0" ,
  "name" : "\u0061bc",${'\r\n\r\n'}"description":"two\n lines\u0000, \"quoted\"","x":[{"author":"B"}],
  "license" :  "MIT"}`
    const text = parseManifest(file)?.text ?? ''
    expect(text.split(',\n\n')).toEqual([
      String.raw`"name" : "\u0061bc",${'\r\n\r\n'}"description":"two\n lines\u0000, \"quoted\""`,
      '"license" :  "MIT"',
    ])
    expect(manifestLines(text)).toEqual(['name: abc', 'description: two lines , "quoted"', 'license: MIT'])
  })

  it('has passages of a bounded length', async () => {
    const long = Object.fromEntries(
      ['name', 'version', 'description', 'homepage', 'license'].map((name) => [name, `${name} `.repeat(90)]),
    )
    const corpus = await corpusOf({ 'a/package.json': JSON.stringify(long) })
    const passages = corpus.passages({ queries: Object.keys(long), limit: 9 })
    expect(passages.length).toBeGreaterThan(2)
    for (const { text } of passages) expect(text.length).toBeLessThan(1_300)
  })

  it.each([
    [{ license: { type: 'BSD', url: 'x' } }, 'license: BSD'],
    [{ licenses: [{ type: 'MIT' }, { type: 'GPL' }] }, 'license: MIT, GPL'],
    [{ author: 'Ann <ann@example.org>' }, 'author: Ann <ann@example.org>'],
    [{ repository: 'github:ann/thing' }, 'repository: github:ann/thing'],
    [{ keywords: 'one, two' }, 'keywords: one, two'],
    [{ description: 'two\n lines\u0000' }, 'description: two lines'],
  ])('takes %j as %s', (fields, line) => {
    expect(linesOf({ name: 'thing', ...fields })).toEqual(['name: thing', line])
  })

  it('leaves out members of another form, and those that are too long', () => {
    const hostile = {
      version: 1,
      description: 'x'.repeat(1_000_000 / 5),
      keywords: [{}, null, 7],
      license: { type: ['MIT'] },
      author: { email: 'a@b.example' },
      homepage: null,
      repository: [],
      engines: 'node',
    }
    expect(textOf({ name: 'thing', ...hostile, __proto__: null })).toBeUndefined()
    expect(textOf({ name: 'thing', ...hostile, homepage: 'https://a.example' })).toBe(
      '"name":"thing",\n\n"homepage":"https://a.example"',
    )
  })

  it('states nothing in a member that is cut', () => {
    expect(manifestLines('"name": "a",\n\n"license": "M')).toEqual(['name: a'])
    expect(manifestLines('"name": "a", "author": {"name": "{')).toEqual(['name: a'])
  })

  it.each([
    ['broken JSON', '{"name": "a", "version": '],
    ['a list', '[{"name": "a", "version": "1"}]'],
    ['null', 'null'],
    ['no name', '{"version": "1"}'],
    ['a blank name', '{"name": " ", "version": "1"}'],
    ['a name that is not a text', '{"name": {}, "version": "1"}'],
    ['only a name', '{"name": "a", "type": "module"}'],
    ['too long', JSON.stringify({ name: 'a', version: '1', more: 'x'.repeat(300_000) })],
    ['deeply nested', `{"name": "a", "version": ${'['.repeat(60_000)}`],
  ])('that is %s is no document', async (_, source) => {
    const corpus = await corpusOf({ 'a/package.json': source, 'b.md': 'word' })
    expect(corpus.size).toBe(1)
  })
})
