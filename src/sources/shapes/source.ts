import { lastValueFrom, Observable, reduce } from 'rxjs'
import type { Subscriber, TeardownLogic } from 'rxjs'
import { subscribeWithGate } from '../../protocol/gate.ts'
import { iterate } from '../../../operators/iterate.ts'
import { checkSignal } from '../../protocol/check.ts'

/**
 * A cold Observable of the service: each subscription makes its own requests, and unsubscribing destroys their sockets.
 *
 * It is async-iterable too, with backpressure: while the loop is busy, the source stops reading.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 *
 * for await (const event of createClient().taskGroups.runs('tgrp_123')) console.log(event.id)
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

/**
 * A {@link Source} that emits one answer and completes, so that it can be awaited too. Each `await`, as each subscription,
 * makes a request of its own; without either nothing is requested.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 *
 * const { taskgroup_id } = await createClient().taskGroups.create()
 * ```
 *
 * RxJS takes it for the Observable that it is: `switchMap(() => client.taskGroups.get(id))` ends the request when it
 * unsubscribes. Behind an operator of `pipe` it is a plain Observable. Rejects with the source's error, or with the reason
 * of its `signal`. What is awaitable is awaited by whatever takes promises: an `async` function that returns it returns
 * its answer, and `Promise.resolve` makes the request.
 */
export class AwaitableSource<T> extends Source<T> implements PromiseLike<T> {
  readonly #answer: () => Promise<T>

  constructor(subscribe: (subscriber: Subscriber<T>) => TeardownLogic, join: Join<T>) {
    super(subscribe)
    this.#answer = () => lastValueFrom(this.pipe(reduce(join)))
  }

  // An await is a subscription here, as with a query builder.
  // oxlint-disable-next-line unicorn/no-thenable
  then<Fulfilled = T, Rejected = never>(
    onFulfilled?: ((value: T) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#answer().then(onFulfilled, onRejected)
  }
}

/** What an `await` makes of the answers so far and of the next one. */
type Join<T> = (joined: T, next: T) => T

/** A source of what the observable emits, ended by the signal. */
export function sourceOf<T>(observable: Observable<T>, signal?: AbortSignal): Source<T> {
  return new Source(subscribing(observable, signal))
}

/**
 * A source of the one answer that the observable emits, ended by the signal.
 *
 * @param join For an answer that comes in parts: an `await` gets all of them joined.
 */
export function awaitable<T>(
  observable: Observable<T>,
  signal?: AbortSignal,
  join: Join<T> = (_, last) => last,
): AwaitableSource<T> {
  return new AwaitableSource(subscribing(observable, signal), join)
}

function subscribing<T>(
  observable: Observable<T>,
  signal: AbortSignal | undefined,
): (subscriber: Subscriber<T>) => TeardownLogic {
  if (signal === undefined) return (subscriber) => subscribeWithGate(observable, subscriber)
  checkSignal('signal', signal)
  return (subscriber) => {
    if (signal.aborted) {
      subscriber.error(signal.reason)
      return
    }
    const abort = () => subscriber.error(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    subscriber.add(() => signal.removeEventListener('abort', abort))
    subscriber.add(subscribeWithGate(observable, subscriber))
  }
}
