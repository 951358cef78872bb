import { basename, dirname, sep } from 'node:path'
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { CorpusEntity, DocumentSource } from './corpus.ts'
import type { DocumentKind } from './document-kind.ts'
import { toSource } from './document-source.ts'

/** Names of READMEs in the main language of their folder. */
export const README_NAMES: readonly string[] = ['README', 'readme', 'Readme'].flatMap((name) =>
  ['.md', '.markdown', '.html', '.txt', ''].map((extension) => name + extension),
)
/** Names of files that describe their folder. */
const INTRODUCTIONS = [...README_NAMES, 'package.json']
/** Names of files that are about their folder as a whole, with or without an extension. */
const ABOUT_FOLDER =
  /^(?:package\.json|(?:readme|changelog|changes|history|licen[cs]e|copying|security|migrat\w+|upgrad\w+)(?:[._-].*)?)$/i
/** How the names in {@link ABOUT_FOLDER} begin. */
const ABOUT_FOLDER_BEGINNINGS =
  'package.json readme changelog changes history licen copying security migrat upgrad'.split(' ')
/** The order of the documents of a folder. */
const ORDER: readonly DocumentKind[] = ['readme', 'manifest', 'licence', 'changelog']
/** Maximum number of files of a folder that are looked at. */
const MAX_FILES = 500

/** The columns of {@link toLocated}. */
export const LOCATED = 'root, path, place, url, title, publish_date, kind'

/** A document, and the location of its file. */
export interface LocatedDocument extends DocumentSource {
  readonly root: string
  readonly path: string
  /** Its path within the corpus's folder, from `/`; for a page, the path of its URL. */
  readonly place: string
}

/** Groups the documents about one thing: the documents of the innermost folder with a README or a manifest, such as a package. */
export class Entities {
  readonly #file: StatementSync
  readonly #introduction: StatementSync
  readonly #files: StatementSync
  readonly #aboutFolder: StatementSync

  constructor(database: DatabaseSync) {
    this.#file = database.prepare(`SELECT ${LOCATED} FROM corpus_files WHERE url = ? AND visible = 1`)
    this.#introduction = database.prepare(
      `SELECT 1 FROM corpus_files WHERE visible = 1 AND path IN (SELECT value FROM json_each(?)) LIMIT 1`,
    )
    this.#files = database.prepare(
      `SELECT ${LOCATED} FROM corpus_files WHERE path > ? AND path < ? AND visible = 1
       ORDER BY path LIMIT ${MAX_FILES}`,
    )
    // Only reads the index of the paths; the folder may be large.
    const name = 'substr(path, length($start) + 1)'
    const begins = ABOUT_FOLDER_BEGINNINGS.map((beginning) => `${name} LIKE '${beginning}%'`)
    this.#aboutFolder = database.prepare(
      `SELECT ${LOCATED} FROM corpus_files
       WHERE path > $start AND path < $end AND (${begins.join(' OR ')}) AND instr(${name}, '${sep}') = 0 AND visible = 1
       ORDER BY path LIMIT ${MAX_FILES}`,
    )
  }

  /** See `Corpus.entity`. */
  of(url: string, limit: number): CorpusEntity | undefined {
    const row = this.#file.get(url)
    return row === undefined ? undefined : this.around(toLocated(row), limit)
  }

  /** The subject of a document. */
  around(file: LocatedDocument, limit: number): CorpusEntity {
    const { root } = file
    for (let folder = dirname(file.path); folder.startsWith(root + sep); folder = dirname(folder)) {
      if (this.isIntroduced(folder)) return this.in(folder, file, limit)
    }
    // All other documents of the root folder are about different things.
    const isAboutRoot = dirname(file.path) === root && ABOUT_FOLDER.test(basename(file.path))
    if (!isAboutRoot || !this.isIntroduced(root)) return alone(file)
    const documents = inOrder(root, this.#aboutDocuments(root))
    const [first = file] = documents
    return { name: first.title, url: first.url, documents: documents.slice(0, limit).map(withoutPath) }
  }

  /** Whether a folder has a README or a manifest. */
  isIntroduced(folder: string): boolean {
    const paths = INTRODUCTIONS.map((name) => `${folder}${sep}${name}`)
    return this.#introduction.get(JSON.stringify(paths)) !== undefined
  }

  /** A folder as a thing. `file` is one of its documents. */
  in(folder: string, file: LocatedDocument, limit: number): CorpusEntity {
    const all = this.#documents(folder)
    const inner = all
      .filter(({ path }) => dirname(path) !== folder && INTRODUCTIONS.includes(basename(path)))
      .map(({ path }) => dirname(path) + sep)
    const documents = all.filter(({ path }) => !inner.some((prefix) => path.startsWith(prefix)))
    const [first = file] = documents
    return { name: nameOf(folder), url: first.url, documents: documents.slice(0, limit).map(withoutPath) }
  }

  /** The documents below a folder: its own by their kind, then those of nested folders. */
  #documents(folder: string): LocatedDocument[] {
    const some = this.#files.all(...pathsBelow(folder)).map(toLocated)
    if (some.length < MAX_FILES) return inOrder(folder, some)
    // The documents about the folder may come after the first files.
    const paths = new Set(some.map(({ path }) => path))
    const others = this.#aboutDocuments(folder).filter(({ path }) => !paths.has(path))
    return inOrder(folder, [...some, ...others])
  }

  /** The documents of a folder that are about it as a whole. */
  #aboutDocuments(folder: string): LocatedDocument[] {
    const [$start, $end] = pathsBelow(folder)
    return this.#aboutFolder
      .all({ $start, $end })
      .map(toLocated)
      .filter(({ path }) => ABOUT_FOLDER.test(basename(path)))
  }
}

/** The paths between which those below a folder are. */
function pathsBelow(folder: string): [start: string, end: string] {
  // The character after the separator ends the range of the folder's paths.
  return [folder + sep, folder + String.fromCodePoint((sep.codePointAt(0) ?? 0) + 1)]
}

/** Sorts documents below a folder: its own by their kind, then those of nested folders. */
function inOrder(folder: string, documents: readonly LocatedDocument[]): LocatedDocument[] {
  const rank = ({ path, kind }: LocatedDocument) => {
    const name = basename(path)
    if (dirname(path) !== folder) return ORDER.length + 2
    // A README in another language introduces the folder less well.
    if (kind === 'readme' && !INTRODUCTIONS.includes(name)) return ORDER.length
    if (ORDER.includes(kind)) return ORDER.indexOf(kind)
    return ABOUT_FOLDER.test(name) ? ORDER.length : ORDER.length + 1
  }
  return documents.toSorted((a, b) => rank(a) - rank(b))
}

/** The name of a package's folder, with its scope: `@hono/node-server`. */
export function nameOf(folder: string): string {
  const scope = basename(dirname(folder))
  return scope.startsWith('@') ? `${scope}/${basename(folder)}` : basename(folder)
}

/** An entity of one document that is about a thing of its own. */
export function alone(file: LocatedDocument): CorpusEntity {
  return { name: file.title, url: file.url, documents: [withoutPath(file)] }
}

function withoutPath({ url, title, publishDate, kind }: LocatedDocument): DocumentSource {
  return { url, title, publishDate, kind }
}

/** The document of a row with the columns {@link LOCATED}. */
export function toLocated(row: Record<string, SQLOutputValue>): LocatedDocument {
  return {
    ...toSource(row),
    root: String(row['root']),
    path: String(row['path']),
    place: String(row['place']),
  }
}
