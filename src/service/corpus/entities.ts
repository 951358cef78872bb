import { basename, dirname, sep } from 'node:path'
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { CorpusEntity, DocumentSource } from './corpus.ts'
import { toSource } from './search.ts'

/** Names of files that describe their folder. */
const INTRODUCTIONS = ['README', 'readme', 'Readme'].flatMap((name) =>
  ['.md', '.markdown', '.html', '.txt'].map((extension) => name + extension),
)
/** Names of files that are about their folder as a whole, with or without an extension. */
const ABOUT_FOLDER =
  /^(?:readme|changelog|changes|history|licen[cs]e|security|migrat\w+|upgrad\w+)(?:[._-].*)?$/i
/** Maximum number of files of a folder that are looked at. */
const MAX_FILES = 500

interface Located extends DocumentSource {
  readonly path: string
}

/** Groups the documents about one thing: those of the innermost folder with a README, such as a package. */
export class Entities {
  readonly #file: StatementSync
  readonly #introduction: StatementSync
  readonly #files: StatementSync

  constructor(database: DatabaseSync) {
    this.#file = database.prepare(
      'SELECT root, path, url, title, publish_date FROM corpus_files WHERE url = ? AND visible = 1',
    )
    this.#introduction = database.prepare(
      `SELECT 1 FROM corpus_files WHERE visible = 1 AND path IN (SELECT value FROM json_each(?)) LIMIT 1`,
    )
    this.#files = database.prepare(
      `SELECT path, url, title, publish_date FROM corpus_files WHERE path > ? AND path < ? AND visible = 1
       ORDER BY path LIMIT ${MAX_FILES}`,
    )
  }

  /** See `Corpus.entity`. */
  of(url: string, limit: number): CorpusEntity | undefined {
    const row = this.#file.get(url)
    if (row === undefined) return undefined
    const file = toLocated(row)
    const root = String(row['root'])
    for (let folder = dirname(file.path); folder.startsWith(root + sep); folder = dirname(folder)) {
      if (this.#hasIntroduction(folder)) return this.#folder(folder, file, limit)
    }
    // All other documents of the root folder are about different things.
    const isAboutRoot = dirname(file.path) === root && ABOUT_FOLDER.test(basename(file.path))
    if (!isAboutRoot || !this.#hasIntroduction(root)) return alone(file)
    const documents = this.#documents(root).filter(
      ({ path }) => dirname(path) === root && ABOUT_FOLDER.test(basename(path)),
    )
    const [first = file] = documents
    return { name: first.title, url: first.url, documents: documents.slice(0, limit).map(withoutPath) }
  }

  #hasIntroduction(folder: string): boolean {
    const paths = INTRODUCTIONS.map((name) => `${folder}${sep}${name}`)
    return this.#introduction.get(JSON.stringify(paths)) !== undefined
  }

  #folder(folder: string, file: Located, limit: number): CorpusEntity {
    const all = this.#documents(folder)
    const inner = all
      .filter(({ path }) => dirname(path) !== folder && INTRODUCTIONS.includes(basename(path)))
      .map(({ path }) => dirname(path) + sep)
    const documents = all.filter(({ path }) => !inner.some((prefix) => path.startsWith(prefix)))
    const [first = file] = documents
    return { name: nameOf(folder), url: first.url, documents: documents.slice(0, limit).map(withoutPath) }
  }

  /** The documents below a folder: its introduction first, then those about the folder, then the others. */
  #documents(folder: string): Located[] {
    const rank = ({ path }: Located) => {
      const name = basename(path)
      if (dirname(path) !== folder) return 3
      return INTRODUCTIONS.includes(name) ? 0 : ABOUT_FOLDER.test(name) ? 1 : 2
    }
    // The character after the separator ends the range of the folder's paths.
    const end = folder + String.fromCodePoint((sep.codePointAt(0) ?? 0) + 1)
    const found = this.#files.all(folder + sep, end).map(toLocated)
    return found.toSorted((a, b) => rank(a) - rank(b))
  }
}

/** The name of a package's folder, with its scope: `@hono/node-server`. */
function nameOf(folder: string): string {
  const scope = basename(dirname(folder))
  return scope.startsWith('@') ? `${scope}/${basename(folder)}` : basename(folder)
}

function alone(file: Located): CorpusEntity {
  return { name: file.title, url: file.url, documents: [withoutPath(file)] }
}

function withoutPath({ url, title, publishDate }: Located): DocumentSource {
  return { url, title, publishDate }
}

function toLocated(row: Record<string, SQLOutputValue>): Located {
  return { ...toSource(row), path: String(row['path']) }
}
