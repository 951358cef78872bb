import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { nextTime } from '../database.ts'
import { errorCode, type SourceErrorCode } from './source-state.ts'

/**
 * The expected role of a URL: a source may be anything, the others were found in a listing. An `item` is content of a feed:
 * it is never requested.
 */
type Role = 'source' | 'sitemap' | 'page' | 'item'

/** A URL that is refreshed. */
export interface Resource {
  readonly url: string
  readonly role: Role
  /** Validators of the copy in the index, and the hash of its bytes. Undefined without a copy. */
  readonly etag: string | undefined
  readonly lastModified: string | undefined
  readonly hash: string | undefined
  /** The date of the page in its listing. */
  readonly listedDate: string | undefined
  /** Number of failures since the last success. */
  readonly failures: number
  /** Number of responses since the last success that said that there is no such page. */
  readonly missing: number
  /** The message of the last failure; undefined after a success. */
  readonly error: string | undefined
}

/** The result of a request, as it is stored. */
export interface Visit {
  /** When it was fetched, Unix ms. */
  readonly fetchedAt: number
  readonly nextAt: number
  /** The status of the response; null if there was none. */
  readonly status: number | null
  readonly failures: number
  readonly missing: number
  readonly failure: Failure | null
}

/** Why a URL was not read. */
export interface Failure {
  readonly code: SourceErrorCode
  readonly message: string
}

/** The validators of a copy; all undefined if there is none. */
export type Validators = Pick<Resource, 'etag' | 'lastModified' | 'hash'>

export const NO_VALIDATORS: Validators = { etag: undefined, lastModified: undefined, hash: undefined }

/** A URL that a listing contains. */
export interface ListedUrl {
  readonly url: string
  readonly role: Exclude<Role, 'source'>
  /** YYYY-MM-DD, or a longer form: compared as a text only. */
  readonly date?: string | undefined
}

/** Limits of the refreshed documents. */
export interface StoreLimits {
  /** Maximum number of pages and sitemaps of one source. */
  readonly perSource: number
  /** Maximum number of URLs of all sources. */
  readonly inTotal: number
  /** Maximum number of sitemaps between a source and a page. */
  readonly depth: number
}

/** The state of a source, from the last request of its URL. */
export interface StoredSource {
  readonly url: string
  /** All URLs that are refreshed, also those that failed. */
  readonly urls: readonly string[]
  /** Number of those that were not read by their last request. */
  readonly failing: number
  /** The latest failure of one of them. */
  readonly last: { readonly url: string; readonly code: SourceErrorCode; readonly at: number } | undefined
  readonly fetchedAt: number | null
  readonly error: string | null
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS live_resources (
    url TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    role TEXT NOT NULL,
    etag TEXT,
    last_modified TEXT,
    hash TEXT,
    listed_date TEXT,
    fetched_at INTEGER,
    next_at INTEGER,
    status INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    missing INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    code TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS live_resources_by_time ON live_resources (next_at, host);
  CREATE INDEX IF NOT EXISTS live_resources_by_host ON live_resources (host, next_at);

  CREATE TABLE IF NOT EXISTS live_links (
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    parent TEXT NOT NULL,
    depth INTEGER NOT NULL,
    listed_at INTEGER NOT NULL,
    PRIMARY KEY (source, url)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS live_links_by_url ON live_links (url);
  CREATE INDEX IF NOT EXISTS live_links_by_parent ON live_links (source, parent, listed_at);
`

const COLUMNS = 'url, role, etag, last_modified, hash, listed_date, failures, missing, error'

/**
 * The URLs of the sources and their state, in two tables. `live_resources` has each URL once; `live_links` has the sources that
 * it belongs to. The caller opens the transactions.
 */
export class LiveStore {
  readonly #limits: StoreLimits
  readonly #statements

  constructor(database: DatabaseSync, limits: StoreLimits) {
    this.#limits = limits
    database.exec(TABLES)
    // Files of earlier versions have no codes.
    const columns = database.prepare("SELECT name FROM pragma_table_info('live_resources')").all()
    if (!columns.some(({ name }) => name === 'code')) {
      database.exec('ALTER TABLE live_resources ADD COLUMN code TEXT')
    }
    this.#statements = {
      insert: database.prepare(
        'INSERT OR IGNORE INTO live_resources (url, host, role, listed_date, next_at) VALUES (?, ?, ?, ?, ?)',
      ),
      promote: database.prepare(`UPDATE live_resources SET role = 'source' WHERE url = ?`),
      // One that another source lists may be a sitemap.
      demote: database.prepare(
        `UPDATE live_resources SET role =
           iif(EXISTS (SELECT 1 FROM live_links AS l WHERE l.parent = live_resources.url AND l.url <> l.parent), 'sitemap', 'page')
         WHERE role = 'source' AND url NOT IN (SELECT value FROM json_each(?))`,
      ),
      unlink: database.prepare('DELETE FROM live_links WHERE source NOT IN (SELECT value FROM json_each(?))'),
      link: database.prepare(
        `INSERT INTO live_links (source, url, parent, depth, listed_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET listed_at = ?5`,
      ),
      linksOf: database.prepare('SELECT url FROM live_links WHERE source = ?'),
      sourcesOf: database.prepare('SELECT source, depth FROM live_links WHERE url = ?'),
      countFailing: database.prepare(
        `SELECT count(*) AS urls, count(error) AS failing FROM live_links JOIN live_resources USING (url) WHERE source = ?`,
      ),
      lastFailure: database.prepare(
        `SELECT url, code, fetched_at FROM live_links JOIN live_resources USING (url)
         WHERE source = ? AND error IS NOT NULL ORDER BY fetched_at DESC, url LIMIT 1`,
      ),
      unlisted: database.prepare(
        `SELECT url FROM live_links WHERE source = ?1 AND parent = ?2 AND listed_at < ?3 AND url <> ?1
         ORDER BY listed_at LIMIT 1`,
      ),
      removeLink: database.prepare('DELETE FROM live_links WHERE source = ? AND url = ?'),
      count: database.prepare('SELECT count(*) AS urls FROM live_resources'),
      redate: database.prepare(
        `UPDATE live_resources SET listed_date = ?1, next_at = iif(role = 'page', min(next_at, ?2), next_at)
         WHERE url = ?3 AND listed_date IS NOT ?1`,
      ),
      orphans: database.prepare(
        'SELECT url FROM live_resources WHERE url NOT IN (SELECT url FROM live_links)',
      ),
      remove: database.prepare('DELETE FROM live_resources WHERE url = ?'),
      dueHosts: database.prepare('SELECT DISTINCT host FROM live_resources WHERE next_at <= ?'),
      due: database.prepare(
        `SELECT ${COLUMNS} FROM live_resources WHERE host = ? AND next_at <= ? ORDER BY next_at, role DESC, rowid LIMIT 1`,
      ),
      next: database.prepare('SELECT min(next_at) AS at FROM live_resources WHERE next_at > ?'),
      visited: database.prepare(
        `UPDATE live_resources SET fetched_at = ?, next_at = ?, status = ?, failures = ?, missing = ?, error = ?, code = ? WHERE url = ?`,
      ),
      postpone: database.prepare(
        'UPDATE live_resources SET fetched_at = ?, next_at = ?, error = ?, code = ? WHERE url = ?',
      ),
      validate: database.prepare(
        'UPDATE live_resources SET etag = ?, last_modified = ?, hash = ? WHERE url = ?',
      ),
      invalidate: database.prepare(
        'UPDATE live_resources SET etag = NULL, last_modified = NULL, hash = NULL, next_at = ? WHERE next_at IS NOT NULL',
      ),
      state: database.prepare('SELECT fetched_at, error FROM live_resources WHERE url = ?'),
    }
  }

  /**
   * Makes these URLs the sources. Returns the URLs that no longer belong to a source, and were removed. A new source is due at
   * once.
   */
  configure(sources: readonly string[], now: number): string[] {
    const { insert, promote, demote, unlink, link } = this.#statements
    const list = JSON.stringify(sources)
    unlink.run(list)
    demote.run(list)
    for (const url of sources) {
      insert.run(url, new URL(url).host, 'source', null, now)
      promote.run(url)
      link.run(url, url, url, 0, now)
    }
    return this.#removeOrphans()
  }

  /** Forgets all validators, for an index that has lost its pages. Everything is due at `now`. */
  invalidate(now: number): void {
    this.#statements.invalidate.run(now)
  }

  /** The hosts with due URLs. */
  dueHosts(now: number): string[] {
    return this.#statements.dueHosts.all(now).map(({ host }) => String(host))
  }

  /** The due URL of a host: the URL that waited longest, sources and sitemaps before pages. */
  due(host: string, now: number): Resource | undefined {
    const row = this.#statements.due.get(host, now)
    return row === undefined ? undefined : toResource(row)
  }

  /** When the next URL becomes due. */
  nextAfter(now: number): number | undefined {
    return nextTime(this.#statements.next, now)
  }

  /** Whether a URL still belongs to a source. */
  has(url: string): boolean {
    return this.#statements.state.get(url) !== undefined
  }

  /** Stores the outcome of a request. */
  visited(url: string, { fetchedAt, nextAt, status, failures, missing, failure }: Visit): void {
    const { message = null, code = null } = failure ?? {}
    this.#statements.visited.run(fetchedAt, nextAt, status, failures, missing, message, code, url)
  }

  /** Stores that a response could not be read yet, and when it is requested again. */
  postpone(url: string, fetchedAt: number, nextAt: number, { message, code }: Failure): void {
    this.#statements.postpone.run(fetchedAt, nextAt, message, code, url)
  }

  /** Stores the validators that the next request of a URL sends for the copy in the index. */
  validate(url: string, { etag, lastModified, hash }: Validators): void {
    this.#statements.validate.run(etag ?? null, lastModified ?? null, hash ?? null, url)
  }

  /**
   * Adds the entries of a listing to the sources of the listing. A URL that is new, and a page that has another date, is due at
   * once; not a sitemap, since sitemaps may list each other. URLs that are no longer listed stay, until the source reaches its limit.
   * Returns removed URLs, and how many were not added.
   */
  list(parent: string, entries: readonly ListedUrl[], now: number): { removed: string[]; left: number } {
    const { sourcesOf } = this.#statements
    let left = 0
    for (const link of sourcesOf.all(parent).map(toLink)) {
      left += this.#listFor(link, parent, entries, now)
    }
    return { removed: this.#removeOrphans(), left }
  }

  /** Lists the entries of a listing that belongs to a source. Returns how many were not added. */
  #listFor(
    { source, depth: parentDepth }: ReturnType<typeof toLink>,
    parent: string,
    entries: readonly ListedUrl[],
    now: number,
  ): number {
    const { insert, link, linksOf, count, redate, unlisted, removeLink } = this.#statements
    const depth = parentDepth + 1
    let left = 0
    const linked = new Set(linksOf.all(source).map(({ url }) => url))
    let ofSource = linked.size
    let inTotal = Number(count.get()?.['urls'])
    const isNew = ({ url }: ListedUrl) => !linked.has(url)
    const fresh = entries.filter(isNew)
    // URLs that are still listed come first, so that none of them is replaced by a new one.
    for (const { url, date } of entries.filter((entry) => !isNew(entry))) {
      link.run(source, url, parent, depth, now)
      redate.run(date ?? null, now, url)
    }
    let isFull = false
    for (const { url, role, date } of fresh) {
      if (role === 'sitemap' && depth > this.#limits.depth) {
        left += 1
        continue
      }
      if (ofSource >= this.#limits.perSource) {
        // A listing may have 50,000 URLs: those beyond the limit are counted without a query.
        const old = isFull ? undefined : unlisted.get(source, parent, now)
        if (old === undefined) {
          isFull = true
          left += 1
          continue
        }
        removeLink.run(source, String(old['url']))
        ofSource -= 1
      }
      if (inTotal >= this.#limits.inTotal) {
        left += 1
        continue
      }
      inTotal += Number(
        insert.run(url, new URL(url).host, role, date ?? null, role === 'item' ? null : now).changes,
      )
      link.run(source, url, parent, depth, now)
      ofSource += 1
    }
    return left
  }

  /** The sources that a URL belongs to. */
  sourcesOf(url: string): string[] {
    return this.#statements.sourcesOf.all(url).map(({ source }) => String(source))
  }

  /** How many URLs a source has, and how many of them were not read by their last request. */
  counts(source: string): { urls: number; failing: number } {
    const row = this.#statements.countFailing.get(source)
    return { urls: Number(row?.['urls']), failing: Number(row?.['failing']) }
  }

  /** The state of a source. */
  source(url: string): StoredSource {
    const { state, linksOf, lastFailure } = this.#statements
    const row = state.get(url)
    const [fetchedAt, error] = [row?.['fetched_at'], row?.['error']]
    const last = lastFailure.get(url)
    return {
      url,
      urls: linksOf.all(url).map((link) => String(link['url'])),
      failing: this.counts(url).failing,
      last: last === undefined ? undefined : toFailure(last),
      fetchedAt: typeof fetchedAt === 'number' ? fetchedAt : null,
      error: typeof error === 'string' ? error : null,
    }
  }

  #removeOrphans(): string[] {
    const { orphans, remove } = this.#statements
    const urls = orphans.all().map(({ url }) => String(url))
    for (const url of urls) remove.run(url)
    return urls
  }
}

function toLink(row: Record<string, SQLOutputValue>): { source: string; depth: number } {
  return { source: String(row['source']), depth: Number(row['depth']) }
}

function toFailure(row: Record<string, SQLOutputValue>): NonNullable<StoredSource['last']> {
  const { url, code, fetched_at: at } = row
  return { url: String(url), code: errorCode(code) ?? 'fetch_error', at: Number(at) }
}

function toResource(row: Record<string, SQLOutputValue>): Resource {
  const text = (name: string) => {
    const value = row[name]
    return typeof value === 'string' ? value : undefined
  }
  const role = text('role')
  return {
    url: String(row['url']),
    role: role === 'source' || role === 'sitemap' || role === 'item' ? role : 'page',
    etag: text('etag'),
    lastModified: text('last_modified'),
    hash: text('hash'),
    listedDate: text('listed_date'),
    failures: Number(row['failures']),
    missing: Number(row['missing']),
    error: text('error'),
  }
}
