import type { Appended, Entry, NewEntry } from './contract.ts'

/**
 * Observes a log, as `rivulet/otel` does. Each method is called around what it observes: it calls `proceed` once, at once, and
 * returns or throws what that returns or throws.
 */
export interface LogObserver {
  /** Around an append of what `client.record` reads. The log skips the entries that it has. */
  append?(entries: readonly NewEntry[], proceed: () => Promise<Appended>): Promise<Appended>
  /** Around each call of the handler of `log.consume`, retries included. */
  handle?(
    consumer: string,
    entry: Entry,
    proceed: () => void | PromiseLike<unknown>,
  ): void | PromiseLike<unknown>
}
