import type { Appended, Entry } from './contract.ts'

/**
 * Observes a log, as `rivulet/otel` does. Each method is called around what it observes: it calls `proceed` once, at once, and
 * returns or throws what that returns or throws.
 */
export interface LogObserver {
  /** Around an append of what `client.record` reads. `entries` is their number. */
  append?(entries: number, proceed: () => Promise<Appended>): Promise<Appended>
  /** Around each call of the handler of `log.consume`, retries included. */
  handle?(
    consumer: string,
    entry: Entry,
    proceed: () => void | PromiseLike<unknown>,
  ): void | PromiseLike<unknown>
}
