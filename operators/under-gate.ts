import { Observable } from 'rxjs'
import { throughGate } from './gate.ts'
import type { Gate } from './gate.ts'

/**
 * The same observable, subscribed on behalf of the consumer with this gate whenever that happens: for operators that
 * subscribe later than their own subscriber did.
 */
export function underGate<T>(gate: Gate | undefined, source: Observable<T>): Observable<T> {
  return new Observable((subscriber) => throughGate(gate, () => source.subscribe(subscriber)))
}
