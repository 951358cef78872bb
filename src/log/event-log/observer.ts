import { Observers } from '../../protocol/observers.ts'
import type { Appended, Entry, NewEntry } from '../store/contract.ts'

/**
 * Observes a log, as `rivulet/otel` does. Each method is called around what it observes, and calls `proceed` at once. It cannot
 * change the result: its own results and errors are ignored, and if it does not call `proceed`, the log does so after it.
 */
export interface LogObserver {
  /** Called around an append of `log.record` and of `log.append`. The log skips the entries that it has. */
  append?(entries: readonly NewEntry[], proceed: () => Promise<Appended>): Promise<Appended>
  /**
   * Called around each call of the handler of `log.consume`, retries included, and of the functions `event` and `timer` of a process. A
   * process's `proceed` throws its `ProcessError`.
   *
   * @param reader The name of the consumer or process.
   * @param entry The entry; of a batch, the first one; for a timer, the one at which it fires.
   */
  handle?(
    reader: string,
    entry: Entry,
    proceed: () => void | PromiseLike<unknown>,
    kind: 'consumer' | 'process',
  ): void | PromiseLike<unknown>
}

/** The observers of a log, none yet. */
export function logObservers(): Observers<LogObserver> {
  return new Observers<LogObserver>({ append: true, handle: true })
}
