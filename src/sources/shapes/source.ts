import { lastValueFrom, Observable, reduce } from 'rxjs'
import type { Subscriber, TeardownLogic } from 'rxjs'
import { subscribeWithGate } from '../../protocol/gate.ts'
import { iterate } from '../../../operators/iterate.ts'
import { checkSignal } from '../../protocol/check.ts'

/**
 * A cold Observable: each subscription makes its own requests, and unsubscribing destroys their sockets.
 *
 * It is also async-iterable, with backpressure: the source pauses while the loop is busy.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 *
 * for await (const event of createClient().taskGroups.runs('tgrp_123')) console.log(event.id)
 * ```
 */
export class Source<T> extends Observable<T> implements AsyncIterable<T> {
  /** Iterates over the values, with backpressure. Ending the loop unsubscribes. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return iterate(this)
  }
}

/** An event of a source that ends with a result, or that result. */
export type SourceStep<Event, Result> = { readonly event: Event } | { readonly result: Result }

/** Options of every source. */
export interface SourceOptions {
  /** When aborted, the source errors with the signal's reason. Default: none. */
  readonly signal?: AbortSignal
}

/**
 * A {@link Source} that can also be awaited: it emits one response and completes, or what happens until its result is there. Each `await` and each subscription makes
 * its own request; without either, nothing is requested.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 *
 * const { taskgroup_id } = await createClient().taskGroups.create()
 * ```
 *
 * RxJS treats it as an Observable: `switchMap(() => client.taskGroups.get(id))` aborts the request when it unsubscribes.
 * `pipe` returns a plain Observable. An `await` rejects with the source's error, or with the reason of its `signal`. It is a
 * thenable: an `async` function that returns it resolves to the response, and `Promise.resolve` makes the request.
 */
export class AwaitableSource<T, Result = T> extends Source<T> implements PromiseLike<Result> {
  readonly #result: () => Promise<Result>

  constructor(
    subscribe: (subscriber: Subscriber<T>) => TeardownLogic,
    result: (source: Observable<T>) => Promise<Result>,
  ) {
    super(subscribe)
    this.#result = () => result(this)
  }

  // Awaiting subscribes, as awaiting a query builder runs its query.
  // oxlint-disable-next-line unicorn/no-thenable
  then<Fulfilled = Result, Rejected = never>(
    onFulfilled?: ((value: Result) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#result().then(onFulfilled, onRejected)
  }
}

/** Combines the responses so far with the next one, for an `await`. */
type Join<T> = (joined: T, next: T) => T

/** Makes a source from the observable. It errors when the signal is aborted. */
export function sourceOf<T>(observable: Observable<T>, signal?: AbortSignal): Source<T> {
  return new Source(subscribing(observable, signal))
}

/**
 * Makes an awaitable source from an observable of one response. It errors when the signal is aborted.
 *
 * @param join Joins the parts of a response for an `await`. Default: the last part.
 */
export function awaitable<T>(
  observable: Observable<T>,
  signal?: AbortSignal,
  join: Join<T> = (_, last) => last,
): AwaitableSource<T> {
  return awaitableAs(observable, signal, (source) => lastValueFrom(source.pipe(reduce(join))))
}

/**
 * Makes a source of many values from an observable, of which an `await` returns a result: the answer whose progress it emits.
 *
 * @param result Subscribes to the source, once, and resolves with the result.
 */
export function awaitableAs<T, Result>(
  observable: Observable<T>,
  signal: AbortSignal | undefined,
  result: (source: Observable<T>) => Promise<Result>,
): AwaitableSource<T, Result> {
  return new AwaitableSource(subscribing(observable, signal), result)
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
