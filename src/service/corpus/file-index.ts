import { createHash } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { CorpusDocument } from './corpus.ts'
import { storedPassages } from './excerpts.ts'
import type { FoundFile } from './files.ts'
import { namesOf } from './names.ts'
import { passagesOf } from './passages.ts'
import { firstPassage, PAGE_ROOT } from './tables.ts'

/** An indexed file. */
export interface KnownFile {
  readonly root: string
  readonly path: string
  readonly stamp: string
  /** When it was read, Unix time in ms. */
  readonly readAt: number
}

/** Adds files to the index and removes them. The caller opens the transactions. */
export class FileIndex {
  readonly #known: StatementSync
  readonly #row: StatementSync
  readonly #insert: StatementSync
  readonly #touch: StatementSync
  readonly #update: StatementSync
  readonly #delete: StatementSync
  readonly #insertName: StatementSync
  readonly #deleteNames: StatementSync
  readonly #insertPassage: StatementSync
  readonly #insertTerms: StatementSync
  readonly #deletePassages: StatementSync
  readonly #deleteTerms: StatementSync
  readonly #showFirst: StatementSync
  readonly #count: StatementSync
  readonly #countPages: StatementSync
  readonly #countPagesOf: StatementSync

  constructor(database: DatabaseSync) {
    this.#known = database.prepare('SELECT root, path, stamp, read_at FROM corpus_files WHERE root <> ?')
    this.#row = database.prepare(
      'SELECT id, place, url, title, publish_date, text_hash FROM corpus_files WHERE path = ?',
    )
    this.#insert = database.prepare(
      'INSERT INTO corpus_files (root, path, place, stamp, read_at) VALUES (?, ?, ?, ?, ?)',
    )
    this.#touch = database.prepare(
      'UPDATE corpus_files SET root = ?, place = ?, stamp = ?, read_at = ? WHERE path = ?',
    )
    this.#update = database.prepare(
      'UPDATE corpus_files SET url = ?, host = ?, title = ?, publish_date = ?, kind = ?, text_hash = ? WHERE id = ?',
    )
    this.#delete = database.prepare('DELETE FROM corpus_files WHERE id = ?')
    this.#insertName = database.prepare('INSERT INTO corpus_names (name, document) VALUES (?, ?)')
    this.#deleteNames = database.prepare('DELETE FROM corpus_names WHERE document = ?')
    this.#insertPassage = database.prepare('INSERT INTO corpus_passages (id, text, gap) VALUES (?, ?, ?)')
    this.#insertTerms = database.prepare(
      'INSERT INTO corpus_terms (rowid, title, place, text) VALUES (?, ?, ?, ?)',
    )
    this.#deletePassages = database.prepare('DELETE FROM corpus_passages WHERE id >= ? AND id < ?')
    // By single ids: for a range, FTS5 reads its whole index when it stores no text.
    this.#deleteTerms = database.prepare(
      'DELETE FROM corpus_terms WHERE rowid IN (SELECT id FROM corpus_passages WHERE id >= ? AND id < ?)',
    )
    // If several documents have the same URL, only the one with the first path is visible, in any order of indexing.
    this.#showFirst = database.prepare(
      'UPDATE corpus_files SET visible = (path = (SELECT min(path) FROM corpus_files WHERE url = ?1)) WHERE url = ?1',
    )
    this.#count = database.prepare('SELECT count(*) AS documents FROM corpus_files WHERE visible = 1')
    this.#countPages = database.prepare('SELECT count(*) AS pages FROM corpus_files WHERE root = ?')
    this.#countPagesOf = database.prepare(
      'SELECT count(*) AS pages FROM corpus_files WHERE root = ? AND path IN (SELECT value FROM json_each(?))',
    )
  }

  /** Number of visible documents. */
  count(): number {
    return Number(this.#count.get()?.['documents'])
  }

  /** Number of pages, also of those that are not visible: of all, or of those with these keys. */
  countPages(keys?: readonly string[]): number {
    const row =
      keys === undefined
        ? this.#countPages.get(PAGE_ROOT)
        : this.#countPagesOf.get(PAGE_ROOT, JSON.stringify(keys))
    return Number(row?.['pages'])
  }

  /** All files in the index, without pages, by path. */
  known(): Map<string, KnownFile> {
    const files = this.#known.all(PAGE_ROOT).map((row) => ({
      root: String(row['root']),
      path: String(row['path']),
      stamp: String(row['stamp']),
      readAt: Number(row['read_at']),
    }))
    return new Map(files.map((file) => [file.path, file]))
  }

  /** Adds or updates a file, which may not be a document. Returns whether visible documents changed. */
  put(file: Omit<FoundFile, 'inode'>, document: CorpusDocument | undefined, readAt: number): boolean {
    const place = `/${file.relative.toLowerCase()}`
    const textHash = document === undefined ? null : createHash('sha256').update(document.text).digest('hex')
    const row = this.#row.get(file.path)
    if (row === undefined) this.#insert.run(file.root, file.path, place, file.stamp, readAt)
    else this.#touch.run(file.root, place, file.stamp, readAt, file.path)
    const before = [row?.['place'], row?.['url'], row?.['title'], row?.['publish_date'], row?.['text_hash']]
    const after = [place, document?.url, document?.title, document?.publishDate, textHash]
    if (row !== undefined && before.every((value, index) => value === (after[index] ?? null))) return false

    const id = row === undefined ? Number(this.#row.get(file.path)?.['id']) : Number(row['id'])
    const url = row?.['url']
    this.#erase(id)
    if (document === undefined) this.#update.run(null, null, null, null, null, null, id)
    else {
      const { hostname } = new URL(document.url)
      const { url: address, title, publishDate, kind } = document
      this.#update.run(address, hostname, title, publishDate, kind, textHash, id)
      this.#write(id, place, document)
      this.#showFirst.run(document.url)
    }
    if (typeof url === 'string') this.#showFirst.run(url)
    return document !== undefined || typeof url === 'string'
  }

  /** Removes a file. Returns whether visible documents changed. */
  remove(path: string): boolean {
    const row = this.#row.get(path)
    if (row === undefined) return false
    const id = Number(row['id'])
    this.#erase(id)
    this.#delete.run(id)
    const url = row['url']
    if (typeof url !== 'string') return false
    this.#showFirst.run(url)
    return true
  }

  #write(id: number, place: string, { title, text, kind }: CorpusDocument): void {
    for (const name of namesOf(place, title)) this.#insertName.run(name, id)
    for (const [passage, stored] of storedPassages(text, passagesOf(text, kind), kind, firstPassage(id))) {
      this.#insertPassage.run(passage, stored.text, stored.gap)
      this.#insertTerms.run(passage, title, place, stored.text)
    }
  }

  #erase(id: number): void {
    this.#deleteNames.run(id)
    this.#deleteTerms.run(firstPassage(id), firstPassage(id + 1))
    this.#deletePassages.run(firstPassage(id), firstPassage(id + 1))
  }
}
