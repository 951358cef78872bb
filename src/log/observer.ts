import type { Appended, Entry, NewEntry } from './store/contract.ts'

/**
 * Observes a log, as `rivulet/otel` does. Each method is called around what it observes, and calls `proceed` at once. It cannot
 * change the result: what it returns, throws or rejects with itself is ignored, and what it does not call is called after it.
 */
export interface LogObserver {
  /** Around an append of what `client.record` reads. The log skips the entries that it has. */
  append?(entries: readonly NewEntry[], proceed: () => Promise<Appended>): Promise<Appended>
  /**
   * Around each call of the handler of `log.consume`, retries included, and of the functions `event` and `timer` of a process. A
   * process's `proceed` throws its `ProcessError`.
   *
   * @param reader The name of the consumer or process.
   * @param entry Of a timer, the one at which it fires.
   */
  handle?(
    reader: string,
    entry: Entry,
    proceed: () => void | PromiseLike<unknown>,
    kind: 'consumer' | 'process',
  ): void | PromiseLike<unknown>
}
