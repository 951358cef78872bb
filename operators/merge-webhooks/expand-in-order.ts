import { concatMap, defer, map, mergeMap, toArray } from 'rxjs'
import type { Observable, OperatorFunction } from 'rxjs'

/**
 * Turns each value into what `expand` finds for it, several at a time, in the order of the values.
 *
 *     source:   --1--2--------|
 *     expand 1:   -------a|
 *     expand 2:      -b|
 *               expandInOrder(expand, 2)
 *     result:   ----------(ab)|
 *
 * What `expand` finds is held until it completes, so it has to end, and better be short. An error of the source or of
 * `expand` passes through; unsubscribing ends every expansion.
 */
export function expandInOrder<T, R>(
  expand: (value: T) => Observable<R>,
  concurrency: number,
): OperatorFunction<T, R> {
  return (source) =>
    defer(() => {
      const early = new Map<number, readonly R[]>()
      let turn = 0

      const inTurn = (index: number, found: readonly R[]) => {
        early.set(index, found)
        const ready: R[] = []
        for (let next = early.get(turn); next !== undefined; next = early.get(turn)) {
          early.delete(turn)
          turn += 1
          ready.push(...next)
        }
        return ready
      }

      return source.pipe(
        mergeMap(
          (value, index) =>
            expand(value).pipe(
              toArray(),
              map((found) => inTurn(index, found)),
            ),
          concurrency,
        ),
        concatMap((ready) => ready),
      )
    })
}
