import { Observable } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { Gate, gateOf, subscribeUnderGate } from '../src/protocol/gate.ts'

/**
 * Applies backpressure: pauses the sources upstream while the gate is closed.
 *
 *     gate:     -------x-------o------      x: closes, o: opens
 *     source:   --a--b-|       |-c--d--|    resumes where it paused
 *               underGate(gate)
 *     result:   --a--b------------c--d--|
 *
 * For a consumer of your own; `deliver` and `iterate` have a gate already. Sources find the gate whenever they are subscribed,
 * after the delay of a `retry` too. The operator has no buffer: values that a source had read when the gate closed, and
 * values of a source without support for gates, pass through. Sources obey the nearest gate only.
 *
 * ```ts
 * import { share } from 'rxjs'
 * import { createClient } from 'rivulet'
 * import { deliver, Gate, underGate } from 'rivulet/operators'
 *
 * // Two subscribers share one connection, which the slower one pauses.
 * const gate = new Gate()
 * const runs = createClient().taskGroups.runs('g').pipe(underGate(gate), share())
 * runs.subscribe(({ id }) => console.log(id))
 * runs.pipe(deliver(async () => {}, { gate })).subscribe()
 * ```
 *
 * Errors pass through, and unsubscribing unsubscribes from the source.
 *
 * @param gate With undefined, the source is returned unchanged.
 * @throws ArgumentError at the call, for anything else.
 */
export function underGate<T>(gate: Gate | undefined): MonoTypeOperatorFunction<T> {
  if (gate === undefined) return (source) => source
  if (!(gate instanceof Gate)) throw new ArgumentError('gate', 'a Gate', gate)
  return (source) =>
    new Observable((subscriber) => {
      // Added to the subscriber before the source emits, so that `take` stops a synchronous source.
      const closable = new Observable<T>((inner) => {
        subscriber.add(inner)
        return source.subscribe(inner)
      })
      subscribeUnderGate(gate, gateOf(subscriber), closable, subscriber)
    })
}
