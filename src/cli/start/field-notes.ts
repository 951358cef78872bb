import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { directDependencies, installedReadmes } from '../installed.ts'

/** The site that the folder stands for: a service takes a folder with the name of a domain for that domain. */
export const FIELD_NOTES = 'field-notes.example'
/** What the monitor of the folder looks for, and what therefore stands in every document that is added to it. */
export const FIELD_NOTES_QUERY = 'npm install'

/** Documents that are added. */
const NOTES = 4
/** Characters of a document that is added: long enough to be worth it, short enough to be read on a terminal. */
const SHORTEST = 500
const LONGEST = 6_000

/** A document that can be added to the folder. */
export interface FieldNote {
  readonly title: string
  /** Under which the service knows it once it is there. */
  readonly url: string
  /** Puts it into the folder, in one step, so that nobody reads half of it. */
  add(): Promise<void>
}

/** A temporary folder to be watched, empty at first, and real documents to add to it. Disposing of it removes it. */
export interface FieldNotes extends AsyncDisposable {
  /** The folder to serve; the notes come into a folder within. */
  readonly folder: string
  readonly notes: readonly FieldNote[]
}

/** Makes the folder and chooses the documents: READMEs of installed packages, those of indirect dependencies first. */
export async function openFieldNotes(): Promise<FieldNotes> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-'))
  const site = join(folder, FIELD_NOTES)
  await mkdir(site)
  const documents = await chooseDocuments()
  const notes = documents.map(({ title, text }): FieldNote => {
    const name = `${title.replaceAll('/', '-').replaceAll('@', '')}-README.md`
    return {
      title,
      url: `https://${FIELD_NOTES}/${name}`,
      async add() {
        const draft = join(folder, `${name}.draft`)
        await writeFile(draft, text)
        await rename(draft, join(site, name))
      },
    }
  })
  return { folder, notes, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

async function chooseDocuments(): Promise<{ readonly title: string; readonly text: string }[]> {
  const direct = new Set(directDependencies())
  const readmes = await installedReadmes()
  const indirectFirst = readmes.toSorted(
    (a, b) => Number(direct.has(a.package)) - Number(direct.has(b.package)),
  )
  const chosen: { title: string; text: string }[] = []
  for (const { package: title, path } of indirectFirst) {
    if (chosen.length === NOTES) break
    // One after the other: most of the files need not be read at all.
    const text = await readFile(path, 'utf8')
    if (text.length >= SHORTEST && text.length <= LONGEST && text.includes(FIELD_NOTES_QUERY))
      chosen.push({ title, text })
  }
  return chosen
}
