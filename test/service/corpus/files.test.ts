import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { documentFiles, scanFolders } from '../../../src/service/corpus/files.ts'
import { folderOf } from './folder.ts'

const everything = { include: () => true, enter: () => true }

describe('scanFolders', () => {
  it('stops at the limit, and always omits the same files', async () => {
    const folder = await folderOf({ 'c.md': '', 'a.md': '', 'b/a.md': '', 'b/b.md': '' })
    const { files } = await scanFolders([folder], everything, 3)
    expect(files.map(({ relative }) => relative)).toEqual(['a.md', 'c.md', 'b/a.md'])
  })

  it('finds a file in overlapping folders once, in the first of them', async () => {
    const folder = await folderOf({ 'sub/a.md': '' })
    const { files } = await scanFolders([folder, join(folder, 'sub')], everything, 10)
    expect(files.map(({ relative }) => relative)).toEqual(['sub/a.md'])
  })

  it('distinguishes an unreadable folder from a missing one', async () => {
    const folder = await folderOf({ 'gone/a.md': '', 'unreadable/b.md': '' })
    const enter = (name: string) => {
      rmSync(join(folder, name), { recursive: true })
      // A link to itself cannot be resolved, even by root.
      if (name === 'unreadable') symlinkSync(name, join(folder, name))
      return true
    }
    expect(await scanFolders([folder], { ...everything, enter }, 10)).toEqual({
      files: [],
      unreadable: [join(folder, 'unreadable')],
    })
  })

  it('rejects when a root folder cannot be read', async () => {
    const folder = await folderOf({ 'a.md': '' })
    const gone = join(folder, 'gone')
    await expect(scanFolders([folder, gone], everything, 10)).rejects.toThrow(
      `the folder ${gone} cannot be read`,
    )
  })
})

describe('documentFiles', () => {
  it.each([
    ['a.md', true],
    ['b/A.HTML', true],
    ['c.markdown', true],
    ['d.htm', true],
    ['e.txt', true],
    ['README', true],
    ['x/LICENSE', true],
    ['x/LICENCE-MIT', true],
    ['COPYING', true],
    ['CHANGELOG', true],
    ['HISTORY', true],
    ['NOTICE', true],
    ['AUTHORS', true],
    ['x/package.json', true],
    ['x/package-lock.json', false],
    ['x/tsconfig.json', false],
    ['licenses', false],
    ['license.js', false],
    ['history.ts', false],
    ['f.ts', false],
    ['g/.hidden.md', false],
  ])('includes %s: %s', (path, expected) => {
    expect(documentFiles.include(path)).toBe(expected)
  })
})
