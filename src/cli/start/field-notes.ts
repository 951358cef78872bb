import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { directDependencies, installedReadmes } from '../installed.ts'

/** The site of the folder. A service uses a folder named like a domain for that domain. */
export const FIELD_NOTES = 'field-notes.example'
/** The query of the folder's monitor. Every document added to the folder contains it. */
export const FIELD_NOTES_QUERY = 'npm install'

/** How many documents are added. */
const NOTES = 4
/** The length of an added document, in characters. */
const SHORTEST = 500
const LONGEST = 6_000

/** A document that can be added to the folder. */
export interface FieldNote {
  readonly title: string
  /** URL of the page at the service. */
  readonly url: string
  /** Moves it into the folder atomically. */
  add(): Promise<void>
}

/** A temporary, initially empty folder, and real documents to add to it. Disposing of it removes the folder. */
export interface FieldNotes extends AsyncDisposable {
  /** The folder to serve; the notes are added to a folder within. */
  readonly folder: string
  readonly notes: readonly FieldNote[]
}

/** Creates the folder and chooses the documents: READMEs of installed packages, indirect dependencies first. */
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
    // Sequentially, since most of the files need not be read.
    const text = await readFile(path, 'utf8')
    if (text.length >= SHORTEST && text.length <= LONGEST && text.includes(FIELD_NOTES_QUERY))
      chosen.push({ title, text })
  }
  return chosen
}
