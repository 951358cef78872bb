import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Corpus } from '../../../src/service/corpus/corpus.ts'
import { type CorpusOptions, openCorpus } from '../../../src/service/corpus/open-corpus.ts'
import { openDatabase } from '../../../src/service/database.ts'

/** Files by their path within the folder. */
export type Files = Readonly<Record<string, string | Uint8Array>>

/** A temporary folder with these files, removed after the test. */
export async function folderOf(files: Files): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-corpus-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await write(folder, files)
  return folder
}

/** Writes files into a folder. */
export async function write(folder: string, files: Files): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
}

/** A corpus of these files in an in-memory database, without watching, closed after the test. */
export async function corpusOf(files: Files, options: Partial<CorpusOptions> = {}): Promise<Corpus> {
  const database = openDatabase(':memory:')
  onTestFinished(() => database.close())
  const corpus = await openCorpus(database, { folders: [await folderOf(files)], watch: false, ...options })
  onTestFinished(() => corpus.close())
  return corpus
}
