import type { EventBatch } from '../http/event-batch.ts'

/** Some events of a log and the position after them. */
export interface LogPage {
  readonly events: EventBatch
  readonly position: number
}

/** Bytes of events that are kept, at the most: a few groups of ten thousand runs. */
const MOST_BYTES = 16 * 1024 * 1024

/**
 * Pages of logs that will never change, by what was asked for, so that the readers of one log share them: what each
 * reader costs is its socket. The pages that were asked for longest ago make room for others.
 */
export class LogPages {
  readonly #pages = new Map<string, LogPage>()
  readonly #mostBytes: number
  #bytes = 0

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes
  }

  get(key: string): LogPage | undefined {
    const page = this.#pages.get(key)
    if (page === undefined) return undefined
    // A map is in the order of insertion: this one goes to its end.
    this.#pages.delete(key)
    this.#pages.set(key, page)
    return page
  }

  /** Keeps a page that is not kept yet. */
  add(key: string, page: LogPage): void {
    this.#pages.set(key, page)
    this.#bytes += page.events.bytes.length
    for (const [oldest, { events }] of this.#pages) {
      if (this.#bytes <= this.#mostBytes) return
      this.#pages.delete(oldest)
      this.#bytes -= events.bytes.length
    }
  }
}
