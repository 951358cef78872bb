import type { Fence, LogStore, Page, Position, ReadOptions } from './contract.ts'
import { inFrontOf } from './in-front-of.ts'

/** The least number of entries that a shared page is read with, however few its first reader asks for. */
const PAGE = 100

/** The most pages that are kept, and the length of their events together as JSON, in characters. */
const MAX_PAGES = 16
const MAX_LENGTH = 4 * 1024 * 1024

/** How long a page is kept, in ms. What another process forgets meanwhile may still be received for so long. */
const MAX_AGE = 1_000

/** The names under which entries are read: `consumer:archive`, or `consumer.17:archive` for one partition of it. */
const READER = /^(?:consumer(?:\.(?<partition>\d+))?|process(?:\.\d+)?):/

/** A page that several readers receive. */
interface SharedPage {
  /** What was read, beside the position. */
  readonly selection: string
  readonly after: Position
  readonly readAt: number
  readonly reading: Promise<Page>
  /** The number of the entry that follows each position within the page; undefined until it is read. */
  starts?: ReadonlyMap<Position, number>
  length: number
}

/**
 * Reads each page once for readers of one open log that are near each other; those far behind read for themselves. Shared entries are
 * frozen, since a reader that changes one would change it for all. A log with one reader shares nothing.
 */
export function sharedPages(store: LogStore): LogStore {
  const pages = new PageCache(store)
  return inFrontOf(store, {
    async claim(name, options) {
      const fence = await store.claim(name, options)
      pages.join(fence)
      return fence
    },
    release(fence) {
      pages.leave(fence)
      return store.release(fence)
    },
    read: (after, options) => pages.read(after, options),
    retention: inFrontOf(store.retention, {
      async forget(source) {
        const deleted = await store.retention.forget(source)
        pages.clear()
        return deleted
      },
    }),
  })
}

class PageCache {
  readonly #store: LogStore
  /** Who reads the log as a whole, and who each partition, as the text of its number. */
  readonly #readers = new Map<string, Set<Fence>>()
  /** The oldest ones first. */
  #pages: SharedPage[] = []

  constructor(store: LogStore) {
    this.#store = store
  }

  join(fence: Fence): void {
    const found = READER.exec(fence.name)
    if (found === null) return
    const partition = found.groups?.['partition'] ?? ''
    const readers = this.#readers.get(partition) ?? new Set()
    this.#readers.set(partition, readers.add(fence))
  }

  leave(fence: Fence): void {
    for (const readers of this.#readers.values()) readers.delete(fence)
    if (Array.from(this.#readers.values()).every(({ size }) => size < 2)) this.clear()
  }

  clear(): void {
    this.#pages = []
  }

  async read(after: Position, options: ReadOptions): Promise<Page> {
    const { limit, types, until, partition } = options
    const readers = this.#readers.get(partition === undefined ? '' : String(partition))?.size ?? 0
    if (readers < 2 || until !== undefined) return this.#store.read(after, options)
    const selection = JSON.stringify([types, partition])
    const known = this.#find(selection, after)
    if (known === undefined) return partOf(await this.#begin(selection, after, options).reading, 0, limit)
    const page = await known.reading
    // More may have followed since it was read.
    return { ...partOf(page, known.starts?.get(after) ?? 0, limit), isEnd: false }
  }

  #find(selection: string, after: Position): SharedPage | undefined {
    const oldest = performance.now() - MAX_AGE
    return this.#pages.findLast(
      (page) =>
        page.readAt >= oldest &&
        page.selection === selection &&
        (page.after === after || page.starts?.has(after) === true),
    )
  }

  #begin(selection: string, after: Position, options: ReadOptions): SharedPage {
    const limit = Math.max(options.limit, PAGE)
    const reading = this.#store.read(after, { ...options, limit })
    const page: SharedPage = { selection, after, readAt: performance.now(), reading, length: 0 }
    this.#pages.push(page)
    this.#trim()
    reading.then(
      ({ entries, lengths, gap }) => {
        // A page without entries has nothing to share, and its end may be another one by now.
        if (entries.length === 0 || gap !== undefined) return this.#drop(page)
        for (const entry of entries) freeze(entry)
        const last = entries.length - 1
        page.starts = new Map(entries.slice(0, last).map(({ position }, index) => [position, index + 1]))
        page.length = lengths.reduce((sum, length) => sum + length, 0)
        this.#trim()
      },
      () => this.#drop(page),
    )
    return page
  }

  #trim(): void {
    let length = this.#pages.reduce((sum, page) => sum + page.length, 0)
    while (this.#pages.length > MAX_PAGES || length > MAX_LENGTH) length -= this.#pages.shift()?.length ?? 0
  }

  #drop(dropped: SharedPage): void {
    this.#pages = this.#pages.filter((page) => page !== dropped)
  }
}

/** The entries of a page from one of them on, at most `limit`. */
function partOf(page: Page, start: number, limit: number): Page {
  const { entries, lengths, position } = page
  if (start === 0 && entries.length <= limit) return page
  const part = entries.slice(start, start + limit)
  const isCut = start + limit < entries.length
  return {
    entries: part,
    lengths: lengths.slice(start, start + limit),
    position: isCut ? (part.at(-1)?.position ?? position) : position,
    isEnd: page.isEnd && !isCut,
  }
}

/** Freezes a value that was parsed from JSON. */
function freeze(value: object): void {
  Object.freeze(value)
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) freeze(part)
}
