import { currentGate } from '../../operators/gate.ts'
import type { Flow } from '../transport/exchange.ts'

/**
 * Lets the gate of the consumer that is subscribing hold the flow: a closed gate stops the reading of the socket. The
 * function that it returns destroys the flow.
 */
export function gated(flow: Flow): () => void {
  const gate = currentGate()
  if (gate?.closed === true) flow.pause()
  const stop = gate?.onChange((closed) => (closed ? flow.pause() : flow.resume()))
  return () => {
    stop?.()
    flow.abort()
  }
}
