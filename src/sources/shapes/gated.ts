import type { Subscriber } from 'rxjs'
import { gateOf } from '../../protocol/gate.ts'
import type { Flow } from '../../transport/exchange.ts'

/**
 * Lets the gate that holds the subscriber hold the flow: a closed gate stops the reading of the socket. The function that
 * it returns destroys the flow.
 */
export function gated(flow: Flow, subscriber: Subscriber<unknown>): () => void {
  const gate = gateOf(subscriber)
  if (gate?.closed === true) flow.pause()
  const stop = gate?.onChange((closed) => (closed ? flow.pause() : flow.resume()))
  return () => {
    stop?.()
    flow.abort()
  }
}
