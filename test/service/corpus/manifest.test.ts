import { describe, expect, it } from 'vitest'
import { parseManifest } from '../../../src/service/corpus/manifest.ts'
import { corpusOf } from './folder.ts'

const textOf = (manifest: unknown) => parseManifest(JSON.stringify(manifest))?.text

describe('a manifest', () => {
  it('is a document with a line for each field that describes the package, word for word', async () => {
    const manifest = {
      name: '@scope/thing',
      version: '1.2.3-beta.4',
      private: false,
      description: 'Turns "things" into — things',
      keywords: ['thing', 'two words'],
      license: '(MIT OR Apache-2.0)',
      author: { name: 'Ann O’Nym', email: 'ann@example.org', url: 'https://example.org' },
      homepage: 'https://example.org/thing#readme',
      repository: { type: 'git', url: 'git+https://example.org/thing.git' },
      engines: { node: '>=20', npm: '>=10' },
      scripts: { test: 'secret-script' },
    }
    const corpus = await corpusOf({
      'thing/package.json': JSON.stringify(manifest),
      'thing/other.json': '{}',
    })
    expect(corpus.size).toBe(1)
    const [passage] = corpus.passages({ queries: ['things'], limit: 2 })
    expect(passage).toMatchObject({ title: '@scope/thing', kind: 'manifest' })
    expect(corpus.document(passage?.url ?? '')?.text.split('\n')).toEqual([
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

  it.each([
    [{ license: { type: 'BSD', url: 'x' } }, 'license: BSD'],
    [{ licenses: [{ type: 'MIT' }, { type: 'GPL' }] }, 'license: MIT, GPL'],
    [{ author: 'Ann <ann@example.org>' }, 'author: Ann <ann@example.org>'],
    [{ repository: 'github:ann/thing' }, 'repository: github:ann/thing'],
    [{ keywords: 'one, two' }, 'keywords: one, two'],
    [{ description: 'two\n lines\u0000' }, 'description: two lines'],
  ])('takes %j as %s', (fields, line) => {
    expect(textOf({ name: 'thing', ...fields })).toBe(`name: thing\n${line}`)
  })

  it('leaves out fields of another form, and values that are too long', () => {
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
      'name: thing\nhomepage: https://a.example',
    )
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
