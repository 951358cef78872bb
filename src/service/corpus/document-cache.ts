import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import { prepareArrays } from '../database.ts'
import type { DocumentSource } from './corpus.ts'
import { toKind } from './document-kind.ts'
import { isCopied } from './names.ts'
import { ALLOWED_DOCUMENTS, type Restriction } from './restriction.ts'

/** Maximum number of cached documents. A document takes about 1 kB. */
const MAX_CACHED = 8_192

/** A visible document as the scores need it. */
export interface StoredDocument {
  readonly id: number
  readonly source: DocumentSource
  /** Path of its file; the URL of a page. */
  readonly path: string
  readonly textHash: string
  /** Title and path within the corpus's folder, lowercase. */
  readonly name: string
  /** The folder of its path within the corpus's folder, lowercase. */
  readonly folder: string
  /** Whether it is a copy in a folder such as `node_modules` of another package. */
  readonly isCopied: boolean
}

const COLUMNS = 'id, url, title, publish_date, kind, place, path, text_hash'

/** Reads visible documents, and caches a bounded number of them until the index changes. */
export class DocumentCache {
  readonly #byIds: StatementSync
  readonly #byPaths: StatementSync
  readonly #allowedByPaths: StatementSync
  readonly #cache = new Map<number, StoredDocument | undefined>()

  constructor(database: DatabaseSync) {
    this.#byIds = prepareArrays(
      database,
      `SELECT ${COLUMNS} FROM corpus_files WHERE visible = 1 AND id IN (SELECT value FROM json_each(?))`,
    )
    const byPaths = `SELECT ${COLUMNS} FROM corpus_files WHERE visible = 1 AND path IN (SELECT value FROM json_each($paths))`
    this.#byPaths = prepareArrays(database, byPaths)
    this.#allowedByPaths = prepareArrays(database, `${byPaths} AND id IN (${ALLOWED_DOCUMENTS})`)
  }

  /** Forgets all documents. */
  reset(): void {
    this.#cache.clear()
  }

  /** The documents with these ids that are visible, in the order of the ids. */
  withIds(ids: readonly number[]): StoredDocument[] {
    let missing = ids.filter((id) => !this.#cache.has(id))
    if (this.#cache.size + missing.length > MAX_CACHED) {
      this.#cache.clear()
      missing = [...ids]
    }
    if (missing.length > 0) {
      // Remembers also which documents are not visible.
      for (const id of missing) this.#cache.set(id, undefined)
      for (const document of this.#byIds.all(JSON.stringify(missing)).map(toDocument)) {
        this.#cache.set(document.id, document)
      }
    }
    return ids.flatMap((id) => this.#cache.get(id) ?? [])
  }

  /** The allowed documents of the files with these paths that are visible. */
  withPaths(paths: readonly string[], restriction: Restriction | undefined): StoredDocument[] {
    const parameters = { $paths: JSON.stringify(paths) }
    const rows =
      restriction === undefined
        ? this.#byPaths.all(parameters)
        : this.#allowedByPaths.all({ ...parameters, ...restriction })
    return rows.map(toDocument)
  }
}

/** The document of a row with {@link COLUMNS}, as an array. */
function toDocument(row: Record<string, SQLOutputValue>): StoredDocument {
  const { 0: id, 1: url, 2: title, 3: date, 4: kind, 5: placeValue, 6: path, 7: textHash } = row
  const place = String(placeValue)
  return {
    id: Number(id),
    source: {
      url: String(url),
      title: String(title),
      publishDate: typeof date === 'string' ? date : null,
      kind: toKind(kind),
    },
    path: String(path),
    textHash: String(textHash),
    name: `${String(title)} ${place}`.toLowerCase(),
    folder: place.slice(0, place.lastIndexOf('/')),
    isCopied: isCopied(place),
  }
}
