import { readFile, realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkList } from '../../protocol/check.ts'
import { transaction } from '../database.ts'
import { batchesOf } from './batches.ts'
import type { Corpus, CorpusDocument } from './corpus.ts'
import { parseDocument } from './document.ts'
import { FileIndex, type KnownFile } from './file-index.ts'
import {
  checkRoots,
  documentFiles,
  type FileFilter,
  findFile,
  type FoundFile,
  isMissing,
  scanFolders,
} from './files.ts'
import { CorpusSearch } from './search.ts'
import { addressOf, checkFolders, type DocumentFolder, type Site } from './sites.ts'
import { createTables } from './tables.ts'
import { type Watcher, watchFolders } from './watch.ts'

/** What belongs to a corpus. Paths are relative to the folder that they are in, with `/` on every platform. */
export interface CorpusOptions {
  /** Folders of documents, with everything below them. At least one. */
  readonly folders: readonly (string | DocumentFolder)[]
  /** Whether a file is a document. Default: `.md`, `.markdown`, `.html`, `.htm` and `.txt`. */
  readonly include?: (relativePath: string) => boolean
  /** Whether to look into a folder. Default: all but `node_modules` and those whose name begins with a dot. */
  readonly enter?: (relativeFolder: string) => boolean
  /** Whether to follow the files as they change. Default true. */
  readonly watch?: boolean
}

/** Bytes of a document, at the most: what is larger is a dump, not a text. */
const LARGEST_FILE = 5 * 2 ** 20
/** Files of a corpus, at the most. */
const MOST_FILES = 200_000
/**
 * A file that was read less than this after it was written, in ms, may have been written again within one tick of the
 * file system's clock. It is read again the next time, since its stamp proves nothing.
 */
const CLOCK_TICK = 100

/**
 * Indexes folders of documents in tables of its own, and keeps the index current as the files change. Files that have
 * not changed since the database was last used are not read again. What is too large, no UTF-8 text or not readable is
 * left out; symbolic links are not followed.
 *
 * Fails when a folder is missing. The caller closes the corpus first, and then the database.
 */
export function openCorpus(database: DatabaseSync, options: CorpusOptions): Promise<Corpus> {
  const { folders, watch = true, include = documentFiles.include, enter = documentFiles.enter } = options
  checkList('folders', folders)
  checkBoolean('watch', watch)
  for (const [name, test] of Object.entries({ include, enter })) {
    if (typeof test !== 'function') throw new ArgumentError(name, 'a function', test)
  }
  return open(database, checkFolders('folders', folders), { include, enter }, watch)
}

async function open(
  database: DatabaseSync,
  folders: readonly DocumentFolder[],
  filter: FileFilter,
  watch: boolean,
): Promise<Corpus> {
  const found = await Promise.all(
    folders.map(async ({ folder, site }) => ({ folder: await realFolder(folder), base: site })),
  )
  const roots = [...new Set(found.map(({ folder }) => folder))]
  const sites = found.flatMap(({ folder, base }) => (base === undefined ? [] : [{ folder, base }]))
  if (new Set(sites.map(({ folder }) => folder)).size < sites.length) {
    throw new Error('a folder is given twice with a site: leave one of them out')
  }
  createTables(database)
  const corpus = new IndexedCorpus(database, roots, sites, filter)
  try {
    // Watched first, looked through second: what changes in between is noticed twice rather than never.
    if (watch) await corpus.watch()
    await corpus.settled()
  } catch (error) {
    await corpus.close()
    throw error
  }
  return corpus
}

async function realFolder(folder: string): Promise<string> {
  const path = resolve(folder)
  const stats = await stat(path).catch((error: unknown) => {
    if (isMissing(error)) throw new Error(`there is no folder ${path}`, { cause: error })
    throw error
  })
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder`)
  return await realpath(path)
}

type Located = Pick<FoundFile, 'root' | 'relative'>

class IndexedCorpus implements Corpus {
  readonly #database: DatabaseSync
  readonly #roots: readonly string[]
  readonly #sites: readonly Site[]
  readonly #filter: FileFilter
  readonly #index: FileIndex
  readonly #search: CorpusSearch
  readonly #listeners = new Set<() => void>()
  #size: number
  #watcher: Watcher | undefined
  #closed = false
  /** The last of the updates, which run one after the other. */
  #last: Promise<void> = Promise.resolve()
  /** A look through the folders that is yet to begin, so it serves everyone who asks before it does. */
  #upcoming: Promise<void> | undefined

  readonly search: Corpus['search']
  readonly passages: Corpus['passages']
  readonly document: Corpus['document']

  constructor(database: DatabaseSync, roots: readonly string[], sites: readonly Site[], filter: FileFilter) {
    this.#database = database
    this.#roots = roots
    this.#sites = sites
    this.#filter = filter
    this.#index = new FileIndex(database)
    this.#search = new CorpusSearch(database)
    this.#size = this.#index.count()
    this.search = (query, budget) => this.#search.search(query, budget)
    this.passages = (query) => this.#search.passages(query)
    this.document = (url) => this.#search.document(url)
  }

  get size(): number {
    return this.#size
  }

  settled(): Promise<void> {
    this.#upcoming ??= this.#enqueue(async () => {
      this.#upcoming = undefined
      await this.#lookThrough()
    })
    return this.#upcoming
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listeners.clear()
    await this.#watcher?.close()
    await this.#last
  }

  /** Begins to follow the files. */
  async watch(): Promise<void> {
    this.#watcher = await watchFolders(this.#roots, this.#filter, {
      // A failure here is one of the database or of a whole folder: `settled` and every search meet it too, and have somebody to tell.
      changed: (files) => void this.#enqueue(() => this.#lookAt(files)).catch(() => undefined),
      lost: () => void this.settled().catch(() => undefined),
    })
  }

  #enqueue(update: () => Promise<void>): Promise<void> {
    const done = this.#last.then(() => (this.#closed ? undefined : update()))
    this.#last = done.catch(() => undefined)
    return done
  }

  async #lookThrough(): Promise<void> {
    const scan = await scanFolders(this.#roots, this.#filter, MOST_FILES)
    const { unreadable } = scan
    const files = scan.files.map((file) => this.#addressed(file))
    const known = this.#index.known()
    const found = new Set(files.map(({ path }) => path))
    const gone = [...known.keys()].filter(
      (path) => !found.has(path) && !unreadable.some((folder) => path.startsWith(folder + sep)),
    )
    await this.#update(
      files.filter((file) => hasChanged(file, known.get(file.path))),
      gone,
    )
  }

  async #lookAt(files: readonly Located[]): Promise<void> {
    const found = await Promise.all(files.map(({ root, relative }) => findFile(root, relative)))
    const missing = files.filter((_, index) => found[index] === undefined)
    await checkRoots(missing.map(({ root }) => root))
    const gone = missing.map(({ root, relative }) => resolve(root, relative))
    await this.#update(
      found.filter((file) => file !== undefined).map((file) => this.#addressed(file)),
      gone,
    )
  }

  /** A file with its address on a site, which is part of its stamp: another site makes another document of it. */
  #addressed(file: FoundFile): FoundFile {
    const address = addressOf(this.#sites, file.path)
    return address === undefined ? file : { ...file, address, stamp: `${file.stamp}:${address}` }
  }

  async #update(files: readonly FoundFile[], gone: readonly string[]): Promise<void> {
    let changed = false
    const store = (work: () => boolean[]) => {
      changed = transaction(this.#database, work).some(Boolean) || changed
    }
    if (gone.length > 0) store(() => gone.map((path) => this.#index.remove(path)))
    for (const batch of batchesOf(files)) {
      if (this.#closed) break
      // One batch after the other bounds the memory; between two the process does other work.
      const read = await Promise.all(batch.map(readDocument))
      await setImmediate()
      if (this.#closed) break
      store(() =>
        read.map((entry) => entry !== undefined && this.#index.put(entry.file, entry.document, entry.readAt)),
      )
    }
    if (!changed || this.#closed) return
    this.#size = this.#index.count()
    for (const listener of this.#listeners) listener()
  }
}

function hasChanged(file: FoundFile, known: KnownFile | undefined): boolean {
  if (known === undefined || known.root !== file.root || known.stamp !== file.stamp) return true
  return known.readAt - file.modified < CLOCK_TICK
}

interface ReadDocument {
  readonly file: FoundFile
  readonly document: CorpusDocument | undefined
  readonly readAt: number
}

/** Reads one file. Undefined where that fails, so that it is tried again the next time. */
async function readDocument(file: FoundFile): Promise<ReadDocument | undefined> {
  const readAt = Date.now()
  if (file.size > LARGEST_FILE) return { file, document: undefined, readAt }
  try {
    return { file, document: parseDocument(file, await readFile(file.path)), readAt }
  } catch {
    return undefined
  }
}
