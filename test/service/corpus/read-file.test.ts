import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findFile } from '../../../src/service/corpus/files.ts'
import { readFound } from '../../../src/service/corpus/read-file.ts'
import { temporaryFolder } from '../running.ts'

const LIMIT = 100

/** A file that a scan has found, in a folder of a root folder, and a secret outside of it. */
async function found() {
  const outside = await temporaryFolder()
  const secret = join(outside, 'a.md')
  await writeFile(secret, 'secret')
  const root = await temporaryFolder()
  const folder = join(root, 'notes')
  await mkdir(folder)
  const path = join(folder, 'a.md')
  await writeFile(path, 'public')
  const file = await findFile(root, 'notes/a.md')
  if (file === undefined) throw new Error('no such file')
  return { file, path, folder, secret, outside }
}

describe('a file that a scan has found', () => {
  it('is read', async () => {
    const { file } = await found()
    expect(String(await readFound(file, LIMIT))).toBe('public')
  })

  it('is not read when a symbolic link has taken its place', async () => {
    const { file, path, secret } = await found()
    await rm(path)
    await symlink(secret, path)

    await expect(readFound(file, LIMIT)).rejects.toThrow(/ELOOP|is another file/)
  })

  it('is not read when a symbolic link has taken the place of its folder', async () => {
    const { file, folder, outside } = await found()
    await rename(folder, `${folder}-moved`)
    await symlink(outside, folder)

    await expect(readFound(file, LIMIT)).rejects.toThrow('is another file than before')
  })

  it('is not read when it has grown beyond the limit', async () => {
    const { file, path } = await found()
    await appendFile(path, 'x'.repeat(LIMIT))

    await expect(readFound(file, LIMIT)).rejects.toThrow('is longer than 100 bytes')
  })
})
