import { Observable } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { gateOf, subscribeThrough } from '../src/protocol/gate.ts'
import type { Gate } from '../src/protocol/gate.ts'

/**
 * Lets a gate hold what stands before it, for a consumer of your own: `deliver` and `iterate` bring theirs.
 *
 *     gate:     -------x-------o------      x: closes, o: opens
 *     source:   --a--b-|       |-c--d--|    reads on where it stopped
 *               underGate(gate)
 *     result:   --a--b------------c--d--|
 *
 * Sources find it whenever they are subscribed, after the delay of a `retry` as well. It holds nothing itself: what a
 * source had read when the gate closed, and what comes from one that obeys no gate, passes through. The nearest gate
 * counts; an outer one is not obeyed any more.
 *
 * ```ts
 * import { share } from 'rxjs'
 * import { createClient } from 'rivulet'
 * import { deliver, Gate, underGate } from 'rivulet/operators'
 *
 * // One connection for two, as fast as the handler is.
 * const gate = new Gate()
 * const runs = createClient().taskGroups.runs('g').pipe(underGate(gate), share())
 * runs.subscribe(({ id }) => console.log(id))
 * runs.pipe(deliver(async () => {}, { gate })).subscribe()
 * ```
 *
 * Errors pass through; unsubscribing unsubscribes.
 *
 * @param gate Undefined leaves everything as it is.
 */
export function underGate<T>(gate: Gate | undefined): MonoTypeOperatorFunction<T> {
  if (gate === undefined) return (source) => source
  return (source) =>
    new Observable((subscriber) => {
      // Unsubscribed with the subscriber at once, so that a synchronous source stops when it has enough.
      const untilClosed = new Observable<T>((held) => {
        subscriber.add(held)
        return source.subscribe(held)
      })
      subscribeThrough(gate, gateOf(subscriber), untilClosed, subscriber)
    })
}
