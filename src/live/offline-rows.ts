import { isObject } from '../protocol/json.ts'
import type { StoredRows } from './view-store.ts'

/** Views of one subject that are kept. */
const MAX_VIEWS = 50
/** Maximum length of all stored rows, as JSON in characters. A view that is longer is not stored. */
const MAX_LENGTH = 8 * 1024 * 1024
/** How long rows are kept, in ms. */
const MAX_AGE = 7 * 24 * 3_600_000

const DATABASE = 'rivulet-live'
const VIEWS = 'views'

/** The rows of a view on the disk. `rights` says whose they are. */
interface Kept {
  readonly gateway: string
  readonly rights: string
  readonly address: string
  readonly time: number
  readonly position: string
  /** The rows as JSON, whose length is known. */
  readonly rows: string
}

/** The rows that a page starts with. */
export interface KeptRows {
  readonly rights: string
  readonly views: ReadonlyMap<string, StoredRows>
}

/**
 * The last rows of views in IndexedDB, of one subject for each gateway. A database that fails, for instance in a private window or on a
 * full disk, is treated as empty.
 */
export class OfflineRows {
  readonly #gateway: string
  readonly #now: () => number
  readonly #database: Promise<IDBDatabase | undefined>
  /** Writes follow each other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(indexedDB: IDBFactory, gateway: string, now: () => number) {
    this.#gateway = gateway
    this.#now = now
    this.#database = open(indexedDB).catch(() => undefined)
  }

  /** The rows that were stored last, without those that are too old. */
  async load(): Promise<KeptRows | undefined> {
    const kept = (await this.#do('readonly', (store) => resultOf(store.getAll(this.#range())))) ?? []
    const views = kept.filter(isKept).filter(({ time }) => Math.abs(this.#now() - time) < MAX_AGE)
    const newest = views.toSorted((a, b) => b.time - a.time)[0]
    if (newest === undefined) return undefined
    const own = views.filter(({ rights }) => rights === newest.rights)
    const rows = own.flatMap(({ address, position, rows: text }) => {
      const parsed = parsedRows(text)
      return parsed === undefined ? [] : [[address, { rows: parsed, position }] as const]
    })
    return { rights: newest.rights, views: new Map(rows) }
  }

  /** Keeps these views of a subject. Views of others are removed, and the oldest ones above the limit. */
  async save(rights: string, views: ReadonlyMap<string, StoredRows>): Promise<void> {
    const time = this.#now()
    await this.#do('readwrite', async (store) => {
      for (const [address, { rows, position }] of views) {
        const text = JSON.stringify(rows)
        const key = [this.#gateway, address]
        if (text.length > MAX_LENGTH) store.delete(key)
        else store.put({ gateway: this.#gateway, rights, address, time, position, rows: text } satisfies Kept)
      }
      const kept = await resultOf(store.getAll(this.#range()))
      const own = kept.filter(isKept).filter((each) => each.rights === rights && time - each.time < MAX_AGE)
      const keep = new Set<unknown>()
      let length = 0
      for (const each of own.toSorted((a, b) => b.time - a.time)) {
        length += each.rows.length
        if (length <= MAX_LENGTH && keep.size < MAX_VIEWS) keep.add(each)
      }
      for (const each of kept) if (!keep.has(each)) store.delete([each.gateway, each.address])
    })
  }

  /** Removes a view, or all of the gateway. */
  async clear(address?: string): Promise<void> {
    await this.#do('readwrite', (store) => {
      store.delete(address === undefined ? this.#range() : [this.#gateway, address])
    })
  }

  /** All views of the gateway. */
  #range(): IDBKeyRange {
    return IDBKeyRange.bound([this.#gateway], [this.#gateway, []])
  }

  /** Runs transactions one after another. Undefined if it fails. */
  #do<Result>(
    mode: IDBTransactionMode,
    use: (store: IDBObjectStore) => Result | Promise<Result>,
  ): Promise<Result | undefined> {
    const done = this.#last.then(async () => {
      const database = await this.#database
      if (database === undefined) return undefined
      const transaction = database.transaction(VIEWS, mode)
      const ended = new Promise<void>((resolve, reject) => {
        transaction.addEventListener('complete', () => resolve())
        transaction.addEventListener('abort', () => reject(transaction.error))
      })
      const [result] = await Promise.all([use(transaction.objectStore(VIEWS)), ended])
      return result
    })
    this.#last = done.catch(() => undefined)
    return done.catch(() => undefined)
  }
}

async function open(indexedDB: IDBFactory): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1)
  request.addEventListener('upgradeneeded', () => {
    request.result.createObjectStore(VIEWS, { keyPath: ['gateway', 'address'] })
  })
  return resultOf(request)
}

function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result))
    request.addEventListener('error', () => reject(request.error))
  })
}

function isKept(value: unknown): value is Kept {
  return isObject(value) && typeof value['rows'] === 'string' && typeof value['time'] === 'number'
}

function parsedRows(text: string): StoredRows['rows'] | undefined {
  try {
    const rows: unknown = JSON.parse(text)
    return Array.isArray(rows) ? rows : undefined
  } catch {
    return undefined
  }
}
