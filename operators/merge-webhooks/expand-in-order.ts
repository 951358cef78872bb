import { concatMap, defer, map, mergeMap, toArray } from 'rxjs'
import type { Observable, OperatorFunction } from 'rxjs'

/**
 * Maps each value to an inner observable, several at a time, and emits their values in the order of the source.
 *
 *     source:   --1--2--------|
 *     expand 1:   -------a|
 *     expand 2:      -b|
 *               expandInOrder(expand, 2)
 *     result:   ----------(ab)|
 *
 * Inner values are buffered until their observable completes, so it must complete. Errors of the source and of inner
 * observables pass through; unsubscribing unsubscribes from all of them.
 */
export function expandInOrder<T, R>(
  expand: (value: T) => Observable<R>,
  concurrency: number,
): OperatorFunction<T, R> {
  return (source) =>
    defer(() => {
      const buffer = new Map<number, readonly R[]>()
      let nextIndex = 0

      const takeReady = (index: number, values: readonly R[]) => {
        buffer.set(index, values)
        const ready: R[] = []
        for (let next = buffer.get(nextIndex); next !== undefined; next = buffer.get(nextIndex)) {
          buffer.delete(nextIndex)
          nextIndex += 1
          ready.push(...next)
        }
        return ready
      }

      return source.pipe(
        mergeMap(
          (value, index) =>
            expand(value).pipe(
              toArray(),
              map((values) => takeReady(index, values)),
            ),
          concurrency,
        ),
        concatMap((ready) => ready),
      )
    })
}
