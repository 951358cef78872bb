import { realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkList } from '../../protocol/check.ts'
import { transaction } from '../database.ts'
import { batchesOf } from './batches.ts'
import type { Corpus, CorpusDocument } from './corpus.ts'
import { parseDocument } from './document.ts'
import { Entities } from './entities.ts'
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
import { NamedThings } from './named.ts'
import { readFound } from './read-file.ts'
import { CorpusSearch } from './search.ts'
import type { PageIndex } from './page-index.ts'
import { addressOf, checkFolders, type DocumentFolder, type Site } from './sites.ts'
import { createTables, PAGE_ROOT } from './tables.ts'
import { type Watcher, watchFolders } from './watch.ts'

/** Settings of {@link openCorpus}. Paths are relative to their folder, with `/` on every platform. */
export interface CorpusOptions {
  /** Folders of documents, searched recursively. At least one, unless `pages` is true. */
  readonly folders: readonly (string | DocumentFolder)[]
  /** Whether a file is a document. Default: `.md`, `.markdown`, `.html`, `.htm`, `.txt`, `package.json`, and `LICENSE`, `README` and the like. */
  readonly include?: (relativePath: string) => boolean
  /** Whether to read a folder. Default: all but `node_modules` and those whose name begins with a dot. */
  readonly enter?: (relativeFolder: string) => boolean
  /** Whether to watch the files for changes. Default true. */
  readonly watch?: boolean
  /** Whether pages will be added, so that no folder is needed. Default false. */
  readonly pages?: boolean
}

/** A corpus of files, to which pages can be added. */
export interface CorpusWithPages extends Corpus {
  readonly pages: PageIndex
}

/** Maximum size of a document, in bytes. */
const MAX_FILE_SIZE = 5 * 2 ** 20
/** Maximum number of files of a corpus. */
const MAX_FILES = 200_000
/**
 * Resolution of the file system's clock, in ms. A file that was read within this time after its modification may have been
 * modified again with the same stamp, so it is read again.
 */
const CLOCK_TICK = 100

/**
 * Indexes folders of documents in the database, and updates the index when files change. Unchanged files are not read again
 * after a restart. Skips files that are too large, not UTF-8 or not readable; does not follow symbolic links, nor one that replaces a file
 * while it is read.
 *
 * Rejects when a folder is missing. Close the corpus before the database.
 */
export function openCorpus(database: DatabaseSync, options: CorpusOptions): Promise<CorpusWithPages> {
  const { folders, watch = true, include = documentFiles.include, enter = documentFiles.enter } = options
  // With pages, a corpus may have no folder.
  if (options.pages !== true || folders.length > 0) checkList('folders', folders)
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
): Promise<CorpusWithPages> {
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
    // Watches before the first scan, so that no change in between is missed.
    if (watch && roots.length > 0) await corpus.watch()
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

type FileLocation = Pick<FoundFile, 'root' | 'relative'>

class IndexedCorpus implements CorpusWithPages {
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
  /** The last queued update. Updates run sequentially. */
  #last: Promise<void> = Promise.resolve()
  /** A queued scan that has not begun, shared by all calls before it begins. */
  #queuedScan: Promise<void> | undefined
  #refreshPages: () => Promise<void> = () => Promise.resolve()

  readonly pages: PageIndex
  readonly search: Corpus['search']
  readonly passages: Corpus['passages']
  readonly unusedTerms: Corpus['unusedTerms']
  readonly document: Corpus['document']
  readonly entity: Corpus['entity']
  readonly named: Corpus['named']

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
    this.unusedTerms = (query) => this.#search.unusedTerms(query)
    this.document = (url) => this.#search.document(url)
    const entities = new Entities(database)
    const things = new NamedThings(database, entities)
    this.entity = (url, limit) => entities.of(url, limit)
    this.named = (name, limit) => things.find(name, limit)
    this.pages = {
      count: () => this.#index.countPages(),
      countOf: (keys) => this.#index.countPages(keys),
      update: (work) => this.#enqueue(() => this.#updatePages(work)),
      refreshBy: (refresh) => (this.#refreshPages = refresh),
    }
  }

  get size(): number {
    return this.#size
  }

  async settled(): Promise<void> {
    await this.#refreshPages()
    await this.#scanned()
  }

  #scanned(): Promise<void> {
    this.#queuedScan ??= this.#enqueue(async () => {
      this.#queuedScan = undefined
      await this.#scan()
    })
    return this.#queuedScan
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

  /** Starts to watch the files. */
  async watch(): Promise<void> {
    this.#watcher = await watchFolders(this.#roots, this.#filter, {
      // Errors of the database or of a root folder are ignored here: `settled` and searches report them to their callers.
      changed: (files) => void this.#enqueue(() => this.#refresh(files)).catch(() => undefined),
      lost: () => void this.#scanned().catch(() => undefined),
    })
  }

  #enqueue(update: () => Promise<void>): Promise<void> {
    const done = this.#last.then(() => (this.#closed ? undefined : update()))
    this.#last = done.catch(() => undefined)
    return done
  }

  async #scan(): Promise<void> {
    const scan = await scanFolders(this.#roots, this.#filter, MAX_FILES)
    const { unreadable } = scan
    const files = scan.files.map((file) => this.#withAddress(file))
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

  async #refresh(files: readonly FileLocation[]): Promise<void> {
    const found = await Promise.all(files.map(({ root, relative }) => findFile(root, relative)))
    const missing = files.filter((_, index) => found[index] === undefined)
    await checkRoots(missing.map(({ root }) => root))
    const gone = missing.map(({ root, relative }) => resolve(root, relative))
    await this.#update(
      found.filter((file) => file !== undefined).map((file) => this.#withAddress(file)),
      gone,
    )
  }

  /** Adds the file's URL on a site, and includes it in the stamp: with another site it is another document. */
  #withAddress(file: FoundFile): FoundFile {
    const address = addressOf(this.#sites, file.path)
    return address === undefined ? file : { ...file, address, stamp: `${file.stamp}:${address}` }
  }

  async #update(files: readonly FoundFile[], gone: readonly string[]): Promise<void> {
    let changed = false
    const store = (work: () => boolean[]) => {
      if (!transaction(this.#database, work).some(Boolean)) return
      changed = true
      // Searches run between two batches.
      this.#search.indexChanged()
    }
    if (gone.length > 0) store(() => gone.map((path) => this.#index.remove(path)))
    for (const batch of batchesOf(files)) {
      if (this.#closed) break
      // Sequential batches bound the memory, and yield to the event loop.
      const read = await Promise.all(batch.map(readDocument))
      await setImmediate()
      if (this.#closed) break
      store(() =>
        read.map((entry) => entry !== undefined && this.#index.put(entry.file, entry.document, entry.readAt)),
      )
    }
    if (changed) this.#hasChanged()
  }

  async #updatePages(work: Parameters<PageIndex['update']>[0]): Promise<void> {
    let changed = false
    transaction(this.#database, () => {
      work({
        put: (key, place, document) => {
          const file = { root: PAGE_ROOT, relative: place, path: key, stamp: '', modified: 0, size: 0 }
          changed = this.#index.put(file, document, 0) || changed
        },
        remove: (key) => {
          changed = this.#index.remove(key) || changed
        },
      })
    })
    if (changed) this.#hasChanged()
  }

  #hasChanged(): void {
    this.#search.indexChanged()
    if (this.#closed) return
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

/** Reads a file; undefined if that fails, so that the next scan retries. */
async function readDocument(file: FoundFile): Promise<ReadDocument | undefined> {
  const readAt = Date.now()
  if (file.size > MAX_FILE_SIZE) return { file, document: undefined, readAt }
  try {
    return { file, document: parseDocument(file, await readFound(file, MAX_FILE_SIZE)), readAt }
  } catch {
    return undefined
  }
}
