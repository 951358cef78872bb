import type { Subscriber } from 'rxjs'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import type { Flow } from '../../transport/exchange.ts'

/** Pauses the flow while the gate of the subscriber is closed. Returns a teardown that aborts the flow. */
export function applyBackpressure(flow: Flow, subscriber: Subscriber<unknown>): () => void {
  const gate = gateOf(subscriber)
  if (gate?.closed === true) flow.pause()
  const unlisten = gate?.onChange((closed) => (closed ? flow.pause() : flow.resume()))
  return () => {
    unlisten?.()
    flow.abort()
  }
}

/** Resolves when the gate is open or the signal is aborted. Never rejects: the caller checks the signal. */
export function openOrAborted(gate: Gate, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!gate.closed || signal.aborted) return resolve()
    const settle = () => {
      unlisten()
      signal.removeEventListener('abort', settle)
      resolve()
    }
    const unlisten = gate.onChange(settle)
    signal.addEventListener('abort', settle)
  })
}
