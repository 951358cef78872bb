import { describe, expect, it } from 'vitest'
import { corpusOf, folderOf } from './folder.ts'

const SITE = 'https://docs.example'

/** Finds things in a folder of these files: their names, and the paths of their documents. */
async function namedIn(files: Readonly<Record<string, string>>) {
  const folder = await folderOf(files)
  const corpus = await corpusOf({}, { folders: [{ folder, site: SITE }], enter: () => true })
  return (name: string, limit = 10) =>
    corpus.named(name, limit).map((entity) => ({
      name: entity.name,
      documents: entity.documents.map(({ url }) => decodeURIComponent(url.slice(SITE.length + 1))),
    }))
}

const manifest = (name: string) => JSON.stringify({ name, license: 'MIT', description: `It is ${name}.` })

describe('the things of a name', () => {
  it('are folders with their scope, titles and file names, in any case', async () => {
    const named = await namedIn({
      'undici/README.md': '# An HTTP client',
      '@hono/node-server/README.md': '# Adapter',
      'guide/start.md': '# Getting Started\n\ntext',
    })
    const undici = [{ name: 'undici', documents: ['undici/README.md'] }]
    const adapter = [{ name: '@hono/node-server', documents: ['@hono/node-server/README.md'] }]
    const guide = [{ name: 'Getting Started', documents: ['guide/start.md'] }]
    expect(named('Undici ')).toEqual(undici)
    expect(named('@hono/node-server')).toEqual(adapter)
    expect(named('node-server')).toEqual(adapter)
    expect(named('hono')).toEqual([])
    expect(named('getting started')).toEqual(guide)
    expect(named('start')).toEqual(guide)
    expect(named('start.md')).toEqual(guide)
    expect(named('%')).toEqual([])
    expect(named('')).toEqual([])
  })

  it('begin with the own folder, before copies in other packages and documents of that name', async () => {
    const named = await namedIn({
      'openai/README.md': '# OpenAI',
      'openai/_vendor/zod/LICENSE': 'another licence',
      'openai/_vendor/zod/README.md': '# zod copy',
      'a/node_modules/zod/package.json': manifest('zod'),
      'zod/package.json': manifest('zod '),
      'zod/docs/zod/notes.txt': 'notes',
      'blog/zod.md': 'about zod',
      '@scope/zod/README.md': '# scoped zod',
    })
    expect(named('zod').map(({ documents }) => documents[0])).toEqual([
      'zod/package.json',
      '@scope/zod/README.md',
      'a/node_modules/zod/package.json',
      'openai/_vendor/zod/README.md',
      'zod/docs/zod/notes.txt',
      'blog/zod.md',
    ])
    expect(named('zod', 1)).toHaveLength(1)
  })

  it('have their README first, then manifest, licence and changelog, and nested documents last', async () => {
    const named = await namedIn({
      'thing/package.json': manifest('thing'),
      'thing/README.md': '# Thing',
      'thing/README.de.md': '# Das Ding',
      'thing/CHANGELOG.md': '# Changes',
      'thing/LICENSE': 'a licence',
      'thing/Aaa.md': 'a page',
      'thing/docs/LICENSE.md': 'a nested licence',
      'thing/node_modules/inner/package.json': manifest('inner'),
      'thing/node_modules/inner/LICENSE': 'the licence of inner',
    })
    expect(named('thing')[0]?.documents).toEqual([
      'thing/README.md',
      'thing/package.json',
      'thing/LICENSE',
      'thing/CHANGELOG.md',
      'thing/README.de.md',
      'thing/Aaa.md',
      'thing/docs/LICENSE.md',
    ])
    expect(named('inner')[0]?.documents).toEqual([
      'thing/node_modules/inner/package.json',
      'thing/node_modules/inner/LICENSE',
    ])
  })

  it('are found by the name in their manifest', async () => {
    const named = await namedIn({
      'packages/core/package.json': manifest('@scope/engine'),
      'packages/core/README.md': '# Engine',
    })
    expect(named('@scope/engine')).toEqual([
      { name: 'core', documents: ['packages/core/README.md', 'packages/core/package.json'] },
    ])
  })

  it('are no longer found when their documents are gone', async () => {
    const folder = await folderOf({ 'a/README.md': '# A' })
    const corpus = await corpusOf({}, { folders: [folder] })
    const { rm } = await import('node:fs/promises')
    await rm(`${folder}/a`, { recursive: true })
    await corpus.settled()
    expect(corpus.named('a', 5)).toEqual([])
  })
})
