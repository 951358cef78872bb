import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'

/**
 * An observable of an async function, which emits to its subscriber. Completes when the function resolves, and errors when it
 * rejects. Unsubscribing aborts the signal.
 */
export function fromAsync<T>(
  emit: (subscriber: Subscriber<T>, signal: AbortSignal) => Promise<void>,
): Observable<T> {
  return new Observable((subscriber) => {
    const controller = new AbortController()
    subscriber.add(() => controller.abort())
    emit(subscriber, controller.signal).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    )
  })
}
