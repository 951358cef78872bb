import { Observable } from 'rxjs'
import { subscribeHeld } from '../../operators/gate.ts'
import { iterate } from '../../operators/iterate.ts'
import { checkSignal } from '../protocol/check.ts'

/**
 * A cold Observable of the service: each subscription makes its own requests, and unsubscribing destroys their sockets.
 *
 * It is async-iterable too, with backpressure: while the loop is busy, the source stops reading.
 *
 * ```ts
 * for await (const event of client.taskGroups.runs(groupId)) await save(event)
 * ```
 */
export class Source<T> extends Observable<T> implements AsyncIterable<T> {
  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return iterate(this)
  }
}

/** Options that every source takes. */
export interface SourceOptions {
  /** Ends the source with the signal's reason as its error. */
  readonly signal?: AbortSignal
}

/** A source of what the observable emits, ended by the signal. */
export function sourceOf<T>(observable: Observable<T>, signal?: AbortSignal): Source<T> {
  if (signal === undefined) return new Source((subscriber) => subscribeHeld(observable, subscriber))
  checkSignal('signal', signal)
  return new Source((subscriber) => {
    if (signal.aborted) {
      subscriber.error(signal.reason)
      return
    }
    const abort = () => subscriber.error(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    subscriber.add(() => signal.removeEventListener('abort', abort))
    subscriber.add(subscribeHeld(observable, subscriber))
  })
}
