import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'

/**
 * What an async function tells its subscriber; completes when that is done and errors when that fails. Unsubscribing aborts
 * the signal.
 */
export function fedBy<T>(
  tell: (subscriber: Subscriber<T>, signal: AbortSignal) => Promise<void>,
): Observable<T> {
  return new Observable((subscriber) => {
    const controller = new AbortController()
    subscriber.add(() => controller.abort())
    tell(subscriber, controller.signal).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    )
  })
}
