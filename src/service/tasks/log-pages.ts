import type { EventBatch } from '../../http/server-sent-events.ts'

/** A page of events, and the position after it. */
export interface LogPage {
  readonly events: EventBatch
  readonly position: number
}

/** Default maximum size of cached pages, in bytes: a few groups of ten thousand runs. */
const MAX_BYTES = 16 * 1024 * 1024

/** An LRU cache of immutable pages, which the clients of a log share, so that each further client only costs its socket. */
export class LogPages {
  readonly #pages = new Map<string, LogPage>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  get(key: string): LogPage | undefined {
    const page = this.#pages.get(key)
    if (page === undefined) return undefined
    // A Map keeps the order of insertion, so this moves the page to the end.
    this.#pages.delete(key)
    this.#pages.set(key, page)
    return page
  }

  /** Adds a page that is not cached yet. */
  add(key: string, page: LogPage): void {
    this.#pages.set(key, page)
    this.#bytes += page.events.bytes.length
    for (const [oldest, { events }] of this.#pages) {
      if (this.#bytes <= this.#maxBytes) return
      this.#pages.delete(oldest)
      this.#bytes -= events.bytes.length
    }
  }
}
