import { describe, expect, it } from 'vitest'
import { corpusOf, folderOf } from './folder.ts'

const SITE = 'https://docs.example'
const text = (title: string) => `# ${title}\n\nA text about ${title} that differs.\n`

async function siteOf(...paths: string[]) {
  const folder = await folderOf(Object.fromEntries(paths.map((path) => [path, text(path)])))
  const corpus = await corpusOf({}, { folders: [{ folder, site: SITE }] })
  return (path: string, limit = 10) => {
    const entity = corpus.entity(`${SITE}/${path}`, limit)
    return entity && { ...entity, documents: entity.documents.map(({ url }) => url.slice(SITE.length + 1)) }
  }
}

describe('the entity of a document', () => {
  it('is the innermost folder with a README, which is its first document', async () => {
    const entity = await siteOf(
      'a/docs/guide.md',
      'a/README.md',
      'a/CHANGELOG.md',
      'a/inner/readme.md',
      'a/inner/x.md',
    )
    const a = {
      name: 'a',
      url: `${SITE}/a/README.md`,
      documents: ['a/README.md', 'a/CHANGELOG.md', 'a/docs/guide.md'],
    }

    expect(entity('a/docs/guide.md')).toEqual(a)
    expect(entity('a/CHANGELOG.md')).toEqual(a)
    expect(entity('a/inner/x.md')).toMatchObject({
      name: 'inner',
      documents: ['a/inner/readme.md', 'a/inner/x.md'],
    })
    expect(entity('a/CHANGELOG.md', 1)?.documents).toEqual(['a/README.md'])
  })

  it('has the scope of its package in its name', async () => {
    const entity = await siteOf('@scope/name/README.md')
    expect(entity('%40scope/name/README.md')?.name).toBe('@scope/name')
  })

  it('is the document alone without a README, and in the root folder unless it is about the root', async () => {
    const entity = await siteOf(
      'README.md',
      'LICENSE.md',
      'guide.md',
      'deep/page.md',
      'ab/README.md',
      'a/x.md',
    )

    expect(entity('guide.md')?.documents).toEqual(['guide.md'])
    expect(entity('deep/page.md')).toEqual({
      name: 'deep/page.md',
      url: `${SITE}/deep/page.md`,
      documents: ['deep/page.md'],
    })
    expect(entity('LICENSE.md')?.documents).toEqual(['README.md', 'LICENSE.md'])
    expect(entity('a/x.md')?.documents).toEqual(['a/x.md'])
    expect(entity('none.md')).toBeUndefined()
  })

  it('has the documents of its own folder, also when hundreds of others come before them', async () => {
    const many = Array.from({ length: 510 }, (_, number) => `${number}.md`)
    const own = ['README.md', 'package.md', 'LICENSE', 'CHANGELOG.md', 'UPGRADING.md']
    const about = ['README.md', 'LICENSE', 'CHANGELOG.md', 'UPGRADING.md']

    const flat = await siteOf(...many, ...own)
    expect(flat('CHANGELOG.md')?.documents).toEqual(about)
    const nested = await siteOf(...many.map((path) => `0/${path}`), ...own)
    expect(nested('CHANGELOG.md')?.documents).toEqual(about)
    const folder = await siteOf(...many.map((path) => `a/0/${path}`), ...own.map((path) => `a/${path}`))
    expect(folder('a/CHANGELOG.md', 4)?.documents).toEqual(about.map((path) => `a/${path}`))
  })
})
